# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs of a host do what: one physical core for each duty, all on one NUMA node, as far as the host has them."""

from collections.abc import Sequence
from dataclasses import dataclass

from vsprof.terms import messages as terms_messages
from vsprof.terms.placement import PAIR, CpuPlan, Duties
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
"""Of ``PAIR``."""


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


def choose(available: Sequence[Cpu], count: int) -> list[Cpu]:
    """CPUs for ``count`` duties: of the node with most cores, first one CPU of each core, then siblings.

    Fewer where the host has fewer. The first, for the host's own work, is the lowest, where the kernel's own is, too.
    """
    nodes: dict[int, list[Cpu]] = {}
    for cpu in {cpu.number: cpu for cpu in available}.values():
        nodes.setdefault(cpu.node, []).append(cpu)
    home = max(nodes.values(), key=lambda node: len({cpu.core for cpu in node}))
    firsts = list({cpu.core: cpu for cpu in reversed(home)}.values())[::-1]
    return [*firsts, *(cpu for cpu in home if cpu not in firsts)][:count]


def plan(available: Sequence[Cpu], duties: Duties = PAIR) -> tuple[CpuPlan, dict[int, list[str]]]:
    """The plan for a host of these CPUs, and the cores on which duties had to be put together: of two endpoints and one switch alone.
    Raises ``BadInput`` where there are too few."""
    chosen = choose(available, duties.cpus)
    cores = {cpu.core for cpu in chosen}
    if duties != PAIR and len(cores) < duties.cpus:
        raise terms_messages.too_few_cpus_for(duties.movers, duties.endpoints, len(cores))
    made = CpuPlan.on([cpu.number for cpu in chosen], duties)
    core_of = {cpu.number: cpu.core for cpu in chosen}
    placed: dict[int, list[str]] = {}
    if duties == PAIR:
        for duty, cpu in zip(DUTIES, (made.housekeeping, made.switch, *made.endpoints), strict=True):
            placed.setdefault(core_of[cpu], []).append(duty)
    return made, {core: shared for core, shared in placed.items() if len(shared) > 1}
