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
# # A direct wire: what is the ceiling for a switch?

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
# The same program, the same rings and the same two containers; the wire hands on whatever comes, without a look at it.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Published beside ours
# T12 (Loftus, 2016) shows a direct path between two VMs as a proof of concept, without a number. What can be measured is how near a
# switch comes to it.

# %%
figures.show(result, "published")

# %% [markdown]
# ## Throughput
# The wire is what a switch could reach if knowing where a frame goes cost nothing.

# %%
figures.show(result, "throughput")

# %% [markdown]
# ## Cycles by stage
# With the wire *parse* and *lookup* have nothing to do. What is left are the two rings.

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

# %%
reading.notes(result)

# %% [markdown]
# And for this very result:

# %%
describe.limits(result)
