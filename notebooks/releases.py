# %% [markdown]
# # Did the mergeable path get quicker from release to release?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import differential, explain, sections

report = sections.begin(result_dir, explain.answer)
report.headlines()
report.what_was_run(
    "Frames come by a network card to the switch, the switch hands them to a virtual machine, and the machine sends them back with new "
    "addresses. Only the switch's programs come from another release: the host, its kernel and the machine stay the same.",
)

# %%
report.published(
    "T10 (Yao Lei, 2017) reports nearly 20 % from DPDK 16.07 to 17.05, with a dip at 16.11. Those releases are no longer packaged, so the "
    "published figure is of other releases than ours. It had a wire of 10 Gbit/s, and changed both ends.",
)

# %% [markdown]
# ## Throughput
# Packets that came back.

# %%
report.figures("throughput")

# %% [markdown]
# ## Which instructions and misses changed
# Each release beside the one before it. Debian's programs are stripped: what they export has a name, and the rest of a file is one sum.

# %%
sections.show(differential.table(report.result), *differential.graphs(report.result))
report.stages(
    "The switch's own code is the same source in each release, compiled by that release's compiler. What differs is DPDK's. OVS-DPDK has no "
    "such counters, and no bar here.",
)
report.of_options(
    "*A release changes more than DPDK*: Open vSwitch, the compiler and the C library come with it.",
    "*The card is QEMU's*, without PCIe and without DMA into the caches: docs/limitations.md.",
)
