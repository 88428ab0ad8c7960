# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with a DPDK program: how they are started, what their driver says, and what they can send."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.runner import experiment as experiments
from vsprof.switches.base import Port, Switch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan, Duties
from vsprof.workloads.endpoints import virtio_features as features
from vsprof.workloads.endpoints import virtio_paths
from vsprof.workloads.endpoints.base import Counters, Frames
from vsprof.workloads.endpoints.virtio_paths import PATHS
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.endpoints.vm_probe import ProbeVm
from vsprof.workloads.endpoints.vm_switch import SwitchVm
from vsprof.workloads.endpoints.vm_testpmd import TestpmdVm, counters_of
from vsprof.workloads.topologies.pvp import Pvp
from vsprof.workloads.topologies.vm2host import Vm2Host
from vsprof.workloads.topologies.vm2vm import Vm2Vm

PLACE = {"vcpu": 2, "backend_cpus": (1,), "housekeeping_cpu": 0}
PORTS = [Port(f"p{number}", "vhost-user", f"/run/p{number}.sock") for number in (1, 2)]
# As DPDK 24.11's driver said it in a guest on OVS-DPDK.
LOG = """\
VIRTIO_INIT: virtio_ethdev_negotiate_features(): guest_features before negotiate = 8000005f10ef8028
VIRTIO_INIT: virtio_ethdev_negotiate_features(): host_features before negotiate = 130bfa7a7
VIRTIO_INIT: virtio_ethdev_negotiate_features(): features after negotiate = 110af8020
VIRTIO_INIT: set_rxtx_funcs(): virtio: using standard Tx path on port 0
VIRTIO_INIT: set_rxtx_funcs(): virtio: using mergeable buffer Rx path on port 0
"""
# As its testpmd said it there, after it had sent.
STATS = """\
testpmd> show port stats 0

  ######################## NIC statistics for port 0  ########################
  RX-packets: 0          RX-missed: 0          RX-bytes:  0
  RX-errors: 0
  RX-nombuf:  0         
  TX-packets: 133728     TX-errors: 0          TX-bytes:  8558592

  Throughput (since last show)
  Rx-pps:            0          Rx-bps:            0
  Tx-pps:            0          Tx-bps:            0
  ############################################################################
"""


def guest(**options: str) -> TestpmdVm:
    made = TestpmdVm(None, 1, **PLACE, options=options)
    made._process, made._vcpu_tids = SimpleNamespace(pid=652), [661, 662]
    return made


def device_of(vm: Vm) -> str:
    return re.search(r"virtio-net-pci,\S+", " ".join(vm._plugs(PORTS[:1])))[0]


# --- The device's features -------------------------------------------------------------------------------------------


def test_a_guest_of_which_nothing_is_asked_has_qemus_own_features():
    made = Vm(None, 1, **PLACE)
    assert device_of(made) == "virtio-net-pci,bus=slot1,netdev=net-slot1,mac=52:54:00:76:67:01,romfile="


@pytest.mark.parametrize(
    ("options", "properties"),
    [
        ({"mrg_rxbuf": "off"}, ["mrg_rxbuf=off"]),
        ({"event_idx": "off", "indirect_desc": "off"}, ["indirect_desc=off", "event_idx=off"]),
        ({"packed": "on"}, ["packed=on"]),
        ({"mrg_rxbuf": "on", "packed": "off"}, []),
    ],
)
def test_a_feature_is_a_property_of_the_device(options, properties):
    made = Vm(None, 1, **PLACE, options=options)
    assert device_of(made).split("romfile=")[1].split(",")[1:] == properties


@pytest.mark.parametrize(("path", "properties"), [("mergeable", ""), ("vector", ",mrg_rxbuf=off"), ("packed", ",packed=on")])
def test_a_path_sets_the_features_that_it_needs(path, properties):
    assert device_of(guest(path=path)).split("romfile=")[1] == properties


def test_what_a_kernels_driver_agreed_to_is_read_bit_by_bit():
    bits = ["0"] * 64
    for name in ("mrg_rxbuf", "packed"):
        bits[features.FEATURES[name].bit] = "1"
    assert features.of_kernel("".join(bits) + "\n") == {"mrg_rxbuf", "packed"}


