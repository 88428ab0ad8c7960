# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs of a host do what: one physical core for each duty, all on one NUMA node, as far as the host has them."""

from collections.abc import Sequence
from dataclasses import dataclass

from vsprof.terms.placement import CpuPlan
from vsprof.testbeds.threads import cpu_list

COMMAND = """
cd /sys/devices/system/cpu || exit 1
for cpu in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do
    for number in $(seq ${cpu%-*} ${cpu#*-}); do
        node=$(ls -d cpu$number/node[0-9]* 2>/dev/null | head -n 1)
        echo "$number ${node##*node} / $(cat cpu$number/topology/thread_siblings_list 2>/dev/null || echo $number)"
    done
done
"""
"""A shell command that prints, of each CPU that it may use, its number, its node and the CPUs of its core, for ``cpus``."""
DUTIES = ("the host's own work", "the switch", "the first endpoint", "the second endpoint")


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU as the kernel numbers it, its NUMA node, and the physical core (the lowest CPU of its siblings) that it is a thread of."""

    number: int
    node: int
    core: int


def cpus(printed: str) -> list[Cpu]:
    """The CPUs that ``COMMAND`` printed. A kernel without NUMA names no node: all are on one."""
    found = []
    for line in printed.splitlines():
        place, _, siblings = line.partition("/")
        number, *node = (int(word) for word in place.split())
        found.append(Cpu(number, node[0] if node else 0, min(cpu_list(siblings))))
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


def plan(available: Sequence[Cpu]) -> tuple[CpuPlan, dict[int, list[str]]]:
    """The plan for a host of these CPUs, and the cores on which duties had to be put together. Raises ``BadInput`` below two CPUs."""
    known = {cpu.number: cpu for cpu in available}
    chosen = choose(list(known.values()))
    made = CpuPlan.of(len(chosen))
    if len(chosen) == len(DUTIES):
        made = CpuPlan(chosen[0], chosen[1], (chosen[2], chosen[3]))
    else:
        made = CpuPlan(chosen[0], chosen[1], (chosen[0], chosen[0]))
    placed: dict[int, list[str]] = {}
    for duty, cpu in zip(DUTIES, (made.housekeeping, made.switch, *made.endpoints), strict=True):
        placed.setdefault(known[cpu].core, []).append(duty)
    return made, {core: duties for core, duties in placed.items() if len(duties) > 1}
