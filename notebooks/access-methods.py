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
# # How a guest reaches the switch: virtio-net, vhost-net, vhost-user

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, describe_functions, everything, explain, explain_model, figures, reading, stacks
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
# The same two VMs, reaching the switch in three ways: through QEMU in user space, through a kernel worker, or by
# memory shared with a poll-mode switch.

# %%
describe.what(result)

# %%
describe.where(result)

# %% [markdown]
# ## Packet rates
# T3 (Loftus, OVS conference 2016) measured the three on a Xeon; ours stand beside them, each on its own axis.

# %%
figures.show(result, "access_rates")

# %% [markdown]
# ## Throughput and loss
# The other loads, and where packets are lost.

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
# With virtio-net, QEMU's main loop is the role `vhost`: it does what a vhost worker does, from user space.

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
# Ratios of packet rates, which can be compared across machines better than rates.

# %%
figures.show(result, "published")

# %% [markdown]
# ## Explanation
# Each access is explained against the one before it.

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
