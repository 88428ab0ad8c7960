# SPDX-License-Identifier: GPL-2.0-or-later
"""Physical port, switch, physical port (P2P) on two wires at a given rate: frames come in by one network card and go out by another.

frame-probe is at the other end of both, and times each frame by one clock. No endpoint is on the host: what is measured is the switch, and
how its cards' interrupts wake it where it sleeps. Which CPU takes these, how often they may come, and whether a thread handles them are
options here.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from vsprof.terms.schema import CARD
from vsprof.testbeds import wire
from vsprof.workloads import messages
from vsprof.workloads.endpoints.wire_probe import WireProbe
from vsprof.workloads.topologies.base import Topology, sleeps

IN, OUT = "phy1", "phy2"
"""The switch's ports by which frames come and go."""


class P2pPaced(Topology):
    accesses = (CARD,)
    endpoints = ()
    needs_cards = True
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "irq_cpu": ("switch", "housekeeping"),
        "irq_throttle_us": ("0", "50", "125", "250", "500"),
        "irq_thread": ("off", "on"),
    }
    """Of the cards' interrupts. ``irq_cpu``: who takes them, the switch's CPU or the housekeeping CPU, from which the switch is then woken.
    ``irq_throttle_us``: the shortest time between two. ``irq_thread``: whether the kernel handles them in a thread."""

    @classmethod
    def options_of(cls, access: str, options: Mapping[str, str] = {}) -> Mapping[str, tuple[str, ...]]:
        return cls.options

    @classmethod
    def boots(cls, options: Mapping[str, str]) -> Mapping[str, bool]:
        # In all cases alike: a host with an IOMMU may not be one without in every other way.
        return {"iommu": True, **({"threaded_irqs": True} if options.get("irq_thread") == "on" else {})}

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        if given.get("switch_cpus", "1") != "1":
            raise messages.cards_have_one_cpu()
        changed = [name for name, values in cls.options.items() if given.get(name, values[0]) != values[0]]
        if changed and not sleeps(given):
            raise messages.no_interrupts_taken(changed)

    def boot(self) -> None:
        name, generator = __name__.rpartition(".")[2], self.plan.endpoints[1]
        if generator == self.plan.housekeeping:
            raise messages.no_cpu_for_generator(name, self.host.cpus)
        if why := self.host.wire_lacking():
            raise messages.no_wire_there(name, why)
        wires = self.host.wires(2)
        self._loads = [one.load for one in wires]
        # Before it starts: DPDK looks for cards only then.
        self.switch.cards = [one.switch for one in wires]

    def start(self) -> None:
        self.sender_port, self.receiver_port = (self.switch.add_card(name, number) for number, name in enumerate((IN, OUT)))
        self.switch.join(self.sender_port, self.receiver_port)
        if sleeps(self.switch.chosen):
            self._set_interrupts()
        self.sender = self.receiver = WireProbe(self.host, self._loads, self.sender_port, self.plan.endpoints[1], self.plan.housekeeping)
        self._made.append(self.sender)

    def _set_interrupts(self) -> None:
        cpu = self.plan.switch if self.chosen["irq_cpu"] == "switch" else self.plan.housekeeping
        for card in self.switch.cards:
            wire.steer_interrupts(self.host, card, cpu)
            wire.throttle_interrupts(self.host, card, int(self.chosen["irq_throttle_us"]))

    def endpoint_cpus(self) -> Sequence[int]:
        return ()

    def endpoint_roles(self) -> dict[int, str]:
        return {}


TOPOLOGY = P2pPaced
