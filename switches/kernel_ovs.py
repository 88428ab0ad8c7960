# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the kernel's datapath (the openvswitch module).

Frames are forwarded in the kernel, in the context of whoever brings them: the vhost worker or QEMU's main loop on the
way out of a guest, a softirq on the way out of a container. ovs-vswitchd sees only the first frame of a flow (an upcall).
"""

from collections.abc import Mapping
from typing import ClassVar

from vsprof.switches import card_ports, links, openflow, tunnel
from vsprof.switches.base import MOVERS, Port, PortCounters
from vsprof.switches.ovs import BRIDGE, Ovs
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import wire
from vsprof.testbeds.base import RELEASES, Testbed

ETHERNET_BYTES = 14


class KernelOvs(Ovs):
    words, rank, colour = "kernel OVS", 20, 1
    takes_cards = True
    accesses = ("vhost-net", "virtio-net", "veth")
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"release": RELEASES, **MOVERS, **openflow.OPTIONS, **card_ports.QUEUES}
    """``release``: of the daemons; the datapath is the running kernel's. ``switch_cpus``: over which vhost workers, receiving softirqs, or
    the interrupts of a card's queues are spread."""
    reads = ("queues",)
    card_options = frozenset(card_ports.QUEUES)
    table_options = frozenset(openflow.OPTIONS)
    daemon = "/usr/lib/openvswitch-switch/ovs-vswitchd"
    datapath = "system"

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        self._queues = int(options.get("queues", "1"))

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        openflow.check(given)

    def unavailable(self) -> str | None:
        tried = self.host.run("[ -d /sys/module/openvswitch ] || modprobe openvswitch", check=False)
        if tried.status != 0:
            return testbeds_messages.kernel_lacks("openvswitch", tried.stderr)
        return self._tunnel_lacking() or self.release_lacking()

    def _tunnel_lacking(self) -> str | None:
        if (kind := self.chosen["tunnel"]) == tunnel.NONE:
            return None
        tried = self.host.run(f"[ -d /sys/module/{kind} ] || modprobe --dry-run {kind}", check=False)
        return testbeds_messages.kernel_lacks(kind, tried.stderr) if tried.status != 0 else None

    def add_port(self, name: str, access: str) -> Port:
        port = links.add(self.host, name, access, self.plan.movers[len(self._ports) % len(self.plan.movers)], self._queues)
        self._ports.append(name)
        self.vsctl(f"add-port {BRIDGE} {name}")
        return port

    def add_card(self, name: str, number: int = 0) -> Port:
        card = self.cards[number]
        queues = int(self.chosen["card_queues"])
        links.take_card(self.host, wire.give_kernel(self.host, card), card, name, self.plan.movers, queues)
        self.vsctl(f"add-port {BRIDGE} {name}")
        return Port(name, "device", card)

    @classmethod
    def parse_port_counters(cls, text: str) -> dict[str, PortCounters]:
        """As of any bridge. But the kernel counts at its own port as the host does: received is what the switch sent there, without
        Ethernet's header."""
        found = super().parse_port_counters(text)
        if local := found.get(BRIDGE):
            out_bytes = local.received_bytes + ETHERNET_BYTES * local.received_packets
            found[BRIDGE] = PortCounters(local.sent_packets, local.sent_bytes, local.received_packets, out_bytes)
        return found

    def stop(self) -> None:
        super().stop()
        links.remove(self.host, self._ports)


SWITCH = KernelOvs
