# %% [markdown]
# # VM to host: why is OVS-DPDK worse here?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections

report = sections.begin(result_dir, explain.answer, "One VM talks to the host's own network stack through the bridge's local port.")
report.throughput_and_loss("The receiver is the host itself. With OVS-DPDK the local port is a tap device, outside the poll-mode path.")

# %%
report.cycles()
report.context_switches(
    "T2's authors saw 22 times as many with OVS-DPDK and left it unexplained. The role `switch` is ovs-vswitchd with all its threads; "
    "`host-other` is the host's receiver.",
)
report.timeline()
report.cpu_use()
report.polling()
report.latency()
report.published("T2 (ACANETS, DPDK Summit 2016): throughput hundreds of times lower, 22 times as many context switches.")
report.explanation(explain.markdown(report.result))
report.rest(sections.EQUAL_BUDGET)
