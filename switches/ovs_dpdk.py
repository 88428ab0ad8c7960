# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the DPDK datapath: a poll-mode thread (PMD) moves all frames in user space and never sleeps.

Ports are ``dpdkvhostuserclient``: the endpoint owns the socket, so that it survives a restart of the switch. With ``port_type: vhost-pmd``
they are DPDK devices (net_vhost), behind which the same vhost library does the same. With ``socket: server`` the switch owns the socket;
such a port is a ``dpdkvhostuser``, which Open vSwitch itself calls deprecated.

On a host of two NUMA nodes, ``pmd_node`` says on which the PMD runs, and ``memory_node`` on which its mbufs and what librte_vhost keeps of
each device are. ``near`` is the node of the guests and their memory. Open vSwitch and librte_vhost bring memory there by themselves: with
``far`` they may not take any there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from switches.base import Port
from switches.ovs import BRIDGE, RUN, Ovs, quoted
from terms import node_messages
from terms.placement import FAR, NEAR, CpuPlan
from testbeds import numa
from testbeds.base import Testbed

MEMORY_MIB = 1024
"""Hugepage memory for DPDK. The shared pool of 262,144 mbufs takes most of it; with less, OVS retries smaller."""
NODE_MEMORY_MIB = 448
"""The same of each NUMA node, where there are two: the guests' 512 MiB are on one of them, and all cases shall have the same pool."""
NO_MEMORY_MIB = 1
"""A limit that no hugepage fits in; 0 would be none."""

SLEEP_WHILE_BOOTING_US = 2000


