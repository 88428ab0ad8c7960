# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch's user-space datapath without DPDK: frames come and go through packet sockets (AF_PACKET), a system call for each.

ovs-vswitchd's main thread moves them, so it runs on the switch's CPU here.
"""

from collections.abc import Mapping
from typing import ClassVar

from vsprof.switches import links
from vsprof.switches.base import Port
from vsprof.switches.ovs import BRIDGE, Ovs
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds.base import Testbed


class OvsUserspace(Ovs):
    words, rank, colour = "OVS in userspace", 30, 4
    accesses = ("veth",)
    daemon = "/usr/lib/openvswitch-switch/ovs-vswitchd"
    datapath = "netdev"
    mover: ClassVar[Mapping[str, str]] = {"veth": "switch"}

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        self.daemon_cpu = plan.switch

    def add_port(self, name: str, access: str) -> Port:
        port = links.add(self.host, name, access, self.plan.switch)
        # A packet socket hands on neither a checksum that is still to be made nor a segment that is still to be cut.
        self.host.run(f"ethtool -K {port.where} tx off")
        self._ports.append(name)
        self.vsctl(f"add-port {BRIDGE} {name}{self.interface(name)}")
        return port

    def interface(self, name: str) -> str:
        """What to say of the port's interface, beside its name."""
        return ""

    def stop(self) -> None:
        super().stop()
        links.remove(self.host, self._ports)


SWITCH = OvsUserspace
