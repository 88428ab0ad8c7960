# %% [markdown]
# # Zero copy: from which frame size on?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain_dataplane, sections

report = sections.begin(
    result_dir,
    lambda found: explain_dataplane.crossover(found, "dequeue", "copy", "zero-copy"),
    "Two endpoints with DPDK. In both cases the switch copies once to fill the receiver's ring. Zero copy leaves out the copy out of the "
    "sender's ring.",
)

# %%
report.published(
    "T7 (Loftus, 2016) reports, vhost to vhost with DPDK 16.11-rc2, 2,094,554 to 2,415,784 packets/s at 1518 B (+15 %), and that it does "
    "not pay below about 512 B. DPDK took the feature out in 20.11; here it is vhost-switch's own.",
)
report.throughput("By frame size, with and without the copy.")
report.stages(
    "Zero copy takes the copy out of *dequeue*. In its place the switch keeps account of each borrowed buffer, and gives it back when the "
    "last user is done. The copy that remains, in *enqueue*, is the first to read the sender's memory, so misses move there from dequeue.",
)
report.of_options(
    "*Which crossover*: the packets that arrive are what the whole path allows, its endpoints included. The thread's cycles are its own, "
    "in the lab by the modelled processor's clock. The switch's estimated cycles are the model's, without polls that found nothing.",
    "*Why a crossover*: a copy costs by the byte, the account by the frame. Where the frame's bytes are still in a cache, the copy that is "
    "saved was cheap.",
)
