# %% [markdown]
# # How a guest reaches the switch: virtio-net, vhost-net, vhost-user

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections

report = sections.begin(
    result_dir,
    explain.answer,
    "The same two VMs reach the switch in three ways: through QEMU in user space, through a kernel worker, or by memory shared with a "
    "poll-mode switch.",
)

# %% [markdown]
# ## Packet rates
# T3 (Loftus, OVS conference 2016) measured the three on a Xeon. Ours stand beside them, each on its own axis.

# %%
report.figures("access_rates")
report.throughput_and_loss("The other loads, and where packets are lost.")
report.cycles()
report.context_switches("With virtio-net, QEMU's main loop has the role `vhost`: it does from user space what a vhost worker does.")
report.timeline()
report.cpu_use()
report.polling()
report.latency()
report.published("Ratios of packet rates. They compare better across machines than rates do.")
report.explanation(explain.markdown(report.result), words="Each access method is explained against the one before it.")
report.rest(sections.EQUAL_BUDGET)
