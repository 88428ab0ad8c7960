# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of 4 KiB, where a case asks for them: from the options to what the kernel says of it."""

import re
from types import SimpleNamespace

import pytest

from vsprof.runner.experiment import case
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds import pages
from vsprof.testbeds.base import Completed
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.endpoints.vm_testpmd import TestpmdVm

# /proc/<pid>/smaps_rollup of vhost-switch with `--no-huge -m 256`, Linux 6.18.
ROLLUP = """\
100000000-7ffddb457000 ---p 00000000 00:00 0                             [rollup]
Rss:               95496 kB
Pss:               93385 kB
Pss_Dirty:         76696 kB
Pss_Anon:           9944 kB
Pss_File:          16689 kB
Pss_Shmem:         66752 kB
Shared_Clean:       4216 kB
Shared_Dirty:          0 kB
Private_Clean:     14584 kB
Private_Dirty:     76696 kB
Referenced:        95496 kB
Anonymous:          9944 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
"""
SMALL = {pages.GUEST: pages.SMALL, pages.MBUFS: pages.SMALL}


def with_large(name: str) -> str:
    """ROLLUP with 2 MiB of this kind."""
    changed = re.sub(rf"^({name}: +)0 kB$", r"\g<1>2048 kB", ROLLUP, flags=re.MULTILINE)
    assert changed != ROLLUP
    return changed


def test_small_pages_are_told_from_large_ones():
    assert pages.large_kib(ROLLUP) == 0
    assert [pages.large_kib(with_large(name)) for name in ("ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb")] == [
        2048
    ] * 4
    # What a process has for itself holds no frame.
    assert pages.large_kib(with_large("AnonHugePages")) == 0


@pytest.mark.parametrize(("said", "refused"), [(ROLLUP, False), (with_large("Shared_Hugetlb"), True)])
def test_a_case_whose_pages_are_larger_than_asked_for_fails(said, refused):
    host = SimpleNamespace(run=lambda command: Completed(command, 0, said, ""))
    if refused:
        with pytest.raises(RunFailed, match=r"guest1: asked for pages of 4K, and 2048 KiB .*shmem_enabled"):
            pages.check_small(host, 42, "guest1")
    else:
        pages.check_small(host, 42, "guest1")


def test_ovs_dpdk_takes_all_its_memory_at_once_where_pages_are_small():
    usual, small = (OvsDpdk(None, CpuPlan.of(4), chosen).settings() for chosen in ({}, SMALL))
    assert "--no-huge" not in usual["dpdk-extra"]
    assert usual["dpdk-socket-mem"]
    assert small["dpdk-extra"] == "'\"--no-pci --no-huge -m 1024 --legacy-mem\"'"
    assert not [name for name in small if name.startswith("dpdk-socket")]


def test_vhost_switch_leaves_no_file_behind_either_way(monkeypatch):
    monkeypatch.setattr(VhostSwitch, "_program", lambda self: "vhost-switch")
    usual, small = (VhostSwitch(None, CpuPlan.of(4), chosen).command() for chosen in ({}, SMALL))
    assert "--in-memory" in usual
    assert "--no-huge" not in usual
    # EAL refuses them together.
    assert "--in-memory" not in small
    assert "--no-huge -m 256 --legacy-mem --no-shconf" in small


@pytest.mark.parametrize("switch", ["ovs-dpdk", "vhost-switch"])
def test_network_cards_need_hugepages(switch):
    wanted = {"topology": "pvp_wire", "switch": switch, "access": "auto", "frame_bytes": 64, "flows": 1, "endpoint": "testpmd"}
    assert case({**wanted, pages.MBUFS: pages.HUGE}).options[pages.MBUFS] == pages.HUGE
    with pytest.raises(BadInput, match="mbuf_pages: 4K in pvp_wire: its network cards read"):
        case({**wanted, pages.MBUFS: pages.SMALL})


@pytest.mark.parametrize("kind", [Vm, TestpmdVm])
def test_a_guests_memory_is_in_the_pages_that_were_asked_for(kind):
    usual, small = (kind(None, 1, vcpu=2, backend_cpus=[1], housekeeping_cpu=0, options=one).command() for one in ({}, SMALL))
    assert "memory-backend-file,mem-path=/dev/hugepages,share=on,id=memory" in usual
    assert "memory-backend-memfd,share=on,id=memory" in small
    assert usual.replace("memory-backend-file,mem-path=/dev/hugepages", "memory-backend-memfd") == small
