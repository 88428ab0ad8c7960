# SPDX-License-Identifier: GPL-2.0-or-later
"""What of the kernel's modules a run may load on a real host, and how those go again that were not there before it."""

# The last two are loaded by the kernel itself: when ovs-vswitchd asks for time-outs of connections, and when DPDK's driver of Mellanox's
# cards looks for some, by netlink sockets, whatever the tables and cards.
MODULES = (
    "vxlan", "geneve", "openvswitch", "vhost_net", "veth", "bridge", "vfio_pci", "vfio_iommu_type1", "uio_pci_generic",
    "nfnetlink_cttimeout", "ib_core",
)  # fmt: skip
LOADED = "{ cut -d' ' -f1 /proc/modules 2>/dev/null || true; }"
"""A shell command that prints all that are loaded; nothing where the kernel knows no modules."""
UNLOAD = f"""
unload() {{
    local one below
    for one; do
        case " $before " in *" $one "*) continue ;; esac
        below=$(modinfo -F depends "$one" 2>/dev/null | tr ',-' ' _')
        rmmod "$one" 2>/dev/null && unload $below
    done
}}
[ -z "$before" ] || unload {" ".join(MODULES)}
"""
"""A shell script that unloads those of MODULES, and what they need, that are not in ``$before``, a line of names, and that nobody uses.
Where that is empty nobody wrote them down."""
