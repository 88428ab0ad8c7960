# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of NUMA nodes: who can have several, and what lies on another one than was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from terms.errors import BadInput, RunFailed


def not_of_this_testbed(nodes: int, testbed: str) -> BadInput:
    return BadInput(
        f"nodes {nodes}: only the lab can be given NUMA nodes, the testbed {testbed} has those that it has:"
        " use TESTBED=lab, or leave nodes out"
    )


def too_few_cpus(nodes: int, cpus: int) -> BadInput:
    return BadInput(
        f"nodes {nodes} with {cpus} CPUs: each node would have one, and the switch needs one for itself on the endpoints' node:"
        " leave out --cpus"
    )


def only_virtual_machines(access: str, known: Iterable[str]) -> BadInput:
    return BadInput(
        f"two NUMA nodes, and endpoints over {access}, whose memory vsprof puts on none of them: use access {' or '.join(known)}"
    )


def option_needs_nodes(option: str) -> BadInput:
    return BadInput(f"{option} chooses between two NUMA nodes, and the experiment asks for one: set nodes: 2 (or --nodes 2)")


def lab_chosen(nodes: int) -> str:
    return f"testbed: lab, which alone can be given {nodes} NUMA nodes"


def elsewhere(what: str, asked: int, seen: str) -> RunFailed:
    return RunFailed(f"{what}: asked for NUMA node {asked}, found {seen}: its numbers would be another case's")


def pages(by_node: Mapping[int, int]) -> str:
    """`117 hugepages on node 1, 3 on node 0`; most first."""
    counted = sorted(by_node.items(), key=lambda one: -one[1])
    return (
        ", ".join(f"{count}{'' if place else ' hugepages'} on node {node}" for place, (node, count) in enumerate(counted)) or "no hugepage"
    )
