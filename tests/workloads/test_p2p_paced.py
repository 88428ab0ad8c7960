# SPDX-License-Identifier: GPL-2.0-or-later
"""The topology p2p_paced: its two wires, whose interrupts go where, and what it refuses."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from vsprof.runner import experiment as experiments
from vsprof.runner import offers
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds import wire
from vsprof.testbeds.wire import Wire
from vsprof.workloads.endpoints import probe
from vsprof.workloads.topologies.p2p_paced import P2pPaced
from vsprof.workloads.topologies.pvp_wire import PvpWire

VALUES = {"topology": "p2p_paced", "switch": "vhost-switch", "access": "auto", "frame_bytes": 64, "flows": 1, "forward": "wire"}
WIRES = [Wire("0000:01:00.0", "0000:02:00.0"), Wire("0000:03:00.0", "0000:04:00.0")]


class Host:
    """A host with wires. It writes down what is asked of it; ``refuses``: a word of commands that fail."""

    name, cards_emulated = "lab", True

    def __init__(self, cpus=4, refuses=None):
        self.cpus, self.asked, self.started, self.refuses = cpus, [], [], refuses

    def run(self, command, *, timeout=60, check=True):
        self.asked.append(command)
        failed = self.refuses is not None and self.refuses in command
        return SimpleNamespace(status=int(failed), stdout="ok\n", stderr="no such register")

    def start(self, name, command, **how):
        self.started.append(command)
        return SimpleNamespace(pid=7, log=lambda: probe.READY, alive=lambda: True, stop=lambda: None)

    def patience(self, seconds):
        return SimpleNamespace(over=lambda: False)

    def wire_lacking(self):
        return None

    def wires(self, count):
        return WIRES[:count]


def path(host=None, **options) -> P2pPaced:
    """The topology as it is started, with a vhost-switch that answers."""
    host = host or Host()
    options = {"forward": "wire", **options}
    switch = VhostSwitch(host, CpuPlan.of(host.cpus), options)
    switch._process = SimpleNamespace(log=lambda: "", stop=lambda: None, pid=1)
    topology = P2pPaced(host, switch, switch.plan, "card", options)
    topology.boot()
    topology.start()
    return topology


def set_of(topology, script) -> list[tuple[str, str]]:
    """The cards and values that ``script`` of testbeds.wire was called with."""
    word = {"steer": "smp_affinity_list", "throttle": "EITR0"}[script]
    return [tuple(asked.split()[-2:]) for asked in topology.host.asked if word in asked]


def test_a_card_is_the_access_and_any_other_is_refused():
    case = experiments.case(VALUES)
    assert (case.access, case.options) == ("card", {"forward": "wire"})
    for change in ({"access": "vhost-user"}, {"switch": "ovs-dpdk"}, {"topology": "vm2vm", "access": "card"}):
        with pytest.raises((BadInput, IndexError)):
            experiments.case({**VALUES, **change})


def test_frames_go_in_by_one_card_and_out_by_the_other_and_both_ends_are_one_probe():
    topology = path()
    assert (topology.sender_port.where, topology.receiver_port.where) == ("0000:01:00.0", "0000:03:00.0")
    assert topology.sender is topology.receiver
    [generator] = topology.host.started
    assert "-a 0000:02:00.0 -a 0000:04:00.0" in generator
    assert "--lcores 0@0,1@3" in generator
    assert topology.cpu_roles() == {0: "host-other", 1: "switch", 2: "host-other", 3: "host-other"}
    dropping = [asked.split()[-1] for asked in topology.host.asked if "RXDCTL" in asked]
    assert sorted(dropping) == ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0"]


def test_a_switch_that_polls_has_no_interrupts_to_set():
    topology = path(rx="poll")
    assert not set_of(topology, "steer")
    assert not set_of(topology, "throttle")


@pytest.mark.parametrize(("irq_cpu", "cpu"), [("switch", "1"), ("housekeeping", "0")])
def test_both_cards_interrupt_the_cpu_that_was_chosen_as_often_as_was_chosen(irq_cpu, cpu):
    topology = path(rx="adaptive", irq_cpu=irq_cpu, irq_throttle_us="500")
    assert set_of(topology, "steer") == [("0000:01:00.0", cpu), ("0000:03:00.0", cpu)]
    assert set_of(topology, "throttle") == [("0000:01:00.0", "500"), ("0000:03:00.0", "500")]


@pytest.mark.parametrize("script", ["smp_affinity_list", "EITR0"])
def test_a_card_that_takes_no_such_setting_fails_the_run_with_its_reason(script):
    with pytest.raises(RunFailed, match=r"interrupts of the network card 0000:01:00\.0 can't be set: no such register; .*vfio-pci"):
        path(Host(refuses=script), rx="interrupt")


def test_settings_of_interrupts_are_refused_of_a_switch_that_polls():
    for rx in ({}, {"rx": "poll"}):
        with pytest.raises(BadInput, match=r"irq_cpu and irq_thread: .* a switch that polls takes none: use rx interrupt or adaptive"):
            experiments.case({**VALUES, **rx, "irq_cpu": "housekeeping", "irq_thread": "on"})
    assert experiments.case({**VALUES, "rx": "poll", "irq_cpu": "switch"}).options["irq_cpu"] == "switch"
    assert experiments.case({**VALUES, "rx": "interrupt", "irq_throttle_us": "500"}).options["irq_throttle_us"] == "500"


def test_what_the_host_boots_with():
    assert P2pPaced.boots({}) == {"iommu": True}
    assert P2pPaced.boots({"irq_thread": "on"}) == {"iommu": True, "threaded_irqs": True}
    assert not PvpWire.boots({})
    assert PvpWire.boots({"rx": "interrupt"}) == {"iommu": True}


def test_a_host_without_a_cpu_for_the_generator_or_without_a_wire_is_told_of():
    with pytest.raises(RunFailed, match="p2p_paced takes a CPU for the generator alone"):
        path(Host(cpus=2))
    asked = offers._Asked(SimpleNamespace(name="native", wire_lacking=lambda: "testbed native has no wire"))
    assert asked.why_not({**VALUES, "access": "card"}) == "testbed native has no wire"
    assert asked.why_not({"switch": "vhost-switch", "access": "card"}) == "testbed native has no wire"


@pytest.mark.parametrize(
    ("vector", "status", "written"),
    [(0x81, 0, {0x1684: 488}), (0x80, 0, {0x1680: 488}), (0x01, 1, {})],
)
def test_the_interval_goes_to_the_vector_of_the_first_receive_queue(tmp_path, vector, status, written):
    registers = bytearray(0x20000)
    registers[0x1700] = vector
    (tmp_path / "resource0").write_bytes(registers)
    script = wire.THROTTLE.replace("/sys/bus/pci/devices/{sys.argv[1]}", str(tmp_path))
    done = subprocess.run([sys.executable, "-S", "-c", script, "0000:01:00.0", "500"], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    after = (tmp_path / "resource0").read_bytes()
    words = {at: int.from_bytes(after[at : at + 4], "little") for at in range(0x1680, 0x1700, 4)}
    assert {at: word for at, word in words.items() if word} == written
    assert status == 0 or "no vector" in done.stderr
