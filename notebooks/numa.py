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
# # NUMA: what does the wrong node cost?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, everything, explain_model, explain_numa, figures
from analysis.load import load

result = load(result_dir)
describe.question(result)

# %%
explain_numa.answer(result)

# %% [markdown]
# ## Where everything was
# *near* is the node of the guests: their CPU and all of their memory are there in every case. What varies is the node of the poll-mode
# thread (`pmd_node`), and of DPDK's mbufs and of what its vhost library keeps of each device (`memory_node`). That a placement was asked
# for proves nothing: this table is what OVS-DPDK and the kernel (`/proc/<pid>/numa_maps`) said once the guests were up. A run in which it
# is not what was asked for fails.

# %%
explain_numa.placed(result)

# %% [markdown]
# ## Lines filled from elsewhere
# Where a line was that a CPU missed in all caches of its own node: the mechanism, and the only numbers here that know of nodes at all. What
# two threads on different nodes hand to each other, such as a ring's descriptors and a packet just written, comes out of the other
# node's *caches*. What no cache has comes from *memory*.

# %%
figures.show(result, "remote_fills")

# %% [markdown]
# ## What a packet costs
# Estimated cycles by role; then by what they were spent on. A line from another node's memory takes the modelled processor longer than one
# from its own (`memory.latency_remote` and `memory.latency_local` of its profile), and one from another node's caches
# (`memory.latency_remote_cache`) longer than one from a core of its own (`llc.latency_modified`).

# %%
figures.show(result, "model_roles")

# %%
figures.show(result, "cpi_stack")

# %%
figures.show(result, "misses")

# %%
describe.model_headlines(result)

# %% [markdown]
# ## Published beside ours
# T4 (Loftus, 2016), two VMs on the second socket: 2,545,945 packets/s without NUMA awareness, 3,831,019 with it (+50 %). There one thread
# was the limit, so the same figure says that a packet took it 0.665 of the time. That is what stands beside the modelled thread's cycles.

# %%
figures.show(result, "published_model")

# %% [markdown]
# The rates are the modelled processor's. They tell of the placement only where the switch's thread is the limit, and not the guests: the
# report says above how full each CPU was.

# %%
figures.show(result, "published")

# %%
figures.show(result, "throughput")

# %% [markdown]
# ## Explanation
# Made from the numbers above. Where the data does not support a claim, it says so.

# %%
describe.Text(explain_numa.markdown(result))

# %% [markdown]
# Of the whole path, by the model:

# %%
describe.Text(explain_model.markdown(result))

# %% [markdown]
# ## Headline numbers
# Software counters; one column a case, each cell a median over repetitions, with its 95 % interval.

# %%
describe.headlines(result)

# %% [markdown]
# ## What was run
# One switch between two virtual machines, in a lab of two NUMA nodes. Each guest has a CPU of its own, and the poll-mode thread one on
# either node; in a lab of 4 CPUs the guests share one.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Everything that was counted
# Each number that a collector or a traffic wrote, with its 95 % interval, whether a figure above shows it or not.

# %%
everything.show(result)

# %% [markdown]
# ## How to read this
# - *Interval*: 95 %, from resampling repetitions and then the windows inside them. Two cases are called different only
#   if the interval of their ratio excludes 1; otherwise the text says "can't tell".
# - *Rounding* happens only when shown; `measurements.parquet` holds every number as it was measured.
#
# And for this very result:

# %%
describe.limits(result)
