# %% [markdown]
# # NUMA: what does the wrong node cost?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import describe, explain_model, explain_numa, sections
from vsprof.analysis.sources import MODEL

report = sections.begin(result_dir, explain_numa.answer)

# %% [markdown]
# ## Where everything was
# *near* is the guests' node: their CPU and all of their memory are there in every case. What varies is the node of the poll-mode thread
# (`pmd_node`), and the node of DPDK's mbufs and of what its vhost library keeps about each device (`memory_node`). Asking for a placement
# proves nothing: this table is what OVS-DPDK and the kernel (`/proc/<pid>/numa_maps`) reported once the guests were up. A run with another
# placement than asked for fails.

# %%
sections.show(explain_numa.placed(report.result))

# %% [markdown]
# ## Lines filled from elsewhere
# Where a line was that a CPU missed in all caches of its own node. This is the mechanism, and the only numbers here that know of nodes at
# all. What two threads on different nodes hand to each other, such as a ring's descriptors and a packet just written, comes out of the
# other node's *caches*. What no cache has comes from *memory*.

# %%
report.figures("remote_fills")

# %% [markdown]
# ## What a packet costs
# Estimated cycles by role, then by what they were spent on. A line from another node's memory takes the modelled processor longer than one
# from its own (`memory.latency_remote` and `memory.latency_local` of its profile), and one from another node's caches
# (`memory.latency_remote_cache`) longer than one from a core of its own (`llc.latency_modified`).

# %%
report.figures("model_roles", "cpi_stack", "misses")
sections.show(describe.headlines(report.result, MODEL))

# %% [markdown]
# ## Published beside ours
# T4 (Loftus, 2016), two VMs on the second socket: 2,545,945 packets/s without NUMA awareness, 3,831,019 with it (+50 %). There one thread
# was the limit, so the same figure says that a packet took 0.665 of the time. The modelled thread's cycles stand beside that.

# %%
report.figures("published_model")

# %% [markdown]
# The rates are the modelled processor's. They show the placement only where the switch's thread is the limit, and not the guests: the
# answer above says how full each CPU was.

# %%
report.figures("published", "throughput")
report.explanation(explain_numa.markdown(report.result), "For the whole path, by the model:", explain_model.markdown(report.result))
report.headlines()
report.what_was_run(
    "One switch between two virtual machines, in a lab of two NUMA nodes. Each guest has a CPU of its own, and the poll-mode thread one on "
    "either node; in a lab of 4 CPUs the guests share one.",
)
report.rest()
