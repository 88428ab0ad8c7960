# SPDX-License-Identifier: GPL-2.0-or-later
"""The topology pvp_wire: which switches it takes, how they get the card, and when the generator sends."""

from types import SimpleNamespace

import pytest

from vsprof.runner import experiment as experiments
from vsprof.runner import offers
from vsprof.switches import links
from vsprof.switches.kernel_ovs import KernelOvs
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan, Thread
from vsprof.testbeds import wire
from vsprof.testbeds.wire import Wire
from vsprof.workloads.endpoints import generator
from vsprof.workloads.endpoints import vm as endpoint_vm
from vsprof.workloads.topologies import pvp_wire
from vsprof.workloads.topologies.pvp_wire import PvpWire

VALUES = {"topology": "pvp_wire", "access": "auto", "frame_bytes": 64, "flows": 1, "endpoint": "testpmd"}
CARDS = Wire("0000:01:00.0", "0000:02:00.0")


class Host:
    """A host with a wire. It writes down what is asked of it; ``status``: of every command."""

    cpus, name, cards_emulated = 4, "lab", True

    def __init__(self, status: int = 0):
        self.asked, self.status, self.wired = [], status, 0

    def run(self, command, *, timeout=60, check=True):
        self.asked.append(command)
        return SimpleNamespace(status=self.status, stdout="eth7\n" if "ls net" in command else "ok\n", stderr="no such driver")

    def wire_lacking(self):
        return None

    def wires(self, count):
        self.wired += 1
        return [CARDS] * count

    def adopt_interface(self, interface):
        self.asked.append(f"adopt {interface}")

    def prepared(self, key, prepare):
        return None


@pytest.mark.parametrize("switch", ["kernel-ovs", "ovs-dpdk", "vhost-switch"])
def test_switches_of_the_kernel_and_of_dpdk_take_a_card(switch):
    case = experiments.case({**VALUES, "switch": switch})
    assert case.topology == "pvp_wire"
    assert case.access in endpoint_vm.ACCESSES


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"switch": "linux-bridge"}, ["pvp_wire", "linux-bridge can't", "kernel-ovs or ovs-dpdk or vhost-switch"]),
        ({"switch": "ovs-dpdk", "access": "virtio-user"}, ["virtio-user", "vhost-user"]),
        ({"switch": "ovs-dpdk", "endpoint": "probe"}, ["probe", "testpmd, kernel"]),
    ],
)
def test_what_it_can_not_run_is_named(change, words):
    with pytest.raises(BadInput) as refused:
        experiments.case({**VALUES, **change})
    assert all(word in str(refused.value) for word in words)


def test_a_testbed_without_a_wire_is_not_offered_it():
    host = SimpleNamespace(name="native", wire_lacking=lambda: "testbed native has no wire")
    asked = offers._Asked(host)
    assert asked.why_not({**VALUES, "switch": "ovs-dpdk", "access": "vhost-user"}) == "testbed native has no wire"


def test_dpdk_touches_the_card_alone_and_takes_it_from_its_driver_first(monkeypatch):
    for name in ("_until", "vsctl"):
        monkeypatch.setattr(OvsDpdk, name, lambda self, *of, **how: "")
    host = Host()
    host.start = lambda name, command, **how: host.asked.append(command)
    switch = OvsDpdk(host, CpuPlan.of(4))
    assert "--no-pci" in switch.settings()["dpdk-extra"]
    switch.cards = [CARDS.switch]
    switch.start()
    bound, started = (next(i for i, asked in enumerate(host.asked) if word in asked) for word in ("uio_pci_generic", "ovs-vswitchd-dpdk"))
    assert bound < started
    assert switch.settings()["dpdk-extra"] == "'\"-a 0000:01:00.0\"'"
    other = VhostSwitch(Host(), CpuPlan.of(4))
    assert "--no-pci" in other.command()
    other.cards = [CARDS.switch]
    assert "-a 0000:01:00.0" in other.command()
    assert "--no-pci" not in other.command()


def test_a_card_of_the_kernels_is_handed_on_by_af_xdp(monkeypatch):
    host, added = Host(), []
    monkeypatch.setattr(OvsDpdk, "add_device", lambda self, name, device: added.append((name, device)))
    switch = OvsDpdk(host, CpuPlan.of(4), {"card_driver": "af_xdp"})
    switch.cards = [CARDS.switch]
    assert "--no-pci" in switch.settings()["dpdk-extra"]
    switch.add_card("phy")
    assert added == [("phy", "net_af_xdp0,iface=phy-xdp,busy_budget=0")]
    assert not any("uio_pci_generic" in asked for asked in host.asked)
    assert any("ip link set eth7 down name phy-xdp" in asked for asked in host.asked)
    other = VhostSwitch(Host(), CpuPlan.of(4), {"card_driver": "af_xdp"})
    other.cards = [CARDS.switch]
    assert "--no-pci" in other.command()


def test_the_cards_driver_is_an_option_where_there_are_cards_and_a_thread_that_polls():
    chosen = {**VALUES, "switch": "vhost-switch", "forward": "wire", "card_driver": "af_xdp"}
    assert experiments.case(chosen).options["card_driver"] == "af_xdp"
    with pytest.raises(BadInput, match="card_driver af_xdp has no interrupts for rx adaptive: use rx poll"):
        experiments.case({**chosen, "rx": "adaptive"})
    assert "card_driver" not in experiments.case({**chosen, "topology": "vm2vm"}).options


