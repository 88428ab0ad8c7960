# SPDX-License-Identifier: GPL-2.0-or-later
"""Physical port, virtual machine, physical port (PVP) on a wire: frames come in by a network card, the machine sends them back, they go out
by the same card.

At the wire's other end is a generator with a CPU of its own, of which nothing is counted. In the lab both cards are emulated: what is sent
is in the other's memory at once, so neither a rate of the wire limits it nor does DMA touch the modelled caches (docs/limitations.md).
"""

from __future__ import annotations

from vsprof.terms.schema import FCS_BYTES
from vsprof.testbeds.wire import Wire
from vsprof.workloads import messages
from vsprof.workloads.endpoints import vm
from vsprof.workloads.endpoints.generator import Generator
from vsprof.workloads.topologies.pvp import PORT, Pvp


class PvpWire(Pvp):
    accesses = vm.ACCESSES
    needs_devices = False
    needs_cards = True

    _wire: Wire | None = None

    def boot(self) -> None:
        generator, guest = self.plan.endpoints[1], self.plan.endpoints[0]
        if generator in (guest, self.plan.housekeeping):
            raise messages.no_cpu_for_generator(self.host.cpus)
        super().boot()
        if self._wire is None:
            if why := self.host.wire_lacking():
                raise messages.no_wire_there(why)
            self._wire = self.host.wire()
            # Before it starts: DPDK looks for cards only then.
            self.switch.card = self._wire.switch

    def start(self) -> None:
        self.boot()
        assert self._wire is not None
        card = self.switch.add_card(PORT)
        port = self.switch.add_port("p1", self.access)
        self.sender = self.receiver = self._guest(port)
        self.sender_port = self.receiver_port = card
        self.switch.join(card, port)
        self._generator = Generator(self.host, self._wire.load, self.plan.endpoints[1], self.frame_bytes - FCS_BYTES)
        self._made.append(self._generator)

    def forward(self, on: bool) -> str:
        """The machine is ready before frames come, and until none comes any more."""
        ways = (super().forward, self._generator.send)
        return "\n".join(way(on) for way in (ways if on else reversed(ways)))


TOPOLOGY = PvpWire