@given(st.text())
def test_anything_else_is_no_kernels_features(text):
    try:
        found = features.of_kernel(text)
    except ValueError:
        return
    assert set(text.strip()) <= {"0", "1"}
    assert found <= features.FEATURES.keys()


def test_what_dpdks_driver_agreed_to_is_what_it_said_last():
    assert features.of_driver(LOG) == {"mrg_rxbuf", "indirect_desc"}
    assert features.of_driver(LOG + LOG.replace("110af8020", "110af0020")) == {"indirect_desc"}
    with pytest.raises(ValueError, match="did not say"):
        features.of_driver("VIRTIO_INIT: nothing")


def test_a_feature_that_is_not_agreed_to_fails_the_run():
    made = Vm(None, 1, **PLACE, options={"packed": "on"})
    with pytest.raises(RunFailed, match="guest1: asked for packed on, and its driver did not agree"):
        made._check_features(frozenset({"mrg_rxbuf", "indirect_desc", "event_idx"}))


def test_several_queues_are_several_pairs_of_rings_on_both_sides(monkeypatch):
    made = guest(queues="4")
    assert "vectors=10" in device_of(made)
    assert "chardev=net-slot1-switch,queues=4" in " ".join(made._plugs(PORTS[:1]))
    launched = []
    monkeypatch.setattr(made, "run", lambda *_, **__: "")
    monkeypatch.setattr(made, "launch", lambda program, eal, own, *_: launched.extend(own))
    made.serve("rxonly")
    assert {"--rxq=4", "--txq=4"} <= set(launched)
    with pytest.raises(BadInput, match="queues"):
        case(switch="kernel-ovs", endpoint="testpmd", access="virtio-net", queues="2")


def test_frames_of_several_pairs_are_of_several_flows(monkeypatch):
    launched = []
    for number in (1, 3):
        made = TestpmdVm(None, number, **PLACE)
        monkeypatch.setattr(made, "run", lambda *_, **__: "")
        monkeypatch.setattr(made, "launch", lambda program, eal, own, *_: launched.extend(own))
        made.serve("rxonly")
    assert [word for word in launched if "--tx-ip" in word] == ["--tx-ip=10.77.0.1,198.18.0.2", "--tx-ip=10.77.0.3,198.18.0.2"]


def test_a_tap_of_several_queues_has_a_vhost_worker_for_each_which_take_turns_on_the_switchs_cpus():
    made = TestpmdVm(None, 1, vcpu=3, backend_cpus=[1, 2], housekeeping_cpu=0, options={"queues": "4"})
    made._vcpu_tids, made._process, made._has_vhost_worker = [661, 662], SimpleNamespace(pid=652), True
    plugged = " ".join(made._plugs([Port("p1", "vhost-net", "p1")]))
    assert "vhost=on,queues=4" in plugged
    assert "mq=on" in plugged
    names = {661: "CPU 0/KVM", 662: "CPU 1/KVM", 652: "qemu-system-x86", **dict.fromkeys((673, 670, 671, 672), "vhost-652")}
    assert made._cpus(names) == {661: 0, 662: 3, 652: 0, 670: 1, 671: 2, 672: 1, 673: 2}


# --- The machine -----------------------------------------------------------------------------------------------------


def test_its_second_cpu_polls_and_the_first_is_not_measured():
    made = guest()
    assert "-smp 2" in " ".join(made._command())
    assert [made._role(f"CPU {number}/KVM", 661 + number) for number in (0, 1)] == ["host-other", "guest"]
    assert made._cpus({661: "CPU 0/KVM", 662: "CPU 1/KVM"}) == {661: 0, 662: 2}
    assert "isolcpus=1" in " ".join(made._command())


def test_frame_probes_machine_has_both_interfaces_and_times_by_its_own_clock():
    made = ProbeVm(None, 1, **PLACE)
    command = " ".join(made._plugs(PORTS))
    assert [slot for slot in made.slots if f"pcie-root-port,id={slot}," in made.command()] == ["slot1", "slot2"]
    assert command.count("virtio-net-pci") == 2
    assert all(f"path={port.where},server=on" in command for port in PORTS)
    assert [(end.name, end.mac) for end in made.ends] == [("guest1-eth0", "52:54:00:76:67:01"), ("guest1-eth1", "52:54:00:76:67:02")]
    first, second = made.ends
    assert first.can_not_pace(second) is None
    assert "both ends" in second.can_not_pace(first)
    assert "given rate" in first.can_not_flood(False, 1)
    assert first.can_not_flood(True, 1) is None
    assert "one flow" in first.can_not_flood(True, 2)