class OvsDpdk(Ovs):
    accesses = ("vhost-user", "virtio-user")
    takes_devices = True
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "port_type": ("direct", "vhost-pmd"),
        "socket": ("client", "server"),
        "pmd_node": (NEAR, FAR),
        "memory_node": (NEAR, FAR),
    }
    node_options = frozenset({"pmd_node", "memory_node"})
    daemon = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
    datapath = "netdev"

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        if plan.seats:
            self.plan = plan.seated(self.chosen["pmd_node"])
        self._nodes: dict[str, Any] = {}
        """What was found on which NUMA node, where there are two."""

    def unavailable(self) -> str | None:
        return self.host.hugepages_lacking()

    def settings(self) -> dict[str, str]:
        return {
            "dpdk-init": "true",
            # Ports are sockets: probing PCI would only touch devices that others use.
            "dpdk-extra": quoted("--no-pci"),
            # Until the endpoints are up, see ``ready``: a poll-mode thread that spins for nobody slows their boot.
            "pmd-sleep-max": str(SLEEP_WHILE_BOOTING_US),
            **self._memory(),
            "dpdk-lcore-mask": hex(1 << self.plan.house),
            "pmd-cpu-mask": hex(1 << self.plan.switch),
            # Histograms and per-iteration counters for pmd-perf-show.
            "pmd-perf-metrics": "true",
        }

    def _memory(self) -> dict[str, str]:
        """How much, and on which NUMA nodes where there are two: lists by node."""
        if not (seats := self.plan.seats):
            return {"dpdk-socket-mem": quoted(str(MEMORY_MIB))}
        chosen = seats[self.chosen["memory_node"]].node
        # The far node is also that of DPDK's main thread, which makes the first pool there, before it knows of any guest.
        allowed = {chosen, seats[FAR].node}
        nodes = range(max(seat.node for seat in seats.values()) + 1)
        taken = [NODE_MEMORY_MIB if node == chosen else 0 for node in nodes]
        limits = [NODE_MEMORY_MIB if node in allowed else NO_MEMORY_MIB for node in nodes]
        return {f"dpdk-socket-{what}": quoted(",".join(map(str, mib))) for what, mib in (("mem", taken), ("limit", limits))}

    def add_port(self, name: str, access: str) -> Port:
        server = self.chosen["socket"] == "server"
        socket = f"{RUN}/{name}.sock"
        if self.chosen["port_type"] == "vhost-pmd":
            self.add_device(name, f"net_vhost{len(self._ports)},iface={socket},client={int(not server)}")
        elif server:
            # It chooses the path by itself, out of the port's name.
            socket = f"{RUN}/{name}"
            self._add(name, "type=dpdkvhostuser")
        else:
            self._add(name, f"type=dpdkvhostuserclient options:vhost-server-path={quoted(socket)}")
        return Port(name, access, socket, listener="switch" if server else "endpoint")

    def add_device(self, name: str, device: str) -> Port:
        self._add(name, f"type=dpdk options:dpdk-devargs={quoted(device)}")
        return Port(name, "device", device)

    def join(self, one: Port, other: Port) -> None:
        ways = (f"in_port={a.name},actions=output:{b.name}" for a, b in ((one, other), (other, one)))
        self.host.run("; ".join(["set -e", f"ovs-ofctl del-flows {BRIDGE}", *(f"ovs-ofctl add-flow {BRIDGE} {way}" for way in ways)]))

    def _add(self, name: str, settings: str) -> None:
        self.vsctl(f"add-port {BRIDGE} {name} -- set Interface {name} {settings}")
        self._ports.append(name)

    def ready(self) -> None:
        self.vsctl("set Open_vSwitch . other_config:pmd-sleep-max=0")
        if self.plan.seats:
            self._nodes = self._look_at_nodes()
            self._check_nodes()

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), **({"nodes": self._nodes} if self._nodes else {})}

    def _look_at_nodes(self) -> dict[str, Any]:
        """By port, the node of the thread that polls it, of its mbufs, and of what librte_vhost keeps of it, all in DPDK's words; and in
        the kernel's, the hugepages of all mbufs by node."""
        assert self._daemon is not None
        polled = polled_by(self.appctl("dpif-netdev/pmd-rxq-show"))
        pools = {name: self.appctl(f"netdev-dpdk/get-mempool-info {name}") for name in self._ports}
        ports = {
            name: {
                "pmd": polled.get(name),
                "mbufs": node_of_pool(pool),
                "vhost": _number(self.vsctl(f"--if-exists get Interface {name} status:numa")),
            }
            for name, pool in pools.items()
        }
        places = {place for pool in pools.values() for place in pages_of_pool(pool)}
        found = [one for one in numa.mappings(self.host, self._daemon.pid) if one.begin in places]
        return {"ports": ports, "mbuf_hugepages": numa.by_node(found)}

    def _check_nodes(self) -> None:
        """Raise ``RunFailed`` where something is not where it was asked to be."""
        pmd, memory = (self.plan.seats[self.chosen[option]].node for option in ("pmd_node", "memory_node"))
        for name, found in self._nodes["ports"].items():
            for what, asked in {"pmd": pmd, "mbufs": memory, "vhost": memory}.items():
                if found[what] != asked:
                    raise node_messages.elsewhere(f"OVS-DPDK's {what} of port {name}", asked, f"{found[what]}")
        if (pages := self._nodes["mbuf_hugepages"]).keys() != {memory}:
            raise node_messages.elsewhere("OVS-DPDK's mbufs", memory, node_messages.pages(pages))


def polled_by(text: str) -> dict[str, int]:
    """The NUMA node of the thread that polls each port, out of ``dpif-netdev/pmd-rxq-show``."""
    found, node = {}, 0
    for line in text.splitlines():
        if thread := re.match(r"pmd thread numa_id (\d+) ", line):
            node = int(thread[1])
        elif port := re.match(r"\s+port: (\S+)\s", line):
            found[port[1]] = node
    return found


def node_of_pool(text: str) -> int | None:
    """The NUMA node of a port's pool of mbufs, out of ``netdev-dpdk/get-mempool-info``; None where it doesn't say."""
    said = re.search(r"^\s*socket_id=(\d+)$", text, re.MULTILINE)
    return int(said[1]) if said else None


def pages_of_pool(text: str) -> set[int]:
    """Addresses of the hugepages in which the mbufs of a port's pool are, out of ``netdev-dpdk/get-mempool-info``."""
    chunks = re.findall(r"^\s*memory chunk at \S+ addr=(0x[0-9a-f]+), .* len=(\d+)$", text, re.MULTILINE)
    size = numa.PAGE_BYTES
    return {page * size for begin, length in chunks for page in range(int(begin, 16) // size, -(-(int(begin, 16) + int(length)) // size))}


def _number(text: str) -> int | None:
    """A number as the database quotes it."""
    digits = text.strip('"')
    return int(digits) if digits.isdigit() else None


SWITCH = OvsDpdk
