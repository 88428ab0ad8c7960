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
# # OVS-DPDK's own vhost ports, or DPDK's vhost driver?

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
# One switch; a port is either OVS's `dpdkvhostuserclient`, or a DPDK device `net_vhost` on the same kind of socket.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Published beside ours
# T6 (Loftus, 2016) saw "little difference in performance", without a number: the band is what the words allow.

# %%
figures.show(result, "published")

# %% [markdown]
# ## Throughput
# The same library moves the frames, so a difference is the layer in between: the driver's own loop over a burst, and its counters.

# %%
figures.show(result, "throughput")

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
