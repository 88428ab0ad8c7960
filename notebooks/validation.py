# %% [markdown]
# # Is the processor model right?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "docs/reference"

# %%
from vsprof.analysis.explain_validation import Events
from vsprof.analysis.sections import show
from vsprof.analysis.validation import load

found = Events(load(result_dir))
show(found.question(), found.answer())

# %% [markdown]
# ## What was compared with what
# Where this machine has a PMU and a processor that the CPU profile describes, each number of the model stands beside that processor's.
# Without one there are microbenchmarks whose events follow from the profile's shape: a random walk through half of L2 misses L1D every
# time, and L2 never.

# %%
show(found.where())

# %% [markdown]
# ## Microbenchmarks
# Each does one thing again and again (`bench/micro/`), sized for the profile's caches and TLBs. *chase*: a random walk from line to line
# through memory that fits into the level of that name but not into the one before (*memory*: into none); *pages*, *hugepages*: the same
# through one line of each page; *stream*: line after line; *branch*: branches at random, or in a pattern; *syscalls*: system calls that do
# nothing.

# %%
show(found.show("validation_events"), found.table("microbenchmarks"))

# %% [markdown]
# ## Switches
# OVS-DPDK between two ports of testpmd, and the kernel's OVS datapath between the ends of a veth pair, in User-Mode Linux. Packets
# circulate; the same script and the same programs run natively and in the lab.

# %%
show(found.show("validation_switches"), found.table("switches"))

# %% [markdown]
# That the same set-up forwards in both places, and by how many packets at once, on which a packet's cost depends. The two rates are not
# compared: one of them is the emulator's.

# %%
show(found.rates())

# %% [markdown]
# ## The same work twice
# A model that knows nothing yet, and the same program twice. Its instructions must be the same; its misses may differ by what an interrupt
# threw out of the caches.

# %%
show(found.table("repeat"))

# %% [markdown]
# ## What this does not say

# %%
show(found.limits())

# %% [markdown]
# ## How to read this
# - *Model*: the processor model of the lab, see `docs/collectors/uarch_model.md`. Instructions and accesses are those of real software; which
#   of them miss is modelled; cycles are estimated.
# - *Error*: modelled over reference, less 1. Where the reference is below 0.01 an iteration or packet, no fraction is made: the difference in
#   events stands there.
# - *Interval*: 95 %, by bootstrap over windows; one measurement has none.
# - *CPI* is cycles per instruction.
# - Of the chases, cycles hold the loop's own instructions, too, which take part of a cycle.
# - *Rounding* happens only when shown; `validation.json` holds every number as it was measured.
