# %% [markdown]
# # VM to host: why is OVS-DPDK worse here?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, figures, reading, sections
result = sections.begin(result_dir, explain.answer)
sections.headlines(result)
sections.what_was_run(result, "One VM talks to the host's own network stack through the bridge's local port.")

# %% [markdown]
# ## Throughput and loss
# The receiver is the host itself. With OVS-DPDK the local port is a tap device, outside the poll-mode path.

# %%
sections.show(figures.show(result, "throughput"), figures.show(result, "loss_per_hop"))
sections.no_drop(result)

# %%
sections.cycles(result)

# %% [markdown]
# ## Context switches
# T2's authors saw 22 times as many with OVS-DPDK and left it unexplained. The role `switch` is ovs-vswitchd with all its threads;
# `host-other` is the host's receiver.

# %%
sections.show(figures.show(result, "context_switches"))
sections.cpu_use(result)
sections.polling(result)
sections.latency(result)

# %%
sections.published(result, "T2 (ACANETS, DPDK Summit 2016): throughput hundreds of times lower, 22 times as many context switches.")

# %%
sections.explanation(result, explain.markdown(result))
sections.rest(result, [reading.EQUAL_BUDGET])
