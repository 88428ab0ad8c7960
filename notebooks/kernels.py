# %% [markdown]
# # Did kernel OVS get quicker from kernel to kernel?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import differential, explain, sections

report = sections.begin(
    result_dir,
    explain.answer,
    "Two endpoints on one host, joined by kernel OVS. Only the kernel comes from another Debian suite: Open vSwitch's daemons, QEMU and the "
    "traffic's programs stay the same. The virtual machines run the host's kernel.",
)
report.throughput_and_loss("At saturation the sender sends as fast as it can.")

# %%
report.cycles()

# %% [markdown]
# ## Which instructions and misses changed
# Each kernel beside the one before it in the experiment, by function of the kernel.

# %%
sections.show(differential.table(report.result, differential.KERNEL), *differential.graphs(report.result, differential.KERNEL))
report.context_switches()
report.cpu_use()
report.explanation(explain.markdown(report.result))
report.rest(sections.EQUAL_BUDGET)
