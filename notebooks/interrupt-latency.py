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
# # What does it cost a frame that the switch sleeps?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, describe_frames, everything, figures, reading
from analysis.load import load

result = load(result_dir)
describe.question(result)

# %%
describe_frames.answer(result)

# %% [markdown]
# ## The answer in numbers
# One row a case. CPU use is that of the switch's worker alone, as a share of one CPU; the latency is one way, from the sender's ring to the
# receiver's.

# %%
describe_frames.worker(result)

# %% [markdown]
# ## Latency
# A polling worker finds a frame within one round. One that sleeps must be woken first: by a system call of the sender, an interrupt to its CPU,
# and the scheduler. One that shares its CPU waits for its turn as well, unless its priority puts it before the other.
#
# A neighbour that never sleeps has a good side, too: its CPU is never halted. A worker that is put before it (`sched=fifo`) is woken on a CPU that
# runs, and that can be faster than on one of its own, which must come back from the state into which the processor, or the hypervisor, had put it.

# %%
figures.show(result, "frame_latency")

# %% [markdown]
# ## CPU use
# cpu1 is the worker's. With `cpu_sharing=shared` a process that never sleeps runs there, too: the table above tells the two apart.

# %%
figures.show(result, "cpu_use")

# %% [markdown]
# ## Context switches
# A worker that polls alone on its CPU is never switched; one that sleeps is switched for each frame.

# %%
figures.show(result, "context_switches")

# %% [markdown]
# ## Published beside ours
# T11, in the words of our notes:

# %%
describe_frames.published("T11")

# %%
figures.show(result, "published")

# %% [markdown]
# What differs, and what can't be compared:
#
# - *C-states.* T11's latencies rise with the deepest sleep state that the processor may enter (14 us in C0, 87.7 us in C6): its average after
#   the change is that of C0, so the change was probably one of sleep states; our notes do not say. Here it is the option `deepest_idle`. In
#   modelled time each state takes the profile's time to leave, and is taken where a sleep lasts long enough to pay for it: of 350 us that is
#   C3, and not C6, on Haswell-EP. Linux's governor guesses how long a sleep will be, and can take C6 there. A virtual machine sees no
#   C-states: natively on one these cases are left out, and what its hypervisor takes to bring an idle CPU back is in all numbers.
# - *Path.* T11 measured from a network card to a worker and back; here a frame goes from one virtqueue to another, without a card.
# - *Setting.* T11 sleeps after 300 us of nothing, with a frame each 350 us: that is `rx=adaptive` here. `rx=interrupt` sleeps at once.
# - *Sharing.* T11 names the case and our notes have no figure of it.

# %% [markdown]
# ## What was run
# Both ends of the path are frame-probe's ports: it stamps a frame when it is handed over and when it is found, by one clock.

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

# %%
reading.notes(result)

# %% [markdown]
# And for this very result:

# %%
describe.limits(result)