@pytest.mark.parametrize("path", PATHS)
def test_the_driver_must_take_the_path_that_was_asked_for(path):
    made = guest(path=path)
    made._devices = ["0000:00:03.0"]
    said = LOG.replace("mergeable buffer", PATHS[path].said).replace("110af8020", f"{negotiated(path):x}")
    made._check(said)
    assert virtio_paths.taken(said)[0]["rx"] == PATHS[path].said
    with pytest.raises(RunFailed, match=f"asked for path {path}, and its driver takes the path 'other'"):
        made._check(LOG.replace("mergeable buffer", "other"))
    with pytest.raises(RunFailed, match=f"asked for path {path}, and its driver names none"):
        made._check("")


def negotiated(path: str) -> int:
    on = {"indirect_desc": "on", **PATHS[path].features()}
    return sum(1 << features.FEATURES[name].bit for name, value in on.items() if value == "on")


@pytest.mark.parametrize(("rx", "steered"), [("interrupt", True), ("adaptive", True), ("poll", False)])
def test_vhost_switch_in_a_machine_gets_interrupts_behind_its_iommu(monkeypatch, rx, steered):
    made, launched, ran = SwitchVm(None, 1, **PLACE, options={"guest_rx": rx, "guest_irq_cpu": "other"}), [], []
    command = made._command()
    assert command.index("intel-iommu,intremap=off") < command.index("pcie-root-port,id=slot1,chassis=1,slot=1")
    assert "intel_iommu=on" in " ".join(command)
    monkeypatch.setattr(made, "run", lambda command, **_: ran.append(command) or "0000:01:00.0")
    monkeypatch.setattr(made, "launch", lambda program, eal, own: launched.append([program, *eal, *own]))
    monkeypatch.setattr(made, "await_program", lambda ready: None)
    made.begin()
    made.finish()
    assert {"--forward=loop", f"--rx={rx}", "--port=p0,dev=0000:01:00.0", "--iova-mode=pa"} < set(launched[0])
    assert "driver=vfio-pci" in ran[1]
    assert [one.splitlines()[0] for one in ran[2:]] == (["set -- 0"] if steered else [])
    assert made.facts()["guest_rx"] == rx


def test_only_where_frames_are_timed_a_machine_may_sleep():
    asked = {"topology": "pvp_paced", "switch": "vhost-switch", "access": "vhost-user", "forward": "wire", "endpoint": "vhost-switch"}
    assert case(**asked, guest_rx="adaptive").options["guest_rx"] == "adaptive"
    with pytest.raises(BadInput, match="forwarding"):
        case(**asked, forwarding="mac")
    with pytest.raises(BadInput, match="endpoint"):
        case(**{**asked, "topology": "pvp_wire"})
    with pytest.raises(BadInput, match="guest_rx=poll never does"):
        case(**asked, guest_rx="poll", guest_irq_cpu="other")
    # What is left to the default is testpmd, which changes addresses.
    assert case(**{**asked, "endpoint": "auto"}, forwarding="mac").options["endpoint"] == "testpmd"


# --- What it sends ---------------------------------------------------------------------------------------------------


REPORT = Path(__file__).with_name("frame-probe.jsonl").read_text().splitlines()[0]


class Told(TestpmdVm):
    """A guest that writes down what its programs are told, and answers as they do."""

    __test__ = False

    def __init__(self, **options):
        super().__init__(SimpleNamespace(), 1, **PLACE, options=options)
        self.told = []

    def tell(self, *commands):
        self.told += commands
        return STATS

    def launch(self, program, eal, more, standard_input="/dev/null"):
        self.told.append((program, *more))

    def await_program(self, ready):
        self.told.append(ready)

    def ask(self, command, **arguments):
        return 12_500_000_000

    def run(self, command, **how):
        self.told.append(command)
        return REPORT if "report" in command else "ok\n"


