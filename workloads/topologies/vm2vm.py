# SPDX-License-Identifier: GPL-2.0-or-later
"""Two endpoints on one host, the first sending to the second through the switch: virtual machines, or containers, as the access asks.

There can be several such pairs of virtual machines, and both of a pair can send: see ``routes``.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from vsprof.workloads.endpoints import vm
from vsprof.workloads.topologies.base import Route, Topology

PAIRS, WAYS = "pairs", "ways"
BOTH = "both"


class Vm2Vm(Topology):
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {PAIRS: ("1", "2", "3", "4"), WAYS: ("one", BOTH)}
    """``pairs``: how many pairs of virtual machines are on the switch. ``ways``: whether the first of a pair sends, or both."""

    @classmethod
    def options_of(cls, access: str, options: Mapping[str, str] = {}) -> Mapping[str, tuple[str, ...]]:
        found = super().options_of(access, options)
        # frame-probe is both ends itself.
        return {**found, **cls.options} if access in vm.ACCESSES and options.get("endpoint") != "probe" else found

    @classmethod
    def ends(cls, options: Mapping[str, str]) -> int:
        return 2 * int(options.get(PAIRS, "1"))

    def start(self) -> None:
        ends = self._attach()
        pairs = [(ends[number], ends[number + 1]) for number in range(0, len(ends), 2)]
        if self.chosen.get(WAYS) == BOTH:
            pairs = [*pairs, *((receiver, sender) for sender, receiver in pairs)]
        self._routes = [Route(sender, receiver, sender.port, receiver.port) for sender, receiver in pairs]
        self.sender, self.receiver = pairs[0]
        self.sender_port, self.receiver_port = self.sender.port, self.receiver.port
        self._set_offloads()
        self._check_path()

    @property
    def routes(self) -> Sequence[Route]:
        return self._routes

    def endpoint_cpus(self) -> Sequence[int]:
        return self.plan.endpoints

    def endpoint_roles(self) -> dict[int, str]:
        return dict.fromkeys(self.plan.endpoints, "guest")


TOPOLOGY = Vm2Vm
