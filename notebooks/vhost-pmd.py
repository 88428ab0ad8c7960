# %% [markdown]
# # OVS-DPDK's own vhost ports, or DPDK's vhost driver?

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections

report = sections.begin(
    result_dir,
    explain.answer,
    "One switch. A port is either OVS's `dpdkvhostuserclient`, or a DPDK device `net_vhost` on the same kind of socket.",
)

# %%
report.published('T6 (Loftus, 2016) saw "little difference in performance", without a number. The band is what these words allow.')
report.throughput(
    "The same library moves the frames. So a difference comes from the layer in between: the driver's own loop over a burst, and its "
    "counters.",
)
report.of_options()
