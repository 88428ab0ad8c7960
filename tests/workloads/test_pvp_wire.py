# SPDX-License-Identifier: GPL-2.0-or-later
"""The topology pvp_wire: which switches it takes, how they get the card, and when the generator sends."""

import subprocess
from types import SimpleNamespace

import pytest

from vsprof.runner import experiment as experiments
from vsprof.runner import offers
from vsprof.switches import links
from vsprof.switches.kernel_ovs import KernelOvs
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan, Duties, Thread
from vsprof.testbeds import wire
from vsprof.testbeds.wire import Wire
from vsprof.workloads.endpoints import generator
from vsprof.workloads.endpoints import vm as endpoint_vm
from vsprof.workloads.topologies import pvp_wire
from vsprof.workloads.topologies.pvp import Pvp
from vsprof.workloads.topologies.pvp_wire import PvpWire
from vsprof.workloads.traffic.forward import Forward

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
    monkeypatch.setattr(OvsDpdk, "add_device", lambda self, *of: added.append(of))
    switch = OvsDpdk(host, CpuPlan.of(4), {"card_driver": "af_xdp", "card_queues": "2"})
    switch.cards = [CARDS.switch]
    assert "--no-pci" in switch.settings()["dpdk-extra"]
    switch.add_card("phy")
    assert added == [("phy", "net_af_xdp0,iface=phy-xdp,queue_count=2,busy_budget=0", 2)]
    # QEMU's card has one more, which no frame is for.
    assert any("ethtool -L phy-xdp combined 3" in asked and "ethtool -X phy-xdp equal 2" in asked for asked in host.asked)
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
    assert any("/proc/irq/" in asked and asked.endswith(f" {CARDS.switch} 1") for asked in host.asked)
    assert told == ["add-port br0 phy"]


@pytest.mark.parametrize("emulated", [True, False])
def test_the_queues_of_a_kernels_card_are_spread_over_the_switchs_cpus(monkeypatch, emulated):
    monkeypatch.setattr(KernelOvs, "vsctl", lambda self, command: None)
    host = Host()
    host.cards_emulated = emulated
    switch = KernelOvs(host, CpuPlan.of(8, Duties(4)), {"card_queues": "4", "switch_cpus": "4"})
    switch.cards = [CARDS.switch]
    switch.add_card("phy")
    assert any(f"ethtool -L phy combined {4 + emulated}" in asked for asked in host.asked)
    assert any("ethtool -X phy equal 4" in asked for asked in host.asked) == emulated
    assert any("/proc/irq/" in asked and asked.endswith(f" {CARDS.switch} 1 2 3 4") for asked in host.asked)


def test_interrupts_of_queues_come_to_the_cpus_in_turn(tmp_path):
    (tmp_path / "msi_irqs").mkdir()
    for irq in (9, 10, 11):
        (tmp_path / "msi_irqs" / str(irq)).touch()
        (tmp_path / str(irq)).mkdir()
    script = wire.STEER.replace("/sys/bus/pci/devices/$1", str(tmp_path)).replace("/proc/irq", str(tmp_path))
    subprocess.run(["bash", "-c", script, "bash", "card", "1", "2"], check=True)
    assert [(tmp_path / irq / "smp_affinity_list").read_text().strip() for irq in ("9", "10", "11")] == ["1", "2", "1"]
    # No such interrupt any more.
    (tmp_path / "msi_irqs" / "12").touch()
    assert subprocess.run(["bash", "-c", script, "bash", "card", "1"], check=False, capture_output=True).returncode == 1


