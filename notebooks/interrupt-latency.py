# %% [markdown]
# # What does it cost a frame that the switch, or the machine behind it, sleeps?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import describe_frames, figures, sections

report = sections.begin(result_dir, describe_frames.answer)

# %% [markdown]
# ## The answer in numbers
# One row per case. CPU use is that of the switch's worker alone, as a share of one CPU, or of the machine's processor that runs the program.
# The latency is one way, from the sender's ring to the receiver's; in the topology `p2p_paced` from card to card; in `pvp_paced` from a card
# through the machine and back to it. In modelled time the table has the stages of a wake-up, too. What a frame takes beside them is, between
# containers, the sender's system call before it, and the copies behind it; in `pvp_paced` the ways through the switch and the program.

# %%
sections.show(describe_frames.by_case(report.result, "paced frames"))

# %% [markdown]
# ## Latency
# A polling worker finds a frame within one round. A sleeping one must be woken first: by a system call of the sender or an interrupt of its
# network card, an interrupt to its CPU, and the scheduler. One that shares its CPU also waits for its turn, unless its priority puts it before the other.
#
# A neighbour that never sleeps has a good side, too: its CPU never halts. A worker with priority over it (`sched=fifo`) wakes on a CPU that
# runs. That can be faster than on a CPU of its own, which must first come back from the idle state that the processor or the hypervisor
# put it into.

# %%
report.figures("frame_latency")
report.cpu_use(
    "cpu1 is the switch's worker's, cpu2 the machine's in `pvp_paced`. With `cpu_sharing=shared` a process that never sleeps is on cpu1, too: "
    "the table above separates them."
)
report.context_switches("A worker that polls alone on its CPU is never switched. One that sleeps is switched for each frame.")

# %% [markdown]
# ## Published beside ours
# T11, in the words of our notes:

# %%
sections.show(describe_frames.published("T11"), figures.show(report.result, "published"))

# %% [markdown]
# What differs, and what can't be compared:
#
# - *C-states.* T11's latencies rise with the deepest sleep state that the processor may enter (14 us in C0, 87.7 us in C6). Its average after
#   the change is that of C0: a limit of sleep states is a part of that change, beside interrupts that go to the worker's CPU, that are not
#   throttled to one in 500 us, and whose handler is no thread. Here it is the option `deepest_idle`. In
#   modelled time each state takes the profile's time to leave, and is taken where a sleep lasts long enough to pay for it: of 350 us that is
#   C3, and not C6, on Haswell-EP. Linux's governor guesses how long a sleep will be, and can take C6 there. A virtual machine sees no
#   C-states: natively on one these cases are left out, and all numbers include what its hypervisor takes to bring an idle CPU back.
# - *Path.* T11 measured from a network card to a worker and back. So does `interrupt-wire` (topology `p2p_paced`), with emulated cards that
#   take no time of their own. In `interrupt-latency` a frame goes from one virtqueue to another, without a card. T11's machine had the card
#   to itself; in `interrupt-vm` a switch that polls hands frames from the card to the machine.
# - *Setting.* T11 sleeps after 300 us of nothing, with a frame each 350 us: that is `rx=adaptive` here. `rx=interrupt` sleeps at once.
# - *Sharing.* T11 names the case and our notes have no figure of it.

# %%
report.what_was_run(
    "Both ends of the path are frame-probe's ports. It stamps a frame when it hands it over and when it finds it, by one clock."
)
report.rest()
