# SPDX-License-Identifier: GPL-2.0-or-later
"""In a lab of two NUMA nodes OVS-DPDK's thread and memory are where its options ask for them; and it is noticed where they are not."""

import pytest

from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.terms.errors import RunFailed
from vsprof.testbeds.lab import Lab
from vsprof.workloads.topologies.vm2vm import Vm2Vm

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]


@pytest.mark.parametrize(("pmd", "memory", "nodes"), [("near", "far", (1, 0)), ("far", "near", (0, 1))])
def test_thread_and_memory_are_where_they_were_asked_to_be(pmd: str, memory: str, nodes: tuple[int, int]) -> None:
    options = {"pmd_node": pmd, "memory_node": memory}
    with Lab(nodes=2) as host:
        switch = OvsDpdk(host, host.plan(), options)
        topology = Vm2Vm(host, switch, switch.plan, "vhost-user", options)
        try:
            topology.boot()
            switch.start()
            topology.start()
            switch.ready()
            found = switch.facts()["nodes"]
            for port in ("p1", "p2"):
                assert found["ports"][port] == {"pmd": nodes[0], "mbufs": nodes[1], "vhost": nodes[1]}
            assert {name: end["hugepages"].keys() for name, end in topology.facts().items()} == {"guest1": {1}, "guest2": {1}}
            switch.chosen["memory_node"] = pmd
            with pytest.raises(RunFailed, match=f"mbufs of port p1: asked for NUMA node {nodes[0]}, found {nodes[1]}"):
                switch.ready()
        finally:
            topology.stop()
            switch.stop()
