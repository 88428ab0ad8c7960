# SPDX-License-Identifier: GPL-2.0-or-later
"""Tunnels between the two ends of each pair, as between two hosts, though both are on one: each frame is encapsulated, and taken out again.

The bridge has two tunnel ports. What the first ends (p1, p3, …) send goes out by ``tunnel0``, from OUTER[0] to OUTER[1], and comes in by
``tunnel1``; what the second ends send goes the other way. Between lies an underlay: a veth pair with the kernel's datapath, whose tunnels
are the kernel's own; two bridges with a patch between them in user space, where Open vSwitch does it all in one pass of the packet.
"""

import shlex
from collections.abc import Iterator, Mapping

OPTIONS: Mapping[str, tuple[str, ...]] = {"tunnel": ("none", "vxlan", "geneve")}
"""For a switch to declare."""
NONE = OPTIONS["tunnel"][0]
PORTS = ("tunnel0", "tunnel1")
_NET = "10.78.0"
OUTER = (f"{_NET}.1", f"{_NET}.2")
"""The tunnels' own addresses."""
FIRST = ("p1", "p3", "p5", "p7")
"""The ports of the first ends of pairs; the host is a second end."""
KEY = 78
"""VXLAN's and Geneve's network identifier."""
_END = "under"
UNDERLAY = (f"{_END}0", f"{_END}1")
MTU = 1600
"""Room for the outer headers, 50 bytes of either kind."""
# The second address is this host's own, too. By its usual rules Linux would hand a frame over at once, without a header around it: so what
# is sent from the first to the second, and back, leaves by its end of the pair, and local addresses are looked for after that.
KERNEL = f"""
set -e
ip link add {UNDERLAY[0]} type veth peer name {UNDERLAY[1]}
ip rule add pref 100 lookup local
ip rule del pref 0
for end in 0 1; do
    other=$((1 - end))
    ip link set {_END}$end mtu {MTU} up
    ip addr add {_NET}.$((end + 1))/32 dev {_END}$end
    ip route add {_NET}.$((other + 1)) dev {_END}$end src {_NET}.$((end + 1)) table $((101 + end))
    ip rule add pref $((10 + end)) iif lo from {_NET}.$((end + 1)) to {_NET}.$((other + 1)) lookup $((101 + end))
    for setting in accept_local=1 rp_filter=0; do
        echo ${{setting#*=}} > /proc/sys/net/ipv4/conf/{_END}$end/${{setting%=*}}
    done
done
echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter
for end in 0 1; do
    other=$((1 - end))
    ip neigh add {_NET}.$((other + 1)) lladdr $(cat /sys/class/net/{_END}$other/address) dev {_END}$end nud permanent
done
"""
"""A shell script that makes the underlay of the kernel's tunnels, on a host or in a namespace that is thrown away afterwards."""


def ports(kind: str, *, kernel: bool) -> Iterator[str]:
    """``ovs-vsctl``'s settings of the two tunnel ports, each behind ``add-port BRIDGE NAME -- set Interface NAME``."""
    for local, remote in (OUTER, OUTER[::-1]):
        # Open vSwitch itself sends from a given address only where its host calls that its own: see ``user_space``.
        source = f" options:local_ip={local}" if kernel else ""
        yield f"type={kind}{source} options:remote_ip={remote} options:key={KEY}"


def forward(mac: str, port: str) -> Iterator[str]:
    """What the table of addresses knows of the ``port`` behind which ``mac`` is: whoever sends there is at the other end of the tunnels,
    and what comes out of them is for this end."""
    second = int(port not in FIRST)
    yield f"priority=2,in_port={PORTS[second]},dl_dst={mac},actions=output:{port}"
    yield f"priority=1,dl_dst={mac},actions=output:{PORTS[1 - second]}"


def user_space(vsctl: str, appctl: str) -> str:
    """A shell command that makes the underlay of Open vSwitch's own tunnels, also where it was there before. ``vsctl``, ``appctl``: how
    these programs are called."""
    lines = ["set -e"]
    for end, name in enumerate(UNDERLAY):
        patch = f"{name}-patch"
        lines += [
            f"{vsctl} --may-exist add-br {name} -- set bridge {name} datapath_type=netdev -- --may-exist add-port {name} {patch}"
            f" -- set interface {patch} type=patch options:peer={UNDERLAY[1 - end]}-patch",
            f"ip addr replace {OUTER[end]}/24 dev {name}; ip link set {name} mtu {MTU} up",
            # What is the host's own, Open vSwitch sends to where it is: it would find the other end at the wrong bridge.
            f"ip route del table local local {OUTER[end]} dev {name} 2>/dev/null || true",
        ]
    for end, name in enumerate(UNDERLAY):
        other, address = UNDERLAY[1 - end], OUTER[1 - end]
        lines += [
            f"{appctl} ovs/route/add {address}/32 {name} > /dev/null",
            f"{appctl} tnl/neigh/set {name} {address} $(cat /sys/class/net/{other}/address) > /dev/null",
        ]
    return shlex.join(["bash", "-c", "\n".join(lines)])
