# SPDX-License-Identifier: GPL-2.0-or-later
"""Switches of another Debian release in the lab, for real: the daemon that runs says that it is the other one."""

from collections.abc import Iterator

import pytest

from vsprof.collectors.uarch_model import processes, symbols
from vsprof.collectors.uarch_model.processes import Processes
from vsprof.switches.kernel_ovs import KernelOvs
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]
ANOTHER = {"release": "bookworm"}
OVS, DPDK = "3.1.", "22.11."


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as host:
        yield host


def test_ovs_dpdk_of_another_release_runs_and_makes_ports(lab: Lab) -> None:
    switch = OvsDpdk(lab, lab.plan(), ANOTHER)
    assert switch.unavailable() is None
    try:
        switch.start()
        switch.add_port("p0", "vhost-user")
        switch.ready()
        facts = switch.facts()
        assert f"(Open vSwitch) {OVS}" in facts["version"][0]
        assert f"DPDK {DPDK}" in facts["dpdk"]
        maps = Processes(lab.run(processes.LIST).stdout).maps
        daemon = switch.processes()[-1].pid
        [program] = {lab.file(part.path) for part in maps[daemon] if part.path.endswith("ovs-vswitchd-dpdk")}
        libraries = {lab.file(part.path) for part in maps[daemon] if "librte_vhost" in part.path}
        # What is mapped there is found here, in that release's tree: by it functions get their names.
        assert "bookworm" in str(program)
        assert all(file.is_file() and "bookworm" in str(file) for file in [program, *libraries])
        assert any(name == "rte_vhost_dequeue_burst" for _, name in symbols.program(libraries.pop()).names)
    finally:
        switch.stop()


def test_kernel_ovs_of_another_release_uses_the_labs_own_datapath(lab: Lab) -> None:
    switch = KernelOvs(lab, lab.plan(), ANOTHER)
    assert switch.unavailable() is None
    try:
        switch.start()
        switch.add_port("p0", "vhost-net")
        assert f"(Open vSwitch) {OVS}" in switch.facts()["version"][0]
        assert "p0" in lab.run("ovs-dpctl show").stdout
    finally:
        switch.stop()


def test_vhost_switch_of_another_release_is_compiled_with_its_dpdk(lab: Lab) -> None:
    switch = VhostSwitch(lab, lab.plan(), {**ANOTHER, "rings": "librte"})
    assert switch.unavailable() is None
    try:
        switch.start()
        port = switch.add_port("p0", "vhost-user")
        facts = switch.facts()
        assert f"DPDK {DPDK}" in facts["version"][0]
        assert port.name in facts["ports"]
        assert port.name in switch.parse_port_counters(lab.run(switch.port_counters()).stdout)
    finally:
        switch.stop()
