# %% [markdown]
# # VM to host over OVS-DPDK: what slows it down, and what helps

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import describe_frames, explain_causes, figures, sections

report = sections.begin(result_dir, explain_causes.answer)

# %% [markdown]
# ## What was published
# T2's authors saw 4.72 Mbit/s and 22 times the context switches, and left it unexplained. Their set-up is known in outline alone, so nothing
# here can prove what theirs was. What can be shown is which set-up has that effect, and which has not.

# %%
sections.show(describe_frames.published("T2"), figures.show(report.result, "published"))

# %% [markdown]
# ## The suspects and the remedies
# All frames of the virtual machine go through OVS-DPDK to the host's own network stack. The bridge's *local port* is a tap: the poll-mode
# thread writes each frame to it by a system call. What the host sends back, TCP's acknowledgements among it, is read by the *main thread* of
# ovs-vswitchd, which sleeps between frames and has all the daemon's other work. Each row of the table changes one thing, or two at once
# to see whether they need each other:
#
# - `main_thread=pmd-cpu`: the main thread shares the CPU of the poll-mode thread, which never sleeps. All rows that do not name it have
#   separate CPUs.
# - `sched=…`: the poll-mode thread comes before all other threads of its CPU. With `nice` (niceness -20) it weighs 87 times as much as one of
#   niceness 0; with `fifo` it is a real-time thread, and Linux leaves 5 % of the CPU to the others. Where the main thread is on another CPU it
#   should change nothing.
# - `offloads=off`: virtual machine and host make checksums and cut segments themselves (ethtool -K on both ends, the tap among them).
# - `tcp_window=…`: small buffers at both ends of the TCP connection (iperf3 -w), so that few bytes are in flight.
# - `tso=on`: TCP segmentation offload in the user-space datapath (other_config:userspace-tso-enable).
# - `local_port=virtio-user`: in the tap's place a DPDK device, served by the kernel's vhost-net; the poll-mode thread reads and writes it.
# - `local_port=afxdp`: in its place a veth pair through AF_XDP, again served by the poll-mode thread. AF_XDP passes on neither a checksum
#   nor a segment that is still to be made, so the host's end makes both itself: compare it with `offloads=off`, too.

# %%
sections.show(describe_frames.by_case(report.result, "TCP stream, unless it says otherwise"), figures.show(report.result, "causes"))

# %% [markdown]
# ## Each change, switched on and off
# Made from the numbers above, those that matter most first. Each compares two cases that differ in one thing. Where the data does not
# support a claim, the text says so.

# %%
sections.show(explain_causes.markdown(report.result))
report.context_switches(
    "The role `switch` is ovs-vswitchd with all its threads; `vhost` is the worker of vhost-net where a port has one; `host-other` is the "
    "host's receiver, and vsprof's own probes.",
)
report.cpu_use()
report.latency(
    "Requests at a low, fixed rate. There are no queues, so this is how long it takes until the main thread is awake and has a CPU.",
)
report.what_was_run(
    "One endpoint talks to the host's own network stack. The offloads that each end really had are in the manifest (`facts.cases`)."
)
report.rest(
    "*Demonstrated* is what was switched on and off with all else as it was. A set-up here that collapses as the published one did does "
    "not show that the published one was set up so.",
    "*Emulated virtual machine*: where KVM boots no guest, QEMU emulates the guest's code on a real host. Its virtio device, and all that "
    "the host does for it, is as with KVM; how fast it sends and answers is not.",
    "*Main thread's time*: `running` and `waiting` are the kernel's own account (schedstat); the rest is sleep.",
)
