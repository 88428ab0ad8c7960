# %% [markdown]
# # VM to VM: kernel OVS or OVS-DPDK?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, explain_published, figures, reading, sections
result = sections.begin(
    result_dir, explain.answer, "Two VMs on one host, joined by one switch. One CPU moves packets, whatever the switch."
)
sections.throughput_and_loss(
    result,
    "At saturation the sender sends as fast as it can. At the equal rate all switches are offered the same packets. At a no-drop rate each "
    "is offered what it was seen to deliver.",
)

# %%
sections.cycles(result)

# %%
sections.context_switches(result)
sections.timeline(result)
sections.cpu_use(result)
sections.polling(result)
sections.latency(result)

# %% [markdown]
# ## Published beside ours
# T1 (ACANETS, DPDK Summit 2016) reports up to 8 times the throughput of kernel OVS for OVS-DPDK, and about 10 times fewer context switches.
# From a processor's counters it also reports an L1 miss rate 103 times lower, and a TLB miss rate 9 times lower.

# %%
sections.show(figures.show(result, "published"), figures.show_counted(result, "published_model"))

# %% [markdown]
# T1's four ratios beside ours, and why they differ, as far as something that was counted here shows it:

# %%
sections.show(explain_published.markdown(result))
sections.explanation(result, explain.markdown(result))
sections.rest(result, reading.EQUAL_BUDGET)
