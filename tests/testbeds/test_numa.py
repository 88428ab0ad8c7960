# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel says of hugepages and their nodes, as it printed it of a vhost-user switch with two guests in a lab of two nodes."""

from pathlib import Path
from types import SimpleNamespace

from vsprof.testbeds import numa

PRINTED = (Path(__file__).parents[1] / "switches" / "ovs-dpdk.numa_maps.txt").read_text()


def test_each_mapping_has_its_file_and_its_pages_by_node():
    found = numa.read(PRINTED)
    assert len(found) == len(PRINTED.splitlines())
    assert found[0] == numa.Mapping(0x2200200000, "/memfd:seg_4-0\\040(deleted)", {0: 1})
    guests = [one for one in found if one.file.startswith("/dev/hugepages/qemu_back_mem")]
    assert numa.by_node(guests) == {1: 5}


def test_pages_are_summed_by_node():
    two = [numa.Mapping(0, "a", {1: 3}), numa.Mapping(1, "b", {1: 4, 0: 2}), numa.Mapping(2, "c", {})]
    assert numa.by_node(two) == {0: 2, 1: 7}


def test_a_process_that_has_none_or_is_gone_has_no_mapping():
    asked = []

    def run(command, check):
        asked.append(command)
        return SimpleNamespace(stdout="")

    assert numa.mappings(SimpleNamespace(run=run), 7) == []
    assert asked == ["grep -s ' huge ' /proc/7/numa_maps"]
