# %% [markdown]
# # The switch crashes and comes back: do its endpoints?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import describe_frames, figures, sections

report = sections.begin(result_dir, describe_frames.restarted)

# %% [markdown]
# ## The answer in numbers
# One row per case. The switch gets SIGKILL while frames flow, and starts again at once.

# %%
sections.show(describe_frames.restarts(report.result), figures.show(report.result, "outage"))

# %% [markdown]
# The outage is the switch's own start and the reconnection, which may be over before the switch says that it runs: a switch that is client
# looks for its sockets again and again, DPDK's librte_vhost once a second. What lay in the sender's ring when the switch died may be
# delivered late by the next one, and is not lost then. It is lost where the receiver's port is not up yet.

# %% [markdown]
# ## Published beside ours
# T5, in the words of our notes:

# %%
sections.show(describe_frames.published("T5"))

# %% [markdown]
# What differs: T5's endpoints were virtual machines, whose QEMU did not connect again by itself in server mode. Ours are virtual machines
# (vhost-user), whose QEMU looks for the switch again (`reconnect`), and containers (virtio-user), which as client connect once, when they
# start. A switch that was killed leaves its socket behind: Open vSwitch can't bind to it again, vhost-switch removes it.

# %%
report.what_was_run("Windows before the kill show the path as it was. Both ends are frame-probe's ports, which stay up all the time.")
report.rest()
