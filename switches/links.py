# SPDX-License-Identifier: GPL-2.0-or-later
"""Interfaces of the host that a switch in the kernel takes as ports."""

from collections.abc import Sequence

from vsprof.switches import messages
from vsprof.switches.base import Port
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import wire
from vsprof.testbeds.base import Testbed

VHOST_NET = "/dev/vhost-net"
OUTER = "e"
"""Ends the name of a veth pair's other end, which is the endpoint's."""

# Threaded NAPI, which a veth has while GRO is on, and for frames alone whose sender cuts no segments (veth_skb_is_eligible_for_gro in
# Linux's drivers/net/veth.c). The thread is there once the interface is up.
RECEIVE_IN_THREAD = """
set -e
ethtool -K {outer} tso off
ethtool -K {name} gro on
ip link set {name} up
echo 1 > /sys/class/net/{name}/threaded
thread=$(grep -l '^napi/{name}-' /proc/[0-9]*/comm)
taskset --pid --cpu-list {cpu} $(basename $(dirname $thread))
"""


def add(host: Testbed, name: str, access: str, cpu: int | None, queues: int = 1) -> Port:
    """Make the interface ``name``: a tap of so many ``queues`` for a virtual machine, or one end of a veth pair, whose frames are received
    on ``cpu``; None: on the CPU that sends them. Raises ``RunFailed`` where the kernel lets ``cpu`` receive none."""
    if access == "veth":
        host.run(f"ip link add {name} type veth peer name {name}{OUTER}")
        if cpu is not None:
            _receive_on(host, name, cpu)
        port = Port(name, access, f"{name}{OUTER}")
    else:
        # vnet_hdr: without it the tap passes no checksum or segmentation offload between guests, unlike any real set-up.
        host.run(f"ip tuntap add {name} mode tap vnet_hdr{' multi_queue' if queues > 1 else ''}")
        port = Port(name, access, name)
    silence(host, name)
    host.run(f"ip link set {name} up")
    return port


def _receive_on(host: Testbed, name: str, cpu: int) -> None:
    """Else the sender's own CPU would do the switch's work, and nobody could tell the two apart: by RPS, or on an isolated CPU, for which
    kernels refuse that, by a thread of the interface's own."""
    done = host.run(f"echo {1 << cpu:x} > /sys/class/net/{name}/queues/rx-0/rps_cpus", check=False)
    if done.status != 0:
        done = host.run(RECEIVE_IN_THREAD.format(name=name, outer=f"{name}{OUTER}", cpu=cpu), check=False)
    if done.status != 0:
        host.run(f"ip link delete {name}", check=False)
        raise messages.receives_nothing(cpu, name, done.stderr)


def take_card(host: Testbed, interface: str, address: str, name: str, cpus: Sequence[int], queues: int) -> None:
    """Rename a network card's ``interface``, let it receive by so many ``queues``, and let ``cpus`` take their interrupts in turn: the
    switch does all its work there. QEMU's card has one queue more, which no frame is for: with room in that one, it drops what another has
    no room for (see ``wire.drop_when_full``, which can't be used beside the kernel's driver). Raises ``RunFailed``."""
    rings, spread = (queues + 1, f"; ethtool -X {name} equal {queues}") if host.cards_emulated else (queues, "")
    host.run(
        f"set -e; ip link set {interface} down name {name}; ethtool -L {name} combined {rings}; ip link set {name} promisc on up{spread}"
    )
    wire.steer_interrupts(host, address, *cpus)
    silence(host, name)


def remove(host: Testbed, names: list[str]) -> None:
    """Delete the interfaces ``names``, and forget them. The other end of a veth pair goes with its own."""
    for name in names:
        host.run(f"ip link delete {name}", check=False)
    names.clear()


def silence(host: Testbed, interface: str) -> None:
    """Keep the host's own IPv6 announcements out of an interface whose frames are counted."""
    host.run(f"echo 1 > /proc/sys/net/ipv6/conf/{interface}/disable_ipv6", check=False)


def vhost_net_lacking(host: Testbed) -> str | None:
    """Why the kernel can't serve virtqueues itself (vhost-net), or None."""
    done = host.run(f"[ -c {VHOST_NET} ] || {{ modprobe vhost_net && [ -c {VHOST_NET} ]; }}", check=False)
    return testbeds_messages.kernel_lacks("vhost_net", done.stderr) if done.status != 0 else None
