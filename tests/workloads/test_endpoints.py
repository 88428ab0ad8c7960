# SPDX-License-Identifier: GPL-2.0-or-later
"""How a guest is started, where its threads belong, and what each CPU is for."""

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vsprof.switches.base import Port, Switch
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.workloads.endpoints import vm as endpoint_vm
from vsprof.workloads.endpoints.base import offloads_on
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.endpoints.vm_probe import ProbeVm
from vsprof.workloads.topologies.vm2host import Vm2Host
from vsprof.workloads.topologies.vm2vm import Vm2Vm

BITS = "1110010111111111111101010000110010000000100000000000001110000000\n"
"""What a guest's virtio_net and QEMU agreed on over vhost-net, as its sysfs had it: the lowest bit first."""
WHERE = {"vhost-user": "/run/p1.sock", "vhost-net": "p1", "virtio-net": "p1"}


def vm(access: str, number: int = 1, host: object = None, **how: Any) -> Vm:
    cpus = {"vcpu": 2, "backend_cpus": (1,), "housekeeping_cpu": 0}
    made = Vm(host, number, **cpus, node=how.pop("node", None), options=how)
    made.port = Port("p1", access, WHERE[access])
    made._moved_by_qemu, made._has_vhost_worker = access == "virtio-net", access == "vhost-net"
    made._process, made._vcpu_tids = SimpleNamespace(pid=652), [661]
    return made


def plugs(made: Vm) -> list[str]:
    """What its QEMU is told to give it an interface."""
    return list(made._plugs([made.port]))


@pytest.mark.parametrize(("access", "wanted"), [("vhost-net", "vhost=on"), ("virtio-net", "vhost=off")])
def test_a_tap_is_served_by_the_kernel_or_by_qemu(access, wanted):
    command = " ".join(plugs(vm(access)))
    assert f"ifname=p1,script=no,downscript=no,{wanted}" in command


def test_a_vhost_user_guest_owns_the_socket_and_shares_its_memory():
    made = vm("vhost-user")
    command = " ".join(plugs(made))
    assert "path=/run/p1.sock,server=on" in command
    assert "vhost-user,id=net" in command
    assert "share=on" in made.command()


def test_a_guests_memory_is_bound_to_its_node_where_there_are_several():
    assert "share=on,host-nodes=1,policy=bind" in " ".join(vm("vhost-user", node=1)._command())
    assert "host-nodes" not in " ".join(vm("vhost-user")._command())


def maps(pages: str) -> SimpleNamespace:
    """A host of which each process has one file of hugepages."""
    line = f"7f2c00000000 bind:1 file=/dev/hugepages/qemu_back_mem.memory.x\\040(deleted) huge dirty=9 {pages} kernelpagesize_kB=2048\n"
    return SimpleNamespace(run=lambda command, check: SimpleNamespace(stdout=line))


def test_where_a_guests_memory_is_becomes_a_fact():
    made = vm("vhost-user", host=maps("N1=117"), node=1)
    made._check_node()
    assert made.facts() == {"tx_interrupts": "off", "features": [], "node": 1, "hugepages": {1: 117}}
    assert vm("vhost-user").facts() == {"tx_interrupts": "off", "features": []}


@pytest.mark.parametrize(("wanted", "frames"), [("off", 0), ("on", 1)])
def test_a_guests_driver_is_told_whether_to_interrupt_for_what_it_sent(monkeypatch, wanted, frames):
    asked = []
    made = vm("vhost-user", tx_interrupts=wanted)
    ethtool = f"rx-frames:\t1\ntx-frames:\t{frames}\ntx-frames-irq:\t0\n"
    monkeypatch.setattr(made, "run", lambda command, **how: asked.append(command) or (BITS if command.endswith("features") else ethtool))
    made.finish()
    assert asked[0] == f"ethtool -C eth0 tx-frames {frames}"
    # Before it is up: later the driver refuses.
    assert "link set eth0 up" in asked[-1]


def test_a_driver_that_goes_on_interrupting_fails_the_run(monkeypatch):
    made = vm("vhost-user", tx_interrupts="off")
    monkeypatch.setattr(made, "run", lambda command, **how: "tx-frames:\t1\n")
    with pytest.raises(RunFailed, match="tx_interrupts off"):
        made.finish()


