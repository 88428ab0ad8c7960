# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPU does what, and which thread plays which role."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from vsprof.terms import messages

NEAR, FAR = "near", "far"
"""NUMA nodes as the endpoints see them: the one that their CPUs and their memory are of, and the other one."""


@dataclass(frozen=True, slots=True)
class CpuSlot:
    """A CPU on which a switch may move frames, and the NUMA node that it is of."""

    cpu: int
    node: int


@dataclass(frozen=True, slots=True)
class Duties:
    """How many CPUs a case needs beside the housekeeping CPU: ``movers`` move frames, and each endpoint has one."""

    movers: int = 1
    endpoints: int = 2

    @property
    def cpus(self) -> int:
        """All that it needs for each duty to have its own."""
        return 1 + self.movers + self.endpoints


PAIR = Duties()
"""Two endpoints, and one CPU between them."""


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """CPUs by duty: ``housekeeping`` keeps the host (and a switch's control threads), ``switch`` moves frames, ``endpoints`` hold
    one endpoint each.

    Every switch gets equally many CPUs to move frames, whether PMDs poll there or vhost workers sleep there: one, if nothing else is said.
    """

    housekeeping: int
    switch: int
    endpoints: tuple[int, ...]
    slots: Mapping[str, CpuSlot] = field(default_factory=dict)
    """On a host of two NUMA nodes: where ``switch`` can be, ``NEAR`` and ``FAR``. Empty on any other."""
    others: tuple[int, ...] = ()
    """Where a switch moves frames on several CPUs: those beside ``switch``."""

    @property
    def movers(self) -> tuple[int, ...]:
        """All CPUs that move frames."""
        return (self.switch, *self.others)

    @property
    def own(self) -> tuple[int, ...]:
        """CPUs on which nothing but frames is moved, or polled for; with fewer than 4 CPUs, endpoints may have none of them."""
        return tuple(sorted({*self.movers, *self.endpoints} - {self.housekeeping}))

    @classmethod
    def of(cls, cpus: int, duties: Duties = PAIR) -> Self:
        """The plan for a host of ``cpus`` CPUs: see ``on``."""
        return cls.on(range(cpus), duties)

    @classmethod
    def on(cls, cpus: Sequence[int], duties: Duties = PAIR) -> Self:
        """The plan for these CPUs, in this order. With fewer than 4, two endpoints share the housekeeping CPU; raises ``BadInput`` where
        they do not suffice."""
        if len(cpus) < 2:
            raise messages.too_few_cpus(len(cpus))
        if len(cpus) >= duties.cpus:
            first = 1 + duties.movers
            return cls(cpus[0], cpus[1], tuple(cpus[first : duties.cpus]), others=tuple(cpus[2:first]))
        if duties != PAIR:
            raise messages.too_few_cpus_for(duties.movers, duties.endpoints, len(cpus))
        return cls(cpus[0], cpus[1], (cpus[0], cpus[0]))

    @classmethod
    def of_two_nodes(cls, cpus: int) -> Self:
        """The plan for a host of an even number of CPUs, 4 at least, the lower half of them on NUMA node 0, the others on node 1.

        The switch has a CPU for itself on the endpoints' node, too: of 4, the endpoints share one.
        """
        half = cpus // 2
        endpoints = (half, half + 1) if half > 2 else (half, half)
        return cls(0, cpus - 1, endpoints, {NEAR: CpuSlot(cpus - 1, 1), FAR: CpuSlot(1, 0)})

    def on_slot(self, where: str) -> Self:
        """The same with the switch on this one of its slots."""
        return replace(self, switch=self.slots[where].cpu)


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread that was put in its place: what it is, its role, and the CPUs it may use."""

    name: str
    tid: int
    role: str
    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """Who is where in a run."""

    threads: list[Thread] = field(default_factory=list)
    cpu_roles: dict[int, str] = field(default_factory=dict)

    def role_of_thread(self, tid: int) -> str:
        """The role of any thread of the host: as placed, else ``host-other``."""
        return next((thread.role for thread in self.threads if thread.tid == tid), "host-other")

    def role_of_cpu(self, cpu: int) -> str:
        return self.cpu_roles.get(cpu, "host-other")

    to_json = asdict

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        threads = [Thread(t["name"], t["tid"], t["role"], tuple(t["cpus"])) for t in data["threads"]]
        # JSON knows no number as a key.
        return cls(threads, {int(cpu): role for cpu, role in data["cpu_roles"].items()})