def test_the_kernels_card_receives_by_one_queue_whose_interrupts_come_to_the_switchs_cpu(monkeypatch):
    host, told = Host(), []
    monkeypatch.setattr(KernelOvs, "vsctl", lambda self, command: told.append(command))
    switch = KernelOvs(host, CpuPlan.of(4))
    switch.cards = [CARDS.switch]
    assert switch.add_card("phy").name == "phy"
    assert any("ip link set eth7 down name phy" in asked and "promisc on up; ethtool -X phy equal 1" in asked for asked in host.asked)
    assert host.asked.index("adopt eth7") < next(place for place, asked in enumerate(host.asked) if "down name phy" in asked)
    assert any("echo 1 > /proc/irq/" in asked and CARDS.switch in asked for asked in host.asked)
    assert told == ["add-port br0 phy"]


def test_registers_of_a_real_card_are_left_alone():
    host = Host()
    host.cards_emulated = False
    wire.drop_when_full(host, CARDS.load)
    wire.throttle_interrupts(host, CARDS.load, 0)
    assert not host.asked
    with pytest.raises(RunFailed, match=r"0000:02:00\.0 is a real one, .* one in 500 us: leave irq_throttle_us at 0"):
        wire.throttle_interrupts(host, CARDS.load, 500)
    wire.give_dpdk(host, CARDS.load)
    assert "allow_unsafe_interrupts=1" not in host.asked[-1]
    links.take_card(host, "eth7", CARDS.load, "phy", 1)
    assert any("combined 1" in asked and asked.endswith("promisc on up") for asked in host.asked)


@pytest.mark.parametrize("kind", [OvsDpdk, VhostSwitch])
def test_a_card_that_dpdk_drives_drops_what_its_ring_has_no_room_for_once_it_is_started(monkeypatch, kind):
    done = []
    monkeypatch.setattr(kind, "_add", lambda self, name, what: done.append("port"))
    host = Host()
    host.run = lambda command, **how: done.append("drops" if "RXDCTL" in command else command) or SimpleNamespace(status=0)
    switch = kind(host, CpuPlan.of(4))
    switch.cards = [CARDS.switch]
    assert switch.add_card("phy").where == CARDS.switch
    assert done == ["port", "drops"]


def test_a_card_that_can_not_be_told_so_fails_the_run():
    with pytest.raises(RunFailed, match=r"network card 0000:02:00.0 can't be set to drop .*: no such driver; is it the lab's own"):
        wire.drop_when_full(Host(status=1), CARDS.load)


def test_a_card_that_no_driver_takes_fails_the_run():
    with pytest.raises(RunFailed, match=r"network card 0000:02:00.0: no such driver"):
        wire.give_dpdk(Host(status=1), CARDS.load)


def test_the_wire_is_there_before_the_switch_and_is_made_once(monkeypatch):
    monkeypatch.setattr(pvp_wire.vm, "boot_all", lambda host, vms: None, raising=False)
    host = Host()
    switch = OvsDpdk(host, CpuPlan.of(4))
    topology = PvpWire(host, switch, CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"})
    topology.boot()
    topology.boot()
    assert (switch.cards, host.wired) == ([CARDS.switch], 1)


def test_a_host_without_a_wire_is_told_of():
    host = Host()
    host.wire_lacking = lambda: "testbed native has no wire between two network cards"
    topology = PvpWire(host, OvsDpdk(host, CpuPlan.of(4)), CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"})
    with pytest.raises(RunFailed, match="pvp_wire can't be measured here: testbed native has no wire"):
        topology.boot()


def test_the_machine_sends_back_as_long_as_frames_come(monkeypatch):
    done = []
    topology = PvpWire(Host(), OvsDpdk(Host(), CpuPlan.of(4)), CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"})
    topology._forward = lambda on: done.append(("machine", on)) or "machine"
    topology._generator = SimpleNamespace(send=lambda on: done.append(("generator", on)) or "generator")
    assert topology.forward(True) == "machine\ngenerator"
    assert topology.forward(False) == "generator\nmachine"
    assert done == [("machine", True), ("generator", True), ("generator", False), ("machine", False)]


def test_the_generator_is_no_part_of_what_is_counted(monkeypatch):
    made = {}

    class Started:
        def __init__(self, host, name, devices, cpus, **more):
            made.update(name=name, devices=devices, cpus=cpus, **more)

        def threads(self):
            return [Thread("generator:dpdk-worker1", 7, "guest", (3,)), Thread("generator:dpdk-testpmd", 6, "host-other", (3,))]

    monkeypatch.setattr(generator, "Testpmd", Started)
    one = generator.Generator(Host(), CARDS.load, 3, 64)
    assert made["cards"] == [CARDS.load]
    assert (made["forward"], made["own"]) == ("flowgen", ["--txpkts=64", "--flowgen-flows=1"])
    assert {thread.role for thread in one.threads()} == {"host-other"}
    with pytest.raises(RunFailed, match="generator: it loads a wire by itself"):
        one.flood(None)
    topology = PvpWire(Host(), OvsDpdk(Host(), CpuPlan.of(4)), CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"})
    assert topology.cpu_roles() == {0: "host-other", 1: "switch", 2: "guest", 3: "host-other"}
