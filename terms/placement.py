# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPU does what, and which thread plays which role."""

from collections.abc import Mapping
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
class CpuPlan:
    """CPUs by duty: ``housekeeping`` keeps the host (and a switch's control threads), ``switch`` moves frames, ``endpoints`` hold
    one endpoint each.

    Every switch gets exactly one CPU to move frames, whether a PMD polls there or vhost workers sleep there.
    """

    housekeeping: int
    switch: int
    endpoints: tuple[int, int]
    slots: Mapping[str, CpuSlot] = field(default_factory=dict)
    """On a host of two NUMA nodes: where ``switch`` can be, ``NEAR`` and ``FAR``. Empty on any other."""

    @classmethod
    def of(cls, cpus: int) -> Self:
        """The plan for a host of ``cpus`` CPUs. With fewer than 4 the endpoints share the housekeeping CPU."""
        if cpus < 2:
            raise messages.too_few_cpus(cpus)
        return cls(0, 1, (2, 3) if cpus >= 4 else (0, 0))

    @classmethod
    def of_two_nodes(cls, cpus: int) -> Self:
        """The plan for a host of 4 CPUs or 6, the lower half of them on NUMA node 0, the others on node 1.

        The switch has a CPU for itself on the endpoints' node, too: of 4, the endpoints share one.
        """
        endpoints = (3, 4) if cpus >= 6 else (2, 2)
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
