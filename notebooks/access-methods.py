# %% [markdown]
# # How a guest reaches the switch: virtio-net, vhost-net, vhost-user

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, figures, reading, sections
result = sections.begin(
    result_dir,
    explain.answer,
    "The same two VMs reach the switch in three ways: through QEMU in user space, through a kernel worker, or by memory shared with a "
    "poll-mode switch.",
)

# %% [markdown]
# ## Packet rates
# T3 (Loftus, OVS conference 2016) measured the three on a Xeon. Ours stand beside them, each on its own axis.

# %%
sections.show(figures.show(result, "access_rates"))
sections.throughput_and_loss(result, "The other loads, and where packets are lost.")

# %%
sections.cycles(result)

# %%
sections.context_switches(
    result, "With virtio-net, QEMU's main loop has the role `vhost`: it does from user space what a vhost worker does."
)
sections.timeline(result)
sections.cpu_use(result)
sections.polling(result)
sections.latency(result)
sections.published(result, "Ratios of packet rates. They compare better across machines than rates do.")
sections.explanation(result, explain.markdown(result), words="Each access method is explained against the one before it.")
sections.rest(result, reading.EQUAL_BUDGET)