@pytest.mark.parametrize(
    ("pages", "seen"), [("N0=3 N1=117", "117 hugepages on node 1, 3 on node 0"), ("N0=120", "120 hugepages on node 0"), ("", "no hugepage")]
)
def test_a_guest_with_memory_elsewhere_fails_the_run(pages, seen):
    with pytest.raises(RunFailed, match=f"guest1's memory: asked for NUMA node 1, found {seen}"):
        vm("vhost-user", host=maps(pages), node=1)._check_node()


def test_two_guests_share_no_address():
    first, second = vm("vhost-net", 1), vm("vhost-net", 2)
    assert first.address != second.address
    assert first.mac != second.mac
    assert first.name != second.name


@pytest.mark.parametrize(
    ("access", "name", "tid", "role", "cpu"),
    [
        ("vhost-net", "CPU 0/KVM", 661, "guest", 2),
        ("vhost-net", "vhost-652", 659, "vhost", 1),
        ("vhost-net", "qemu-system-x86", 652, "host-other", 0),
        ("virtio-net", "qemu-system-x86", 652, "vhost", 1),
        ("virtio-net", "qemu-system-x86", 656, "host-other", 0),
        ("vhost-user", "qemu-system-x86", 652, "host-other", 0),
    ],
)
def test_each_thread_has_its_role_and_its_cpu(access, name, tid, role, cpu):
    made = vm(access)
    assert (made._role(name, tid), made._cpus({tid: name})[tid]) == (role, cpu)


class Older:
    """A host whose kernel, from before Linux 6.4, has the vhost worker of QEMU 652 as its own process 690."""

    def __init__(self):
        self.asked = []

    def run(self, command, check):
        self.asked.append(command)
        if command.startswith("pgrep"):
            return SimpleNamespace(stdout="690\n" if command == "pgrep -x vhost-652" else "")
        pid, name = (690, "vhost-652") if "/690/" in command else (652, "qemu-system-x86")
        status = f"/proc/{pid}/task/{pid}/status"
        return SimpleNamespace(stdout=f"{status}:Name:\t{name}\n{status}:Cpus_allowed_list:\t0\n")


@pytest.mark.parametrize(("access", "found"), [("vhost-net", [652, 690]), ("virtio-net", [652]), ("vhost-user", [652])])
def test_a_vhost_worker_that_is_a_process_is_a_thread_of_its_machine_all_the_same(access, found):
    made = vm(access, host=Older())
    assert [thread.tid for thread in made.threads()] == found
    assert [thread.role for thread in made.threads() if thread.tid == 690] == ["vhost"] * (len(found) - 1)


@pytest.mark.parametrize(
    ("topology", "access", "cpus", "roles"),
    [
        (Vm2Vm, "vhost-net", 4, ["host-other", "vhost", "guest", "guest"]),
        (Vm2Vm, "vhost-user", 4, ["host-other", "switch", "guest", "guest"]),
        (Vm2Host, "vhost-user", 4, ["host-other", "switch", "guest", "host-other"]),
        (Vm2Vm, "vhost-net", 2, ["host-other", "vhost"]),
        (Vm2Vm, "veth", 4, ["host-other", "softirq", "guest", "guest"]),
        (Vm2Vm, "virtio-user", 2, ["host-other", "switch"]),
    ],
)
def test_each_cpu_has_the_role_of_what_is_pinned_there(topology, access, cpus, roles):
    made = topology(SimpleNamespace(cpus=cpus), Switch, CpuPlan.of(cpus), access)
    assert made.cpu_roles() == dict(enumerate(roles))


@pytest.mark.parametrize(
    ("where", "roles"),
    [("near", ["host-other", "host-other", "guest", "switch"]), ("far", ["host-other", "switch", "guest", "host-other"])],
)
def test_on_two_nodes_the_guests_share_a_cpu_and_the_switch_has_its_slot(where, roles):
    made = Vm2Vm(SimpleNamespace(cpus=4), Switch, CpuPlan.of_two_nodes(4).on_slot(where), "vhost-user")
    assert made.cpu_roles() == dict(enumerate(roles))
    assert [one._node for one in made._machines()] == [1, 1]


