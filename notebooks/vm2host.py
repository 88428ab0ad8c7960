# %% [markdown]
# # VM to host: why is OVS-DPDK worse here?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, reading, sections
result = sections.begin(result_dir, explain.answer, "One VM talks to the host's own network stack through the bridge's local port.")
sections.throughput_and_loss(
    result, "The receiver is the host itself. With OVS-DPDK the local port is a tap device, outside the poll-mode path."
)

# %%
sections.cycles(result)

# %%
sections.context_switches(
    result,
    "T2's authors saw 22 times as many with OVS-DPDK and left it unexplained. The role `switch` is ovs-vswitchd with all its threads; "
    "`host-other` is the host's receiver.",
)
sections.timeline(result)
sections.cpu_use(result)
sections.polling(result)
sections.latency(result)
sections.published(result, "T2 (ACANETS, DPDK Summit 2016): throughput hundreds of times lower, 22 times as many context switches.")
sections.explanation(result, explain.markdown(result))
sections.rest(result, reading.EQUAL_BUDGET)
