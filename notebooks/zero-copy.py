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
# # Zero copy: from which frame size on?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, everything, explain_crossover, explain_dataplane, figures, reading
from analysis.load import load

result = load(result_dir)
describe.question(result)

# %%
describe.Text(explain_crossover.markdown(result, "dequeue", "copy", "zero-copy"))

# %% [markdown]
# ## Headline numbers
# One column a case; each cell a median over repetitions, with its 95 % interval.

# %%
describe.headlines(result)

# %% [markdown]
# ## What was run
# Two containers over virtio-user. The switch fills the receiver's ring by one copy in either case; the copy out of the sender's ring is
# what zero copy leaves out.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Published beside ours
# T7 (Loftus, 2016) reports, vhost to vhost with DPDK 16.11-rc2, 2,094,554 to 2,415,784 packets/s at 1518 B (+15 %), and that it is not
# suitable below about 512 B. DPDK took the feature out in 20.11; here it is vhost-switch's own.

# %%
figures.show(result, "published")

# %% [markdown]
# ## Throughput
# By frame size, with and without the copy.

# %%
figures.show(result, "throughput")

# %% [markdown]
# ## Cycles by stage
# Zero copy takes the copy out of *dequeue*. What it costs instead is keeping book of each borrowed buffer, and giving it back once the
# last user is done; and the copy that remains, in *enqueue*, reads the sender's memory first-hand, so a miss that dequeue had moves there.

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
# - *Which crossover*: packets carried are what the whole path allows, its endpoints too; the thread's cycles are its own, and in the emulated
#   lab the emulator's; the modelled switch's are estimates for the processor that is named, with polls that found nothing taken out.
# - *Why a crossover*: a copy costs by the byte, keeping book by the frame. Where the frame's bytes are still in a cache, the copy that is
#   saved was a cheap one.

# %%
reading.notes(result)

# %% [markdown]
# And for this very result:

# %%
describe.limits(result)
