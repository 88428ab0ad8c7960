# %% [markdown]
# # VM to VM: kernel OVS or OVS-DPDK?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, figures, published, sections

report = sections.begin(
    result_dir, explain.answer, "Two VMs on one host, joined by one switch. One CPU moves packets, whatever the switch."
)
report.throughput_and_loss(
    "At saturation the sender sends as fast as it can. At the equal rate all switches are offered the same packets. At a no-drop rate each "
    "is offered what it was seen to deliver.",
)

# %%
report.cycles()
report.context_switches()
report.timeline()
report.cpu_use()
report.polling()
report.latency()

# %% [markdown]
# ## Published beside ours
# T1 (ACANETS, DPDK Summit 2016) reports up to 8 times the throughput of kernel OVS for OVS-DPDK, and about 10 times fewer context switches.
# From a processor's counters it also reports an L1 miss rate 103 times lower, and a TLB miss rate 9 times lower.

# %%
sections.show(figures.show(report.result, "published"), figures.show_counted(report.result, "published_model"))

# %% [markdown]
# T1's four ratios beside ours, and why they differ, as far as something that was counted here shows it:

# %%
sections.show(published.markdown(report.result))
report.explanation(explain.markdown(report.result))
report.rest(sections.EQUAL_BUDGET)
