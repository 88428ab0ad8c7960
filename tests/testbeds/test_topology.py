# SPDX-License-Identifier: GPL-2.0-or-later
"""Which CPUs get which duties: a physical core each where there are enough, all on one node; and what is said where there are not."""

import os
import subprocess

import pytest

from vsprof.terms.errors import BadInput
from vsprof.terms.placement import CpuPlan, Duties
from vsprof.testbeds.topology import COMMAND, Cpu, cpus, plan


def host(*, nodes: int = 1, cores: int, threads: int = 1, adjacent: bool = False) -> list[Cpu]:
    """A host's CPUs; siblings are numbered next to each other, or after all first threads, as most firmware does."""
    made = []
    for node in range(nodes):
        for core in range(cores):
            for thread in range(threads):
                whole = node * cores + core
                number = whole * threads + thread if adjacent else thread * nodes * cores + whole
                made.append(Cpu(number, node, whole * threads if adjacent else whole))
    return sorted(made, key=lambda cpu: cpu.number)


def test_four_cores_are_one_for_each_duty():
    assert plan(host(cores=8)) == (CpuPlan(0, 1, (2, 3)), {})


@pytest.mark.parametrize(("adjacent", "wanted"), [(False, CpuPlan(0, 1, (2, 3))), (True, CpuPlan(0, 2, (4, 6)))])
def test_siblings_of_a_core_are_left_alone(adjacent, wanted):
    assert plan(host(cores=4, threads=2, adjacent=adjacent)) == (wanted, {})


def test_all_are_on_one_node():
    chosen, _ = plan([cpu for cpu in host(nodes=2, cores=8, threads=2) if cpu.core not in range(6)])
    assert chosen == CpuPlan(8, 9, (10, 11))


def test_too_few_cores_share_them_and_say_so():
    chosen, shared = plan(host(cores=2, threads=2))
    assert chosen == CpuPlan(0, 1, (2, 3))
    assert shared == {0: ["the host's own work", "the first endpoint"], 1: ["the switch", "the second endpoint"]}


@pytest.mark.parametrize("cores", [2, 3])
def test_with_two_or_three_cpus_the_endpoints_share_the_hosts_own(cores):
    chosen, shared = plan(host(cores=cores))
    assert chosen == CpuPlan(0, 1, (0, 0))
    assert shared == {0: ["the host's own work", "the first endpoint", "the second endpoint"]}


def test_further_duties_have_a_core_each_on_the_same_node():
    assert plan(host(nodes=2, cores=8, threads=2), Duties(2, 4)) == (CpuPlan(0, 1, (3, 4, 5, 6), others=(2,)), {})


def test_further_duties_share_no_core():
    with pytest.raises(BadInput, match="a core each on one NUMA node; there are 4"):
        plan(host(cores=4, threads=2), Duties(2, 4))


def test_one_cpu_is_too_few():
    with pytest.raises(BadInput, match="has 1 CPU"):
        plan(host(cores=1))


def test_this_host_is_read():
    printed = subprocess.run(["bash", "-c", COMMAND], capture_output=True, text=True, check=True).stdout
    found = cpus(printed)
    assert [cpu.number for cpu in found] == sorted(os.sched_getaffinity(0))
    assert all(cpu.core <= cpu.number for cpu in found)


def test_a_kernel_without_numa_or_topology_is_read():
    assert cpus("0 0 / 0,4\n4 0 / 0,4\n9 1 / 9\n") == [Cpu(0, 0, 0), Cpu(4, 0, 0), Cpu(9, 1, 9)]
    assert cpus("0  / 0-1\n1  / 0-1\n") == [Cpu(0, 0, 0), Cpu(1, 0, 0)]
