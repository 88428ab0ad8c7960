# %% [markdown]
# # Are the predicted times right?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "docs/reference"

# %%
from vsprof.analysis.explain_validation import Times
from vsprof.analysis.sections import show
from vsprof.analysis.validation import load_time

found = Times(load_time(result_dir))
show(found.question(), found.answer())

# %% [markdown]
# ## What was compared with what
# The same programs run natively, timed by this machine's clock, and in the lab, timed by the modelled processor's. It takes no PMU.

# %%
show(found.where(), found.show("validation_times"))

# %% [markdown]
# ## Microbenchmarks
# Each does one thing again and again (`bench/micro/`), sized for the profile's caches and TLBs. *adds*: additions, each of the sum of the
# one before, so one a cycle; *chase*: a random walk from line to line through memory that fits into the level of that name, but not into
# the one before; *pages*: the same through one line of each page of 4 KiB; *stream*: a line of 64 bytes, read in order; *branch*: branches
# at random, or in a pattern; *syscall*: a system call that does nothing; *memcpy*, *movsb*: a copy of so many bytes in L1D by the C library,
# and by REP MOVSB; *futex*: one thread wakes another and sleeps, on one CPU or on two; *line*: two CPUs that do not sleep hand a line of
# memory to each other; *wake_up*: by how much a sleep of 100 us is too long.

# %%
show(found.table("microbenchmarks"))

# %% [markdown]
# ## Switches
# Packets circulate; the same script and the same programs run natively and in the lab. OVS-DPDK, testpmd and vhost-switch are between the
# two virtio-user ports of the same other testpmd, a Linux bridge and kernel OVS's datapath (in User-Mode Linux) between the ends of a veth
# pair.

# %%
show(found.table("switches"))

# %% [markdown]
# ## What this does not say

# %%
show(found.limits())

# %% [markdown]
# ## How to read this
# - *Error*: modelled over native, less 1.
# - *Natively*: the shortest of many short tries of a process, and the median over processes; the machine is noisy, and what disturbs a try
#   can only make it longer. *Model*: the median of the tries.
# - *Cycles*: the time at the frequency that the dependent additions show, which take one cycle each.
# - *Interval*: 95 %, by bootstrap over processes (windows, for switches).
# - *Rounding* happens only when shown; `validation-time.json` holds every number as it was measured.