def flood_of(made, flows=1, rate_pps=None):
    return made.flood(Frames(64, flows, rate_pps, made.mac, "52:54:00:76:67:02", "239.255.77.1", "10.253.0.0"))


def test_testpmd_floods_one_flow_as_fast_as_it_goes():
    flood_of(made := Told()).prepare()
    assert made.told == ["stop", "set fwd txonly", "set eth-peer 0 52:54:00:76:67:02", "set txpkts 60"]
    assert made.counters() == Counters(12.5, 0, 0, 133728, 8558592)


@pytest.mark.parametrize(
    ("options", "flows", "rate_pps", "paced"),
    [({}, 50, None, "period-us=0.01"), ({}, 1, 2000, "period-us=500"), ({"ways": "both"}, 1, None, "period-us=0.01")],
)
def test_frame_probe_takes_its_place_for_several_flows_a_pace_and_to_receive_meanwhile(options, flows, rate_pps, paced):
    made = Told(**options)
    flood = flood_of(made, flows, rate_pps)
    flood.prepare()
    assert [one[0] for one in made.told if isinstance(one, tuple)] == ["/usr/local/bin/frame-probe"]
    flood.start()
    begun = next(one for one in made.told if "start" in one)
    assert f"start {paced} frame-bytes=64 warmup=0 burst=32 flows={flows} target=52:54:00:76:67:02" in begun
    assert json.loads(flood.stop()["probe.json"])["offered"] == 173
    assert any("echo stop" in one for one in made.told if isinstance(one, str))
    # Its counters are the program's that serves the interface.
    port = json.loads(REPORT)["ports"][0]
    assert made.counters() == Counters(12.5, port["received_packets"], port["received_bytes"], port["sent_packets"], port["sent_bytes"])
    # A second flood finds it there.
    made.told.clear()
    flood_of(made, flows, rate_pps).prepare()
    assert made.told == []


def test_a_flood_after_one_that_frame_probe_sent_is_frame_probes_too():
    made = Told()
    flood_of(made, rate_pps=2000).prepare()
    made.told.clear()
    flood = flood_of(made)
    flood.prepare()
    flood.start()
    assert not any("txonly" in one for one in made.told)
    assert any("start period-us=0.01 " in one for one in made.told)


def test_a_vcpu_is_not_on_the_switchs_cpu_where_there_are_several():
    with pytest.raises(BadInput, match="the switch itself chooses who moves a guest's frames"):
        case(switch="ovs-dpdk", endpoint="testpmd", guest_cpu="switch", switch_cpus="2")


def test_several_queues_are_for_testpmds_own_flood():
    assert Told(queues="2").can_not_flood(False, 1) is None
    assert "use `queues: 1`" in Told(queues="2").can_not_flood(False, 2)
    assert "use `queues: 1`" in Told(queues="2").can_not_flood(True, 1)
    assert "use `queues: 1`" in Told(queues="2", ways="both").can_not_flood(False, 1)
    assert Told().can_not_flood(True, 1000) is None


def test_its_counters_are_those_of_its_port():
    assert counters_of(STATS, 5.5) == Counters(5.5, 0, 0, 133728, 8558592)
    received = STATS.replace("RX-packets: 0 ", "RX-packets: 12 ").replace("RX-bytes:  0", "RX-bytes:  720")
    assert counters_of(received, 5.5) == Counters(5.5, 12, 720, 133728, 8558592)


@given(st.text())
def test_anything_else_is_no_answer_of_testpmd(text):
    with pytest.raises(ValueError, match="not testpmd's port statistics"):
        counters_of(text, 0.0)


# --- In an experiment ------------------------------------------------------------------------------------------------


def case(**values: object) -> experiments.Case:
    return experiments.case({"topology": "vm2vm", "switch": "ovs-dpdk", "access": "auto", "frame_bytes": 64, "flows": 1, **values})


