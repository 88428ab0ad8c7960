# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the DPDK datapath: a poll-mode thread (PMD) moves all frames in user space and never sleeps.

Ports are ``dpdkvhostuserclient``: the endpoint owns the socket, so that it survives a restart of the switch. With ``port_type: vhost-pmd``
they are DPDK devices (net_vhost), behind which the same vhost library does the same. With ``socket: server`` the switch owns the socket;
such a port is a ``dpdkvhostuser``, which Open vSwitch itself calls deprecated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from switches.base import Port
from switches.ovs import BRIDGE, RUN, Ovs, quoted

MEMORY_MIB = 1024
"""Hugepage memory for DPDK. The shared pool of 262,144 mbufs takes most of it; with less, OVS retries smaller."""

SLEEP_WHILE_BOOTING_US = 2000


class OvsDpdk(Ovs):
    accesses = ("vhost-user", "virtio-user")
    takes_devices = True
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"port_type": ("direct", "vhost-pmd"), "socket": ("client", "server")}
    daemon = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
    datapath = "netdev"

    def unavailable(self) -> str | None:
        return self.host.hugepages_lacking()

    def settings(self) -> dict[str, str]:
        return {
            "dpdk-init": "true",
            # Ports are sockets: probing PCI would only touch devices that others use.
            "dpdk-extra": quoted("--no-pci"),
            # Until the endpoints are up, see ``ready``: a poll-mode thread that spins for nobody slows their boot.
            "pmd-sleep-max": str(SLEEP_WHILE_BOOTING_US),
            "dpdk-socket-mem": quoted(str(MEMORY_MIB)),
            "dpdk-lcore-mask": hex(1 << self.plan.house),
            "pmd-cpu-mask": hex(1 << self.plan.switch),
            # Histograms and per-iteration counters for pmd-perf-show.
            "pmd-perf-metrics": "true",
        }

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


SWITCH = OvsDpdk
