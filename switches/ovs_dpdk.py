# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the DPDK datapath: a poll-mode thread (PMD) moves all frames in user space and never sleeps.

Ports are ``dpdkvhostuserclient``: the endpoint owns the socket, so that it survives a restart of the switch. With the option ``socket``
``server`` they are ``dpdkvhostuser``, which Open vSwitch itself calls deprecated: the switch owns the socket.
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
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"socket": ("client", "server")}
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
        socket = f"{RUN}/{name}" if server else f"{RUN}/{name}.sock"
        # As server it chooses the path by itself, out of the port's name.
        kind = "dpdkvhostuser" if server else f"dpdkvhostuserclient options:vhost-server-path={quoted(socket)}"
        self.vsctl(f"add-port {BRIDGE} {name} -- set Interface {name} type={kind}")
        self._ports.append(name)
        return Port(name, access, socket, listener="switch" if server else "endpoint")

    def ready(self) -> None:
        self.vsctl("set Open_vSwitch . other_config:pmd-sleep-max=0")


SWITCH = OvsDpdk
