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
# # VM to host over OVS-DPDK: what brings it down, and what mends it

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
import os

result_dir = os.environ.get("VSPROF_RESULT", "results/latest")

# %%
from analysis import describe, describe_frames, everything, explain_causes, figures
from analysis.load import load

result = load(result_dir)
describe.question(result)

# %%
describe.Text(explain_causes.answer(result))

# %% [markdown]
# ## What was published
# T2's authors saw 4.72 Mbit/s and 22 times the context switches, and left it unexplained. Their set-up is known in outline alone, so nothing
# here can prove what theirs was; what can be shown is which set-up has that effect, and which has not.

# %%
describe_frames.published("T2")

# %%
figures.show(result, "published")

# %% [markdown]
# ## The suspects and the remedies
# All frames of the virtual machine go through OVS-DPDK to the host's own network stack. The bridge's *local port* is a tap: the poll-mode
# thread writes each frame to it by a system call; what the host sends back, TCP's acknowledgements among it, is read by the *main thread* of
# ovs-vswitchd, which sleeps between frames and has all the daemon's other work. Each row of the table changes one thing of that, or two at once
# to see whether they need each other:
#
# - `main_thread=pmd-cpu`: the main thread has no CPU of its own, but that of the poll-mode thread, which never sleeps. Its opposite, separate
#   CPUs, is what all rows have that do not name it.
# - `sched=…`: the poll-mode thread comes before all other threads of its CPU. With `nice` (niceness -20) it weighs 87 times as much as one of
#   niceness 0; with `fifo` it is a real-time thread, and Linux leaves 5 % of the CPU to the others. Where the main thread is on another CPU it
#   should change nothing.
# - `offloads=off`: virtual machine and host make checksums and cut segments themselves (ethtool -K on both ends, the tap among them).
# - `tcp_window=…`: small buffers at both ends of the TCP connection (iperf3 -w), so that few bytes may be under way.
# - `tso=on`: TCP segmentation offload in the user-space datapath (other_config:userspace-tso-enable).
# - `local_port=virtio-user`: in the tap's place a device of DPDK's, served by the kernel's vhost-net; the poll-mode thread reads and writes it.
# - `local_port=afxdp`: in its place a veth pair through AF_XDP, again served by the poll-mode thread. AF_XDP hands on neither a checksum that is
#   still to be made nor a segment that is still to be cut, so the host's end makes both itself: set it beside `offloads=off`, too.

# %%
explain_causes.table(result)

# %%
figures.show(result, "causes")

# %% [markdown]
# ## Each change, switched on and off
# Made from the numbers above, those that matter most first. Two cases that differ in one thing; where the data does not support a claim, it
# says so.

# %%
describe.Text(explain_causes.markdown(result))

# %% [markdown]
# ## Context switches by role
# The role `switch` is ovs-vswitchd with all its threads; `vhost` is the worker of vhost-net where a port has one; `host-other` is the
# host's receiver, and vsprof's own probes.

# %%
figures.show(result, "context_switches")

# %% [markdown]
# ## Where the time goes
# Which CPU spends its time on what.

# %%
figures.show(result, "cpu_use")

# %% [markdown]
# ## Latency
# Requests at a low, fixed rate: no queues, so what shows is how long it takes until the main thread is awake, and has a CPU.

# %%
figures.show(result, "latency")

# %% [markdown]
# ## What was run
# One endpoint talks to the host's own network stack. Which offloads each end really had is in the manifest (`facts.cases`).

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
# - *Demonstrated* is what was switched on and off with all else as it was. That a set-up collapses as the published one did does not show that
#   the published one was set up so.
# - *Emulated lab*: on the testbed `lab` all software is the real thing and the processor is emulated. Rates and waiting times depend on how fast
#   the emulator runs each kind of instruction: a ratio of them may not carry over. Who sleeps, who is woken and who waits for whom does.
# - *Emulated virtual machine*: where KVM boots no guest, QEMU emulates the guest's code on a real host. Its virtio device, and all that the
#   host does for it, is as with KVM; how fast it sends and answers is not.
# - *Main thread's time*: `running` and `waiting` are the kernel's own account (schedstat); what is neither is sleep.
# - *Rounding* happens only when shown; `measurements.parquet` holds every number as it was measured.
#
# And for this very result:

# %%
describe.limits(result)