def test_of_six_cpus_on_two_nodes_each_end_has_its_own_on_the_switchs_near_node():
    plan = CpuPlan.of_two_nodes(6)
    assert (plan.on_slot("near").switch, plan.on_slot("far").switch, plan.endpoints) == (5, 1, (3, 4))


def test_a_guest_can_be_emulated():
    made = Vm(None, 1, vcpu=2, backend_cpus=[1], housekeeping_cpu=0, options={"accel": "tcg"})
    assert "-accel tcg -cpu max" in " ".join(made._command())
    assert "-accel kvm -cpu host" in " ".join(vm("vhost-user")._command())


FEATURES = """Features for br0:
rx-checksumming: off [fixed]
tx-checksumming: {}
\ttx-checksum-ip-generic: {}
scatter-gather: off
tcp-segmentation-offload: {}
\ttx-tcp-segmentation: off [requested on]
generic-segmentation-offload: on
generic-receive-offload: off
"""


def test_the_offloads_that_an_interface_has_are_read_from_what_ethtool_says():
    assert offloads_on(FEATURES.format("on", "on", "off [requested on]")) == ["tx-checksumming", "generic-segmentation-offload"]
    with pytest.raises(ValueError, match="tx-checksumming"):
        offloads_on("Cannot get device feature names: No such device\n")


class End:
    """An end whose interface takes away what it is asked to, but for ``stays``."""

    has_stack, interface, name = True, "br0", "host"

    def __init__(self, stays: str = "") -> None:
        self.asked: list[str] = []
        self._stays = stays

    def run(self, command, *, seconds=30, may_fail=False):
        self.asked.append(command)
        text = FEATURES.format("on", "on", "on") if len(self.asked) == 1 and "--show" in command else FEATURES.format("off", "off", "off")
        return text if self._stays else text.replace("generic-segmentation-offload: on", "generic-segmentation-offload: off")


def offloading(option: str, end: End) -> Vm2Host:
    topology = Vm2Host(SimpleNamespace(cpus=4), Switch, CpuPlan.of(4), "vhost-user", {"offloads": option})
    topology.sender = topology.receiver = end
    topology.sender_port = topology.receiver_port = Port("p1", "vhost-user", "p1.sock")
    topology._set_offloads()
    return topology


def test_offloads_are_taken_away_where_the_case_says_so_and_remembered():
    assert offloading("on", end := End())._offloads == {"host": ["tx-checksumming", "tcp-segmentation-offload"]}
    assert len(end.asked) == 1
    assert offloading("off", end := End())._offloads == {"host": []}
    assert end.asked[0].startswith("ethtool --offload br0 rx off tx off")


def test_an_offload_that_stays_fails_the_run():
    with pytest.raises(RunFailed, match="generic-segmentation-offload on"):
        offloading("off", End(stays="gso"))


def test_a_guest_that_does_not_run_is_named():
    with pytest.raises(Exception, match="guest1: it is not running"):
        vm("vhost-net").counters()


def test_an_endpoint_that_can_not_be_stopped_keeps_no_other():
    """The error is told; and once is enough."""
    stopped = []

    class End:
        def __init__(self, name):
            self.name = name

        def stop(self):
            stopped.append(self.name)
            if self.name == "hangs":
                raise RunFailed("no end after 60 s")

    topology = Vm2Vm(None, None, CpuPlan(0, 1, (2, 3)), "vhost-user")
    topology._made = [End("hangs"), End("other")]
    with pytest.raises(RunFailed, match="no end"):
        topology.stop()
    topology.stop()
    assert stopped == ["hangs", "other"]


class Booting:
    """A host on which a guest's CPU has run for so long at each look; a guest that answers at the last of them, or never."""

    def __init__(self, *ran: float):
        self.ran = iter(ran)

    def socket(self, path):
        return Path(path)

    def run(self, command, check=True):
        if "schedstat" in command:
            return SimpleNamespace(stdout=f"{next(self.ran) * 1e9:.0f} 0 0")
        return SimpleNamespace(stdout="the console's last line")


