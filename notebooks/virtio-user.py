# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Containers over virtio-user, beside veth and virtual machines

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, everything, explain, explain_dataplane, figures, reading
from analysis.load import load

result = load(result_dir)
describe.question(result)

# %%
describe.Text(explain.answer(result))

# %% [markdown]
# ## Headline numbers
# One column a case; each cell a median over repetitions, with its 95 % interval.

# %%
describe.headlines(result)

# %% [markdown]
# ## What was run
# Over veth a container's frames go through the kernel's network stack and bridge, in softirqs; over virtio-user through memory that it
# shares with the poll-mode switch, as a virtual machine's do over vhost-user.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Published beside ours
# T8 (Loftus, 2016) says that vhost-user works for containers, without a number. Ours is set against veth, and against virtual machines
# where they boot.

# %%
figures.show(result, "published")

# %% [markdown]
# ## Throughput
# The flood comes from testpmd in both kinds of container: out of a packet socket over veth, out of the ring over virtio-user.

# %%
figures.show(result, "throughput")

# %%
describe.search_heading(result)

# %%
figures.show_searched(result, "no_drop")

# %%
describe.searches(result)

# %% [markdown]
# ## Context switches
# Each one is a thread that had to wait, or was made to.

# %%
figures.show(result, "context_switches")

# %%
describe.Text(explain.markdown(result))

# %% [markdown]
# ## The poll-mode thread
# A poll-mode thread's CPU is always busy. What it found when it looked is what tells its load.

# %%
figures.show(result, "pmd")

# %% [markdown]
# ## Where the time goes
# Which CPU spends its time on what. Where the host has few CPUs the endpoints share one with all else.

# %%
figures.show(result, "cpu_use")

# %% [markdown]
# ## Misses and instructions per packet
# The processor's own counters where it has any, and the modelled processor's where the lab ran it; never the two together.

# %%
describe.hardware_heading(result)

# %%
describe.hardware_headlines(result)

# %%
figures.show_any(result, "hardware_per_packet")

# %%
figures.show_any(result, "hardware_misses")

# %%
describe.model_headlines(result)

# %%
figures.show_modelled(result, "cpi_stack")

# %%
figures.show_modelled(result, "misses")

# %%
describe.Text(explain_dataplane.modelled(result))

# %% [markdown]
# ## Explanation
# Made from the numbers above. Where the data does not support a claim, it says so.

# %%
describe.Text(explain_dataplane.markdown(result))

# %% [markdown]
# ## Everything that was counted
# Each number that a collector or a traffic wrote, with its 95 % interval, whether a figure above shows it or not.

# %%
everything.show(result)

# %% [markdown]
# ## How to read this
# - *Cycles per packet* are the time-stamp counter's, counted by the switch's own thread while it had packets; it runs at one rate,
#   whatever the core's. Waiting for memory is in them.
# - *Which switch*: the kernel's bridge has no virtio-user, and OVS-DPDK no veth that it polls; access and switch change together.

# %%
reading.notes(result)

# %% [markdown]
# And for this very result:

# %%
describe.limits(result)
