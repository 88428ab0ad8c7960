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
# # Which receive path for an endpoint? Mergeable, non-mergeable, vector, in-order, packed

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
# A device in memory hands frames to the switch, the switch to the endpoint, which sends them back to where they came from. The path is
# the one that the endpoint's driver said it took: a run in which it took another has failed.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Published beside ours
# T9 (Yao Lei, 2017) reports for PVP: forwarding io, the vector path about 15 % over the mergeable one; forwarding mac, all three almost
# the same. It had a network card at 10 Gbit/s; here a device in memory stands in its place, so the switch and the endpoint alone decide.

# %%
figures.show(result, "published")

# %% [markdown]
# ## Throughput
# Packets that came back. With forwarding mac the endpoint also writes both addresses, which takes the same from every path.

# %%
figures.show(result, "throughput")

# %% [markdown]
# ## Cycles by stage
# What the switch's thread does is the same for each path of the endpoint, but for the rings: a packed ring is another layout, and
# a mergeable one tells how many buffers a frame took. Of a switch without such counters there is nothing here.

# %%
figures.show(result, "stages")

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
# - *No network card*: the port is DPDK's net_null, which hands out zeros as fast as it is asked and never ends.
#   A real port would add its driver's cycles and its cache misses, the same for every path.

# %%
reading.notes(result)

# %% [markdown]
# And for this very result:

# %%
describe.limits(result)
