# SPDX-License-Identifier: GPL-2.0-or-later
"""PVP on a wire at a given rate: as ``pvp_wire``, but frame-probe is at the wire's other end. It sends at a pace, receives what comes back,
and times each frame by one clock. The machine sends back from start to stop.

So a path has an offered rate, a no-drop rate and latencies. How much goes through at most is ``pvp_wire``'s question: frame-probe sends no
faster than it is told. Here the machine may also sleep until a frame comes: see ``workloads.endpoints.vm_switch``.
"""

from collections.abc import Mapping

from vsprof.workloads import messages
from vsprof.workloads.endpoints.wire_probe import WireProbe
from vsprof.workloads.topologies.pvp_wire import PvpWire


class PvpPaced(PvpWire):
    returns = False
    endpoints = (*PvpWire.endpoints, "vhost-switch")

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        super().check_options(given)
        if given.get("guest_rx") == "poll" and given.get("guest_irq_cpu", "worker") != "worker":
            raise messages.guest_takes_no_interrupts()

    def start(self) -> None:
        self._join()
        self._forward(True)
        self.sender = self.receiver = WireProbe(self.host, [self._load()], self.sender_port, self.plan.endpoints[1], self.plan.housekeeping)
        self._made.append(self.sender)


TOPOLOGY = PvpPaced