@pytest.fixture
def booting(monkeypatch):
    def booting(host: Booting, answers: list[bool]) -> Vm:
        asked = iter(answers)
        monkeypatch.setattr(endpoint_vm, "agent_answers", lambda agent, seconds: next(asked))
        monkeypatch.setattr(endpoint_vm.stuck, "processor", lambda *of: "its CPU's thread sleeps in kvm_vcpu_block (state S)")
        guest = vm("vhost-net", host=host)
        guest._process.log = lambda: ""
        return guest

    return booting


def test_a_guest_is_waited_for_as_long_as_its_cpu_runs(booting):
    booting(Booting(20, 40, 60), [False, False, False, True])._await_agent()


def test_one_whose_cpu_stands_still_is_given_up_with_what_it_waits_for(booting):
    with pytest.raises(RunFailed, match=r"did not answer in 120 s: its CPU's thread sleeps in kvm_vcpu_block.*"):
        booting(Booting(20, 20.5), [False, False])._await_agent()


def test_one_in_a_loop_is_given_up_too(booting):
    tries = endpoint_vm.MOST_LOOKS
    with pytest.raises(RunFailed, match=f"did not answer in {tries * endpoint_vm.LOOK_S} s"):
        booting(Booting(*range(60, 60 * (tries + 1), 60)), [False] * tries)._await_agent()


class Asked:
    """A guest agent whose command never ends, and that says which programs there are."""

    def execute(self, command, *, seconds, goes_on=None, **arguments):
        return {"guest-exec": {"pid": 7}, "guest-exec-status": {"exited": False}}[command]


@pytest.mark.parametrize(
    ("ran", "looks"), [([1, 1.0001], 2), (range(1, 30), endpoint_vm.MOST_LOOKS)], ids=["its CPU stands still", "in a loop"]
)
def test_a_command_in_a_guest_is_waited_for_as_long_as_its_cpu_runs(booting, monkeypatch, ran, looks):
    host = Booting(*ran)
    guest = booting(host, [])
    guest._agent = Asked()
    monkeypatch.setattr(endpoint_vm.stuck, "programs", lambda agent: "its programs and where they sleep: iperf3 do_poll")
    monkeypatch.setattr(endpoint_vm, "POLL_S", 0.001)
    with pytest.raises(RunFailed, match=r"no end after .* s: iperf3: its CPU's thread sleeps .*; its programs .*: iperf3 do_poll"):
        guest.run("iperf3", seconds=0.01)
    assert len(list(host.ran)) == len(ran) - looks


def test_a_host_that_does_not_say_what_a_guest_waits_for_hides_no_other_error(booting, monkeypatch):
    guest = booting(Booting(), [])

    def gone(*of):
        raise RunFailed("no end after 60 s: cat wchan")

    monkeypatch.setattr(endpoint_vm.stuck, "processor", gone)
    assert guest.waits_for() == "its host does not say why (no end after 60 s: cat wchan)"


@pytest.mark.parametrize(("where", "cpu"), [("own", 2), ("switch", 1)])
def test_a_vcpu_has_a_cpu_of_its_own_unless_it_is_to_share_the_switchs(where, cpu):
    topology = Vm2Vm(None, None, CpuPlan.of(4), "vhost-user", {"guest_cpu": where})
    assert topology._machines()[0]._vcpu == cpu


class Keeps:
    """A host that kept virtual machines from before under some keys."""

    def __init__(self, *keys: str):
        self.keys, self.asked = keys, []

    def prepared(self, key, prepare):
        self.asked.append(key)
        if key in self.keys:
            return lambda name: SimpleNamespace(name=name, pid=7)
        prepare()


def test_virtual_machines_are_found_where_the_host_kept_them_and_booted_where_not(monkeypatch):
    booted = []
    monkeypatch.setattr(Vm, "start", lambda self: booted.append(self.name))
    monkeypatch.setattr(Vm, "stand_still", lambda self: None)
    first = Keeps()
    endpoint_vm.boot_all(first, [vm("vhost-user", 1), vm("vhost-user", 2)])
    assert booted == ["guest1", "guest2"]
    later, found = Keeps(*first.asked), [vm("vhost-net", 1), vm("vhost-net", 2)]
    endpoint_vm.boot_all(later, found)
    # How they reach a switch does not matter yet.
    assert booted == ["guest1", "guest2"]
    assert [one._process.name for one in found] == ["guest1", "guest2"]


