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
# # The switch crashes and comes back: do its endpoints?

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
describe_frames.restarted(result)

# %% [markdown]
# ## The answer in numbers
# One row a case. The switch gets SIGKILL while frames flow, and is started again at once.

# %%
describe_frames.restarts(result)

# %%
figures.show(result, "outage")

# %% [markdown]
# The outage is the switch's own start and the reconnection, which may be over before the switch says that it runs: a switch that is client
# looks for its sockets again and again, DPDK's librte_vhost once a second. What lay in the sender's ring when the switch died may be delivered
# by the next one, late, and is not lost then; it is lost where the receiver's port is not up yet.

# %% [markdown]
# ## Published beside ours
# T5, in the words of our notes:

# %%
describe_frames.published("T5")

# %% [markdown]
# What differs: T5's endpoints were virtual machines, whose QEMU does not connect again by itself in server mode (later ones can be told to, by
# `reconnect`). Ours are containers over virtio-user, which as client connects once, when it is started. In both, it is the endpoint that would have to
# look for the switch. An endpoint that is served again after a server's restart is one that was restarted, too.

# %% [markdown]
# ## What was run
# Windows before the kill show the path as it was. Both ends are frame-probe's ports, which stay up all the time.

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
