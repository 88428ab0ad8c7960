# SPDX-License-Identifier: GPL-2.0-or-later
"""OVS-DPDK on two NUMA nodes: what it is told, and that its answers are read as it and the kernel really printed them."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.switches.dpdk_nodes import node_of_pool, pages_of_pool, polled_by
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import CpuPlan

RXQS, POOL, MAPS = (Path(__file__).with_name(f"ovs-dpdk.{what}.txt").read_text() for what in ("pmd-rxq-show", "mempool-info", "numa_maps"))
"""Of a run with all on the guests' node, which is node 1."""


class Host:
    """A lab whose switch has its thread, its mbufs and what vhost keeps on node 1, where nothing is changed in what it prints."""

    def __init__(self, **changed: str) -> None:
        self._printed = {"pmd-rxq-show": RXQS, "get-mempool-info": POOL, "status:numa": '"1"\n', "numa_maps": MAPS, **changed}

    def run(self, command, *, timeout=60, check=True):
        printed = next((text for what, text in self._printed.items() if what in command), "")
        return SimpleNamespace(status=0, stdout=printed, stderr="")


def switch(host: object = None, **options: str) -> OvsDpdk:
    made = OvsDpdk(host, CpuPlan.of_two_nodes(4), options)
    made._daemon, made._ports = SimpleNamespace(pid=7), ["p1", "p2"]
    return made


@pytest.mark.parametrize(
    ("pmd", "memory", "mask", "taken", "limit"),
    [
        ("far", "far", "0x2", "448,0", "448,1"),
        ("near", "far", "0x8", "448,0", "448,1"),
        # DPDK's main thread is on node 0, and makes the first pool there.
        ("far", "near", "0x2", "0,448", "448,448"),
        ("near", "near", "0x8", "0,448", "448,448"),
    ],
)
def test_thread_and_memory_are_asked_for_on_either_node(pmd, memory, mask, taken, limit):
    settings = switch(pmd_node=pmd, memory_node=memory).settings()
    assert settings["pmd-cpu-mask"] == mask
    assert (settings["dpdk-socket-mem"], settings["dpdk-socket-limit"]) == (f"'\"{taken}\"'", f"'\"{limit}\"'")


def test_without_a_choice_all_is_near():
    assert switch().settings() == switch(pmd_node="near", memory_node="near").settings()


def test_on_one_node_nothing_is_limited():
    settings = OvsDpdk(None, CpuPlan.of(4), {}).settings()
    assert settings["dpdk-socket-mem"] == "'\"1024\"'"
    assert "dpdk-socket-limit" not in settings


def test_what_it_prints_is_read():
    assert polled_by(RXQS) == {"p1": 1, "p2": 1}
    assert node_of_pool(POOL) == 1
    pages = pages_of_pool(POOL)
    assert {0x3204E00000, 0x3205000000} <= pages
    assert len(pages) == 189


def test_other_words_are_no_node():
    assert polled_by("") == {}
    assert node_of_pool("mempool gone") is None
    assert pages_of_pool("mempool gone") == set()


def test_where_all_was_becomes_facts():
    made = switch(Host())
    made.ready()
    port = {"pmd": 1, "mbufs": 1, "vhost": 1}
    assert made.facts()["nodes"] == {"ports": {"p1": port, "p2": port}, "mbuf_hugepages": {1: 189}}


@pytest.mark.parametrize(
    ("options", "changed", "said"),
    [
        ({"pmd_node": "far"}, {}, "OVS-DPDK's pmd of port p1: asked for NUMA node 0, found 1"),
        ({"memory_node": "far"}, {}, "OVS-DPDK's mbufs of port p1: asked for NUMA node 0, found 1"),
        ({}, {"status:numa": '"0"'}, "OVS-DPDK's vhost of port p1: asked for NUMA node 1, found 0"),
        ({}, {"status:numa": ""}, "OVS-DPDK's vhost of port p1: asked for NUMA node 1, found None"),
        ({}, {"pmd-rxq-show": ""}, "OVS-DPDK's pmd of port p1: asked for NUMA node 1, found None"),
        ({}, {"numa_maps": MAPS.replace("N1=1", "N0=1")}, "OVS-DPDK's mbufs: asked for NUMA node 1, found 189 hugepages on node 0"),
        ({}, {"numa_maps": MAPS.replace("N1=1", "N0=1", 36)}, "found 187 hugepages on node 1, 2 on node 0"),
        ({}, {"numa_maps": ""}, "OVS-DPDK's mbufs: asked for NUMA node 1, found no hugepage"),
    ],
)
def test_what_is_not_where_it_was_asked_to_be_fails_the_run(options, changed, said):
    with pytest.raises(RunFailed, match=said):
        switch(Host(**changed), **options).ready()