def test_an_option_belongs_to_the_cases_whose_endpoint_has_it():
    both = {"tx_interrupts": "on", "path": "vector", "mrg_rxbuf": "off", "offloads": "off"}
    assert case(endpoint="kernel", **both).options == {"endpoint": "kernel", "tx_interrupts": "on", "mrg_rxbuf": "off", "offloads": "off"}
    assert case(endpoint="testpmd", **both).options == {"endpoint": "testpmd", "path": "vector"}
    assert case(access="virtio-user", endpoint="testpmd", **both).options == {"path": "vector"}


def test_a_topology_offers_the_endpoints_that_it_can_have():
    assert Vm2Vm.options_of("vhost-user")["endpoint"] == ("kernel", "testpmd", "probe")
    assert Pvp.options_of("vhost-user")["endpoint"] == ("testpmd", "kernel")
    with pytest.raises(BadInput, match="probe"):
        case(topology="vm2host", endpoint="probe")
    assert "path" in Pvp.options_of("vhost-user")
    assert Pvp.options_of("vhost-user", {"endpoint": "kernel"})["forwarding"] == ("io",)
    assert "probe" not in Vm2Host.options_of("vhost-user")["endpoint"]


def test_a_topology_makes_the_machines_that_a_case_asks_for():
    for endpoint, kind, count in (("kernel", Vm, 2), ("testpmd", TestpmdVm, 2), ("probe", ProbeVm, 1)):
        made = Vm2Vm(SimpleNamespace(cpus=4), Switch, CpuPlan.of(4), "vhost-user", {"endpoint": endpoint})
        assert [type(one) for one in made._machines()] == [kind] * count
        assert len(made._made) == 2


def made_of(options, cpus=16, movers=1):
    duties = Duties(movers, Vm2Vm.ends(options))
    return Vm2Vm(SimpleNamespace(cpus=cpus), Switch, CpuPlan.of(cpus, duties), "vhost-user", {"endpoint": "testpmd", **options})


@pytest.mark.parametrize(
    ("pairs", "movers", "backends"),
    [("1", 1, [1, 1]), ("1", 2, [1, 2]), ("2", 2, [1, 1, 2, 2]), ("4", 2, [1, 1, 2, 2, 1, 1, 2, 2]), ("2", 4, [1, 2, 3, 4])],
)
def test_pairs_are_spread_over_the_cpus_that_move_frames(pairs, movers, backends):
    topology = made_of({"pairs": pairs}, movers=movers)
    vms = topology._machines()
    assert [one._backend_cpus[0] for one in vms] == backends
    assert [one._vcpu for one in vms] == list(topology.plan.endpoints)
    assert topology.cpu_roles() == {
        cpu: "host-other" if cpu == 0 else "switch" if cpu <= movers else "guest" if cpu < 1 + movers + 2 * int(pairs) else "host-other"
        for cpu in range(16)
    }


def test_frames_take_a_route_from_the_first_of_a_pair_to_the_second_and_back_where_both_send(monkeypatch):
    for ways, wanted in (("one", [(1, 2), (3, 4)]), ("both", [(1, 2), (3, 4), (2, 1), (4, 3)])):
        topology, learnt = made_of({"pairs": "2", "ways": ways}), []
        ends = topology._machines()
        for number, end in enumerate(ends, start=1):
            end.port = Port(f"p{number}", "vhost-user", "")
        topology.switch = SimpleNamespace(learn=lambda port, mac, learnt=learnt: learnt.append(port.name), wants_addresses=False)
        monkeypatch.setattr(topology, "_attach", lambda ends=ends: ends)
        topology.start()
        assert [(ends.index(one.sender) + 1, ends.index(one.receiver) + 1) for one in topology.routes] == wanted
        assert [(one.sender_port.name, one.receiver_port.name) for one in topology.routes] == [(f"p{a}", f"p{b}") for a, b in wanted]
        assert {*learnt} == {"p1", "p2", "p3", "p4"}
        assert (topology.sender, topology.receiver) == tuple(ends[:2])


def test_only_virtual_machines_with_two_ends_come_in_pairs():
    assert "pairs" in Vm2Vm.options_of("vhost-net")
    assert "pairs" not in Vm2Vm.options_of("veth")
    assert "pairs" not in Vm2Vm.options_of("vhost-user", {"endpoint": "probe"})
    assert "pairs" not in Vm2Host.options_of("vhost-user")