def test_a_switch_that_polls_asks_a_card_for_queues(monkeypatch):
    told = []
    monkeypatch.setattr(OvsDpdk, "vsctl", lambda self, command: told.append(command))
    monkeypatch.setattr(VhostSwitch, "tell", lambda self, command: told.append(command))
    options = {"card_queues": "2", "switch_cpus": "2", "queues": "4", "rxq_assign": "pinned"}
    for kind in (OvsDpdk, VhostSwitch):
        switch = kind(Host(), CpuPlan.of(8, Duties(2)), options if kind is OvsDpdk else {"card_queues": "2", "switch_cpus": "2"})
        switch.cards = [CARDS.switch]
        switch.add_card("phy")
    assert "options:n_rxq=2 " in told[0]
    # Of the card's queues each is pinned, however many the machine's interface has.
    assert told[0].endswith("pmd-rxq-affinity='\"0:1,1:2\"'")
    assert told[1] == f"add-port phy,queues=2,dev={CARDS.switch}"


POLLED = """pmd thread numa_id 0 core_id 1:
  isolated : false
  port: p1                queue-id:  0 (enabled)   pmd usage:  0 %
  port: phy               queue-id:  0 (enabled)   pmd usage:  0 %
  overhead:  0 %
pmd thread numa_id 0 core_id 2:
  isolated : false
  port: phy               queue-id:  1 (enabled)   pmd usage:  0 %
  overhead:  0 %
"""


def test_open_vswitch_with_fewer_queues_than_asked_for_fails_the_run(monkeypatch):
    monkeypatch.setattr(OvsDpdk, "vsctl", lambda self, command: "")
    monkeypatch.setattr(OvsDpdk, "appctl", lambda self, command: POLLED)
    for wanted in ("1", "2", "4"):
        switch = OvsDpdk(Host(), CpuPlan.of(8, Duties(2)), {"card_queues": wanted, "switch_cpus": "2"})
        switch.cards = [CARDS.switch]
        switch.add_card("phy")
        if wanted == "4":
            with pytest.raises(RunFailed, match=r"port phy receives by 2 of 4 queues: .* ask for fewer"):
                switch._check_queues()
        else:
            switch._check_queues()


def test_receive_queues_are_an_option_where_there_are_cards():
    for switch in ("kernel-ovs", "ovs-dpdk", "vhost-switch"):
        chosen = {**VALUES, "switch": switch, "card_queues": "2"}
        assert experiments.case(chosen).options["card_queues"] == "2"
        assert "card_queues" not in experiments.case({**chosen, "topology": "vm2vm"}).options


@pytest.mark.parametrize(("topology", "flows", "refused"), [(PvpWire, 1000, False), (Pvp, 1000, True), (Pvp, 1, False)])
def test_of_frames_from_memory_there_is_one_flow(topology, flows, refused):
    path = topology(Host(), OvsDpdk(Host(), CpuPlan.of(4)), CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"}, 64, flows)
    path.host.clock = "host"
    path.sender = path.receiver = SimpleNamespace(has_stack=False, name="vm1")
    path.sender_port = path.receiver_port = None
    why = Forward(path, Forward.options(), 64, flows).unavailable()
    assert bool(why) == refused
    assert not refused or "of flows 1000 there would be one; use topology pvp_wire" in why


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
    links.take_card(host, "eth7", CARDS.load, "phy", [1], 1)
    assert any("combined 1;" in asked and asked.endswith("promisc on up") for asked in host.asked)


@pytest.mark.parametrize("kind", [OvsDpdk, VhostSwitch])
def test_a_card_that_dpdk_drives_drops_what_its_ring_has_no_room_for_once_it_is_started(monkeypatch, kind):
    done = []
    monkeypatch.setattr(kind, "_add", lambda self, *of: done.append("port"))
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
    one = generator.Generator(Host(), CARDS.load, 3, 64, 1000)
    assert made["cards"] == [CARDS.load]
    assert (made["forward"], made["own"]) == ("flowgen", ["--txpkts=64", "--flowgen-flows=1000"])
    assert {thread.role for thread in one.threads()} == {"host-other"}
    with pytest.raises(RunFailed, match="generator: it loads a wire by itself"):
        one.flood(None)
    topology = PvpWire(Host(), OvsDpdk(Host(), CpuPlan.of(4)), CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"})
    assert topology.cpu_roles() == {0: "host-other", 1: "switch", 2: "guest", 3: "host-other"}
