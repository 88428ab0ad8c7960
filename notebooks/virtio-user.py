# %% [markdown]
# # Containers over virtio-user, beside veth and virtual machines

# %% tags=["parameters"]
# SPDX-License-Identifier: GPL-2.0-or-later
result_dir = "results/latest"

# %%
from vsprof.analysis import explain, sections

report = sections.begin(
    result_dir,
    explain.answer,
    "Over veth a container's frames go through the kernel's network stack and bridge, in softirqs. Over virtio-user they go through memory "
    "that the container shares with the poll-mode switch, as a virtual machine's do over vhost-user.",
)

# %%
report.published(
    "T8 (Loftus, 2016) says that vhost-user works for containers, without a number. Here it stands beside veth, and beside virtual "
    "machines where they boot.",
)
report.throughput("testpmd sends the flood in both kinds of container: out of a packet socket over veth, out of the ring over virtio-user.")
report.no_drop()
report.context_switches()
sections.show(explain.markdown(report.result))
report.of_options(
    "*Which switch*: the kernel's bridge has no virtio-user, and OVS-DPDK no veth that it polls. Access and switch change together.",
)
