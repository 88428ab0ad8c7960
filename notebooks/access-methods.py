# %% [markdown]
# # How a guest reaches the switch: virtio-net, vhost-net, vhost-user

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, figures, reading, sections
result = sections.begin(result_dir, explain.answer)
sections.headlines(result)
sections.what_was_run(
    result,
    "The same two VMs reach the switch in three ways: through QEMU in user space, through a kernel worker, or by memory shared with a "
    "poll-mode switch.",
)

# %% [markdown]
# ## Packet rates
# T3 (Loftus, OVS conference 2016) measured the three on a Xeon. Ours stand beside them, each on its own axis.

# %%
sections.show(figures.show(result, "access_rates"))

# %% [markdown]
# ## Throughput and loss
# The other loads, and where packets are lost.

# %%
sections.show(figures.show(result, "throughput"), figures.show(result, "loss_per_hop"))
sections.no_drop(result)

# %%
sections.cycles(result)

# %% [markdown]
# ## Context switches
# With virtio-net, QEMU's main loop has the role `vhost`: it does from user space what a vhost worker does.

# %%
sections.show(figures.show(result, "context_switches"))
sections.cpu_use(result)
sections.polling(result)
sections.latency(result)

# %%
sections.published(result, "Ratios of packet rates. They compare better across machines than rates do.")

# %%
sections.explanation(result, explain.markdown(result), words="Each access method is explained against the one before it.")
sections.rest(result, [reading.EQUAL_BUDGET])
