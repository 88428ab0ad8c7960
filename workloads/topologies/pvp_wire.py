# SPDX-License-Identifier: GPL-2.0-or-later
"""Physical port, virtual machine, physical port (PVP) on a wire: frames come in by a network card, the machine sends them back, they go out
by the same card.

At the wire's other end is a generator with a CPU of its own, of which nothing is counted. In the lab both cards are emulated: what is sent
is in the other's memory at once, so neither a rate of the wire limits it nor does DMA touch the modelled caches (docs/limitations.md).
"""

from collections.abc import Mapping

from vsprof.testbeds.wire import Wire
from vsprof.workloads import messages
from vsprof.workloads.endpoints import vm
from vsprof.workloads.endpoints.generator import Generator
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.topologies.base import sleeps
from vsprof.workloads.topologies.pvp import PORT, Pvp


class PvpWire(Pvp):
    accesses = vm.ACCESSES
    needs_devices = False
    needs_cards = makes_flows = True

    _wire: Wire | None = None

    @classmethod
    def boots(cls, options: Mapping[str, str]) -> Mapping[str, bool]:
        # vfio-pci, which hands on a card's interrupts, takes those behind an IOMMU alone.
        return {"iommu": True} if sleeps(options) else {}

    def boot(self) -> None:
        generator, guest = self.plan.endpoints[1], self.plan.endpoints[0]
        if generator in (guest, self.plan.housekeeping):
            raise messages.no_cpu_for_generator(self._named(), self.host.cpus)
        super().boot()
        if self._wire is None:
            if why := self.host.wire_lacking():
                raise messages.no_wire_there(self._named(), why)
            [self._wire] = self.host.wires(1)
            # Before it starts: DPDK looks for cards only then.
            self.switch.cards = [self._wire.switch]

    def start(self) -> None:
        self.sender = self.receiver = self._join()
        self._generator = Generator(self.host, self._load(), self.plan.endpoints[1], self.frame_bytes, self.flows)
        self._made.append(self._generator)

    def _join(self) -> Vm:
        """The machine, behind the switch's card."""
        self.boot()
        card = self.switch.add_card(PORT)
        port = self.switch.add_port("p1", self.access)
        guest = self._guest(port)
        self.sender_port = self.receiver_port = card
        self.switch.join(card, port)
        return guest

    def _load(self) -> str:
        """The PCI address of the card at the wire's other end."""
        assert self._wire is not None
        return self._wire.load

    def forward(self, on: bool) -> str:
        """The machine is ready before frames come, and until none comes any more."""
        ways = (super().forward, self._generator.send)
        return "\n".join(way(on) for way in (ways if on else reversed(ways)))

    @classmethod
    def _named(cls) -> str:
        return cls.__module__.rpartition(".")[2]


TOPOLOGY = PvpWire