@pytest.mark.parametrize("other", [{"accel": "tcg"}, {"node": 1}])
def test_virtual_machines_of_other_qemus_are_others(monkeypatch, other):
    for name in ("start", "stand_still"):
        monkeypatch.setattr(Vm, name, lambda self: None)
    host = Keeps()
    for how in ({}, other):
        endpoint_vm.boot_all(host, [vm("vhost-user", **how)])
    assert len(set(host.asked)) == 2


def test_an_interface_that_does_not_come_fails_the_run(monkeypatch):
    made = vm("vhost-user")
    monkeypatch.setattr(made, "run", lambda command, **how: "")
    with pytest.raises(RunFailed, match="guest1: no interface of it has the address 52:54:00:76:67:01"):
        made._await_interfaces()


@pytest.mark.parametrize("swapped", [False, True])
def test_interfaces_are_known_by_their_addresses_and_named_anew_where_the_second_was_found_first(monkeypatch, swapped):
    place = {"vcpu": 2, "backend_cpus": (1,), "housekeeping_cpu": 0}
    made, asked = ProbeVm(None, 1, **place), []
    (_, first), (_, second) = made.interfaces()
    named = {first: "eth1", second: "eth0"} if swapped else {first: "eth0", second: "eth1"}

    def run(command: str, **how) -> str:
        asked.append(command)
        return next((f"/sys/class/net/{name}/address\n" for mac, name in named.items() if mac in command), "")

    monkeypatch.setattr(made, "run", run)
    made._await_interfaces()
    renamed = [command for command in asked if "ip link" in command]
    away = "set -e; ip link set eth1 name to-eth0; ip link set eth0 name to-eth1"
    assert renamed == ([f"{away}; ip link set to-eth0 name eth0; ip link set to-eth1 name eth1"] if swapped else [])


class Plugged:
    """QEMU's monitor, with what it answers to the command that adds a backend."""

    def __init__(self, answer: str):
        self.answer, self.told = answer, []

    def execute(self, command, **arguments):
        self.told.append(arguments.get("command-line", command))
        if command == "query-cpus-fast":
            return [{"cpu-index": 0, "thread-id": 661}]
        return self.answer if "netdev_add" in self.told[-1] else ""


def test_a_guest_gets_its_interface_when_it_goes_on(monkeypatch):
    made, monitor = vm("vhost-user"), Plugged("info: QEMU waiting for connection on: disconnected:unix:/run/p1.sock,server=on")
    monkeypatch.setattr(made, "_monitor", lambda: contextlib.nullcontext(monitor))
    made.plug(made.port)
    assert [told.split()[0] for told in monitor.told] == ["query-cpus-fast", "cont", "chardev-add", "netdev_add", "device_add"]
    refusing = Plugged("Error: chardev 'net-slot1-switch' is not available\n")
    monkeypatch.setattr(made, "_monitor", lambda: contextlib.nullcontext(refusing))
    with pytest.raises(RunFailed, match=r"guest1: its QEMU refused netdev_add vhost-user.*: Error: chardev"):
        made.plug(made.port)


def test_what_one_guest_waits_for_the_others_do_meanwhile(monkeypatch):
    done = []
    for step in ("settle", "begin", "finish"):
        monkeypatch.setattr(Vm, step, lambda self, step=step: done.append((step, self.name)))
    monkeypatch.setattr(Vm, "plug", lambda self, *ports: done.append((self.name, *(port.name for port in ports))))
    endpoint_vm.plug_all([vm("vhost-user", 1), vm("vhost-user", 2)], [Port(f"p{n}", "vhost-user", f"/run/p{n}.sock") for n in (1, 2)])
    assert done[:2] == [("guest1", "p1"), ("guest2", "p2")]
    assert done[2:] == [(step, guest) for step in ("settle", "begin", "finish") for guest in ("guest1", "guest2")]
