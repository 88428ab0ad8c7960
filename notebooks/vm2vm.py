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
# # VM to VM: kernel OVS or OVS-DPDK?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, describe_functions, everything, explain, explain_model, explain_published, figures, reading, stacks
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
# Two VMs on one host, joined by one switch; one CPU moves packets, whatever the switch.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Throughput and loss
# At saturation the sender sends as fast as it can; at the equal rate both switches are offered the same packets; at a no-drop rate each is
# offered what it was seen to carry.

# %%
figures.show(result, "throughput")

# %%
figures.show(result, "loss_per_hop")

# %%
describe.search_heading(result)

# %%
figures.show_searched(result, "no_drop")

# %%
describe.searches(result)

# %% [markdown]
# ## Why: where the cycles of a packet went
# cycles per packet = instructions per packet × CPI (cycles per instruction). So the ratio of two cases' cycles is a product, and is taken
# apart here: into instructions and CPI, CPI into what the processor waited for, and the whole into the roles that spent it. It is told by a
# model of a processor inside the emulator, where that ran, and by the processor's own counters, where there are any; never by both at once.
# The model counts what the same software would make that processor do, in windows of its own; nothing of it is set against a software
# counter. Polls that found nothing are taken out, unless it says otherwise.

# %%
describe.modelled_processor(result)

# %%
describe.model_headlines(result)

# %%
figures.show_modelled(result, "decomposition")

# %%
figures.show_modelled(result, "cpi_stack")

# %%
figures.show_modelled(result, "misses")

# %%
figures.show_modelled(result, "model_roles")

# %% [markdown]
# In which functions that was. It is a flat profile: what a function called is not in it.

# %%
figures.show_modelled(result, "functions")

# %% [markdown]
# The functions with most misses per packet, in the same flood; medians. Of each processor, the functions with
# most of each kind are known; the rest is in the sums alone.

# %%
describe_functions.misses(result)

# %% [markdown]
# T1 also reports, from a processor's counters, an L1 miss rate 103x lower and a TLB miss rate 9x lower with OVS-DPDK.

# %%
figures.show_modelled(result, "published_model")

# %%
describe.Text(explain_model.markdown(result))

# %%
describe.hardware_heading(result)

# %%
describe.hardware_headlines(result)

# %%
figures.show_any(result, "hardware_decomposition")

# %%
figures.show_any(result, "hardware_per_packet")

# %%
figures.show_any(result, "hardware_misses")

# %% [markdown]
# ## Context switches
# Each one is a thread that had to wait, or was made to. Who makes them tells which part of the path sleeps.

# %%
figures.show(result, "context_switches")

# %% [markdown]
# ## Where the time goes
# Which CPU spends its time on what. The CPU that moves packets is the one to compare.

# %%
figures.show(result, "cpu_use")

# %%
stacks.show(result)

# %% [markdown]
# ## The poll-mode thread
# A poll-mode thread's CPU is always busy. What it found when it looked is what tells its load.

# %%
figures.show(result, "pmd")

# %% [markdown]
# ## Latency
# Requests at a low, fixed rate: no queues, so what shows is how long it takes to be noticed and served.

# %%
figures.show(result, "latency")

# %% [markdown]
# ## Published beside ours
# T1 (ACANETS, DPDK Summit 2016) reports up to 8x the throughput and about 10x fewer context switches for OVS-DPDK.

# %%
figures.show(result, "published")

# %% [markdown]
# T1's four ratios beside ours, and why they differ, as far as something that was counted here tells:

# %%
describe.Text(explain_published.markdown(result))

# %% [markdown]
# ## Explanation
# Made from the numbers above. Where the data does not support a claim, it says so.

# %%
describe.Text(explain.markdown(result))

# %% [markdown]
# ## Everything that was counted
# Each number that a collector or a traffic wrote, with its 95 % interval, whether a figure above shows it or not.

# %%
everything.show(result)

# %% [markdown]
# ## How to read this
# - *Equal budget*: one CPU moves packets in each case, so the cases differ in the switch and not in what it was given.

# %%
reading.notes(result)

# %% [markdown]
# And for this very result:

# %%
describe.limits(result)
