# SPDX-License-Identifier: GPL-2.0-or-later
"""The switches that `make bench-dataplane` sets beside one another, and which of them it compares."""

from collections.abc import Collection, Mapping

from vsprof.bench.testpmd_switch import TestpmdSwitch
from vsprof.runner.experiment import SWITCHES, Case

CONTENDERS: dict[str, dict[str, str]] = {
    "vhost_switch": {"switch": "vhost-switch", "forward": "switch"},
    "wire": {"switch": "vhost-switch", "forward": "wire"},
    "librte": {"switch": "vhost-switch", "forward": "switch", "rings": "librte"},
    "zero_copy": {"switch": "vhost-switch", "forward": "switch", "dequeue": "zero-copy"},
    "packed": {"switch": "vhost-switch", "forward": "switch", "path": "packed"},
    "packed_librte": {"switch": "vhost-switch", "forward": "switch", "path": "packed", "rings": "librte"},
    "ovs_dpdk": {"switch": "ovs-dpdk"},
    "testpmd_io": {"switch": "testpmd", "forward": "io"},
    "testpmd_mac": {"switch": "testpmd", "forward": "mac"},
}
RATIOS = {
    "vhost_switch_over_ovs_dpdk": ("vhost_switch", "ovs_dpdk"),
    "vhost_switch_over_testpmd_io": ("vhost_switch", "testpmd_io"),
    "vhost_switch_over_testpmd_mac": ("vhost_switch", "testpmd_mac"),
    "wire_over_testpmd_io": ("wire", "testpmd_io"),
    "wire_over_vhost_switch": ("wire", "vhost_switch"),
    "zero_copy_over_copy": ("zero_copy", "vhost_switch"),
    "own_rings_over_librte": ("vhost_switch", "librte"),
    "own_rings_over_librte_packed": ("packed", "packed_librte"),
}
KINDS = {**SWITCHES, "testpmd": TestpmdSwitch}


def case(contender: str, ends: Mapping[str, str]) -> Case:
    """Between two endpoints over virtio-user with the options ``ends``, where the contender does not ask for others."""
    path = {"topology": "vm2vm", "access": "virtio-user", "frame_bytes": 64, "flows": 1}
    return Case.of({**path, **ends, **CONTENDERS[contender]})


def pairs(contenders: Collection[str]) -> dict[str, tuple[str, str]]:
    """The ratios of which both are among ``contenders``, by name."""
    return {name: pair for name, pair in RATIOS.items() if {*pair} <= {*contenders}}


def lonely(contenders: Collection[str]) -> list[str]:
    """Those of them that are in no ratio with another one of them."""
    return [name for name in contenders if not any(name in pair for pair in pairs(contenders).values())]


def partners(contenders: Collection[str]) -> list[str]:
    """All that are in a ratio with one of them."""
    return [*dict.fromkeys(name for pair in RATIOS.values() if {*pair} & {*contenders} for name in pair if name not in contenders)]
