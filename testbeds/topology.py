# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs of this host do what: one physical core for each duty, all on one NUMA node, as far as the host has them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from terms.placement import CpuPlan
from testbeds.threads import cpu_list

SYSTEM = Path("/sys/devices/system")
DUTIES = ("the host's own work", "the switch", "the first endpoint", "the second endpoint")


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU as the kernel numbers it, its NUMA node, and the physical core (the lowest CPU of its siblings) that it is a thread of."""

    number: int
    node: int
    core: int


def cpus(system: Path = SYSTEM) -> list[Cpu]:
    """The CPUs that this process may use."""
    nodes = {cpu: int(path.name[4:]) for path in system.glob("node/node[0-9]*") for cpu in cpu_list((path / "cpulist").read_text())}
    found = []
    for number in sorted(os.sched_getaffinity(0)):
        siblings = system / f"cpu/cpu{number}/topology/thread_siblings_list"
        core = min(cpu_list(siblings.read_text())) if siblings.exists() else number
        found.append(Cpu(number, nodes.get(number, 0), core))
    return found


def choose(available: Sequence[Cpu]) -> list[int]:
    """CPUs for the four duties, in their order: of the node with most cores, first one CPU of each core, then siblings.

    Fewer than four where the host has fewer. The host's own work gets the lowest, where the kernel's own is, too.
    """
    nodes: dict[int, list[Cpu]] = {}
    for cpu in available:
        nodes.setdefault(cpu.node, []).append(cpu)
    home = max(nodes.values(), key=lambda node: len({cpu.core for cpu in node}))
    firsts = list({cpu.core: cpu for cpu in reversed(home)}.values())[::-1]
    return [cpu.number for cpu in [*firsts, *(cpu for cpu in home if cpu not in firsts)]][: len(DUTIES)]


def plan(available: Sequence[Cpu] | None = None) -> tuple[CpuPlan, dict[int, list[str]]]:
    """The plan for this host, and the CPUs (or cores) on which duties had to be put together. Raises ``BadInput`` below two CPUs."""
    known = {cpu.number: cpu for cpu in (cpus() if available is None else available)}
    chosen = choose(list(known.values()))
    made = CpuPlan.of(len(chosen))
    if len(chosen) == len(DUTIES):
        made = CpuPlan(chosen[0], chosen[1], (chosen[2], chosen[3]))
    else:
        made = CpuPlan(chosen[0], chosen[1], (chosen[0], chosen[0]))
    placed: dict[int, list[str]] = {}
    for duty, cpu in zip(DUTIES, (made.house, made.switch, *made.endpoints), strict=True):
        placed.setdefault(known[cpu].core, []).append(duty)
    return made, {core: duties for core, duties in placed.items() if len(duties) > 1}
