# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's network cards, for real: what the generator sends goes through a switch and a virtual machine, and comes back: as fast as it
goes, and at a rate; or it goes from card to card through a switch that sleeps until it is interrupted."""

import re
import time

import pytest

from vsprof.runner.experiment import SWITCHES
from vsprof.switches.base import Switch
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import PREFIX, VhostSwitch
from vsprof.terms.placement import Duties
from vsprof.testbeds import cards, dpdk_telemetry, modules, wire
from vsprof.testbeds.lab import Lab
from vsprof.testbeds.wire import Wire
from vsprof.workloads.endpoints.base import Frames
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.endpoints.vm_switch import CPUS
from vsprof.workloads.topologies.p2p_paced import P2pPaced
from vsprof.workloads.topologies.pvp_paced import PvpPaced
from vsprof.workloads.topologies.pvp_wire import PvpWire
from vsprof.workloads.traffic import counted

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]


WAYS = {
    "kernel": ("kernel-ovs", "vhost-net", {"endpoint": "kernel"}),
    "DPDK": ("ovs-dpdk", "vhost-user", {"endpoint": "testpmd"}),
    "AF_XDP": ("ovs-dpdk", "vhost-user", {"endpoint": "testpmd", "card_driver": "af_xdp"}),
    "AF_XDP to vhost-switch": ("vhost-switch", "vhost-user", {"endpoint": "testpmd", "card_driver": "af_xdp", "forward": "wire"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_sent_comes_back(way: str) -> None:
    name, access, options = WAYS[way]
    options = {**options, "forwarding": "io"}
    with Lab() as host:
        switch = SWITCHES[name](host, host.plan(), options)
        topology = PvpWire(host, switch, switch.plan, access, options, 64)
        topology.boot()
        switch.start()
        topology.start()
        switch.ready()
        topology.forward(True)
        time.sleep(1)
        topology.forward(False)
        time.sleep(0.5)
        card = switch.parse_port_counters(host.run(switch.port_counters()).stdout)["phy"]
        generator = topology._generator.counters()
        # In no time: what comes in is not what went out, for a ring of the card overflows.
        assert generator.sent_packets >= card.received_packets >= card.sent_packets > 1000
        # What comes back when it has stopped is not taken by it any more.
        assert card.sent_packets >= generator.received_packets > 1000
        # Linux 6.12's igb knows no other way.
        assert switch.facts().get("af_xdp") == ({"phy-xdp": "copy"} if "card_driver" in options else None)
        topology.close()


FLOWS = 64
SWITCHES_OF_CARDS = ["kernel-ovs", "ovs-dpdk", "vhost-switch"]
PER_QUEUE = "ethtool -S phy | grep -oP 'rx_queue_[01]_packets: \\K.*'"
USAGE = re.compile(r"port: phy +.*usage: +(\d+)")
# Open vSwitch counts no packets of a queue, but cycles, and shows them of whole intervals of 5 s.
SHOWN_S = 11


@pytest.mark.parametrize(("name", "card_driver"), [*((name, "dpdk") for name in SWITCHES_OF_CARDS), ("ovs-dpdk", "af_xdp")])
def test_what_comes_is_spread_over_the_queues_of_a_card_and_the_cpus_of_the_switch(name: str, card_driver: str) -> None:
    options = {"forwarding": "io", "forward": "wire", "endpoint": "testpmd", "card_driver": card_driver}
    options |= {"card_queues": "2", "switch_cpus": "2", "queues": "2"}
    with Lab(cpus=6) as host:
        switch = SWITCHES[name](host, host.plan(Duties(2)), options)
        topology = PvpWire(host, switch, switch.plan, switch.accesses[0], options, 64, FLOWS)
        topology.boot()
        switch.start()
        topology.start()
        switch.ready()
        topology.forward(True)
        time.sleep(2)
        before, began = busy(host), clock_s(host)
        time.sleep(2)
        used, seconds = [late - early for early, late in zip(before, busy(host), strict=True)], clock_s(host) - began
        taken = per_queue(host, switch)
        topology.forward(False)
        time.sleep(0.5)
        card = switch.parse_port_counters(host.run(switch.port_counters()).stdout)["phy"]
        assert card.received_packets >= card.sent_packets > 1000
        # By a hash of so few flows, not evenly.
        assert len(taken) == 2
        assert min(taken) > sum(taken) / 10
        assert all(used[cpu] > seconds / 4 for cpu in switch.plan.movers), (used, seconds)
        topology.close()


def per_queue(host: Lab, switch: Switch) -> list[int]:
    """How many frames each of a card's two queues received, or what part of a CPU's cycles they took."""
    if isinstance(switch, OvsDpdk):
        time.sleep(SHOWN_S)
        return list(map(int, USAGE.findall(switch.appctl("dpif-netdev/pmd-rxq-show"))))
    if isinstance(switch, VhostSwitch):
        printed = host.run(dpdk_telemetry.command(PREFIX, ["/vhost_switch/queue,phy,0", "/vhost_switch/queue,phy,1"])).stdout
        return [found["rx_packets"] for *_, found in dpdk_telemetry.answers(printed)]
    return list(map(int, host.run(PER_QUEUE).stdout.split()))


def busy(host: Lab) -> list[float]:
    """Seconds that each CPU was in use, since it booted."""
    lines = host.run("grep '^cpu[0-9]' /proc/stat").stdout.splitlines()
    return [sum(float(spent) for spent in (line.split()[1:4] + line.split()[6:8])) / 100 for line in lines]


def clock_s(host: Lab) -> float:
    return float(host.run("cat /proc/uptime").stdout.split()[0])


RATE_PPS, FRAMES = 1000, 1000
"""What an emulated path carries with ease, in the emulator's time."""
CARDS_RING = 1024
"""vhost-switch's (dataplane/dpdk_port.c)."""


@pytest.mark.parametrize(("name", "access", "endpoint"), [("kernel-ovs", "vhost-net", "kernel"), ("vhost-switch", "vhost-user", "testpmd")])
def test_at_a_rate_each_frame_is_at_each_hop_and_timed_and_a_full_card_drops(name: str, access: str, endpoint: str) -> None:
    options = {"endpoint": endpoint, "forwarding": "io", "forward": "wire"}
    with Lab() as host:
        switch = SWITCHES[name](host, host.plan(), options)
        topology = PvpPaced(host, switch, switch.plan, access, options, 64)
        topology.boot()
        switch.start()
        topology.start()
        switch.ready()
        flood = topology.sender.flood(Frames(64, 1, RATE_PPS, "", "", "", ""))
        flood.prepare()
        hops = [counted.hops(topology)]
        flood.burst(FRAMES, RATE_PPS)
        hops.append(counted.hops(topology))
        assert gained(hops) == dict.fromkeys(hops[0], FRAMES)
        report = topology.sender.probe().report()
        assert report.latency.count + report.disturbed.count == FRAMES
        flood.burst(30 * FRAMES, None)
        hops.append(counted.hops(topology))
        assert gained(hops)["sent"] == 30 * FRAMES > gained(hops)["into_switch"] >= gained(hops)["received"] > 0
        if name == "vhost-switch":
            # Nobody empties the card's ring meanwhile, and QEMU would keep 10,000 frames for it.
            [process] = switch.processes()
            host.run(f"kill -STOP {process.pid}")
            flood.burst(30 * FRAMES, None)
            host.run(f"kill -CONT {process.pid}; sleep 1")
            hops.append(counted.hops(topology))
            assert 0 < gained(hops)["into_switch"] <= CARDS_RING
        topology.check()
        topology.close()


def gained(hops: list[dict[str, int]]) -> dict[str, int]:
    """Frames at each hop since the one before the last."""
    return {hop: hops[-1][hop] - hops[-2][hop] for hop in hops[-1]}


DRIVERS = "for card in {0} {1}; do cd /sys/bus/pci/devices/$card; basename $(readlink driver); cat driver_override; ls net; done"


def test_cards_of_a_server_are_taken_only_when_free_and_given_back_as_they_were() -> None:
    with Lab() as host:
        [one] = host.wires(1)
        interfaces = [wire.give_kernel(host, end) for end in (one.switch, one.load)]
        before = host.run(DRIVERS.format(one.switch, one.load)).stdout.split()
        assert before == [word for name in interfaces for word in ("igb", "(null)", name)]
        address = f"ip address {{}} 192.0.2.1/24 dev {interfaces[1]}"
        host.run(address.format("add"))
        refused = host.run(cards.command(cards.CHECK, [one]), check=False)
        assert refused.status == 1
        assert refused.stdout == f"uses {one.load} as {interfaces[1]}, with an IP address\n"
        host.run(address.format("delete"))
        host.run(cards.command(cards.CHECK, [one]))
        host.run(cards.command(cards.REMEMBER, [one]))
        loaded = host.run(modules.LOADED).stdout.split()
        wire.give_dpdk(host, one.switch, one.load)
        assert host.run(DRIVERS.format(one.switch, one.load), check=False).stdout.split() == 2 * 2 * ["uio_pci_generic"]
        host.run(cards.GIVE_BACK)
        names = [wire.give_kernel(host, end) for end in (one.switch, one.load)]
        assert host.run(DRIVERS.format(one.switch, one.load)).stdout.split() == [word for name in names for word in ("igb", "(null)", name)]
        assert "uio_pci_generic" in host.run(modules.LOADED).stdout.split()
        host.run(f"before='{' '.join(loaded)}'\n{modules.UNLOAD}", check=False)
        assert sorted(host.run(modules.LOADED).stdout.split()) == sorted(loaded)
        gone = Wire("0000:ff:1f.7", one.load)
        assert host.run(cards.command(cards.CHECK, [gone]), check=False).stdout == "has no device 0000:ff:1f.7\n"


PERIOD_S, LOOKED_S = 1e-3, 2
THROTTLE_US = 8000
"""Much longer than between two frames, and than the emulated host needs for one."""


def test_a_cards_interrupts_wake_the_switch_on_the_cpu_and_as_often_as_asked() -> None:
    options = {"forward": "wire", "rx": "interrupt", "irq_cpu": "switch"}
    with Lab() as host:
        host.boot(**P2pPaced.boots(options))
        switch = SWITCHES["vhost-switch"](host, host.plan(), options)
        topology = P2pPaced(host, switch, switch.plan, "card", options, 64)
        topology.boot()
        switch.start()
        topology.start()
        switch.ready()
        probe, card = topology.sender.probe(), switch.cards[0]
        probe.send(PERIOD_S, 64)
        rates = interrupts_per_second(host, card)
        assert rates[1] > 50
        assert rates[0] + rates[2] + rates[3] == 0
        wire.steer_interrupts(host, card, 0)
        # The first may still come to the old one.
        rates = interrupts_per_second(host, card)
        assert rates[0] > 50 > rates[1]
        wire.throttle_interrupts(host, card, THROTTLE_US)
        # 125, and up to as many for what the card owes when the worker asks again; a quarter of that, did the card count otherwise.
        assert 70 < sum(interrupts_per_second(host, card)) < 2.2e6 / THROTTLE_US
        probe.pause()
        time.sleep(0.5)
        report = probe.report()
        assert report.received == report.offered > 1000
        topology.check()
        topology.close()


FIRST = 5
"""Interrupts that may still come to the CPU that had them before; two were seen."""


def test_a_machine_that_sleeps_is_interrupted_on_the_cpu_asked_for_and_sends_each_frame_back() -> None:
    options = {"endpoint": "vhost-switch", "forwarding": "io", "forward": "wire", "guest_rx": "interrupt", "guest_irq_cpu": "worker"}
    with Lab() as host:
        switch = SWITCHES["vhost-switch"](host, host.plan(), options)
        topology = PvpPaced(host, switch, switch.plan, "vhost-user", options, 64)
        topology.boot()
        switch.start()
        topology.start()
        switch.ready()
        [guest] = topology._vms
        flood = topology.sender.flood(Frames(64, 1, RATE_PPS, "", "", "", ""))
        flood.prepare()
        for cpu in ("worker", "other"):
            guest.steer_interrupts(cpu)
            seen = [interrupts_in(guest)]
            flood.burst(FRAMES, RATE_PPS)
            seen.append(interrupts_in(guest))
            gained = [after - before for before, after in zip(*seen, strict=True)]
            # Each frame wakes it, but those that come before it sleeps again: many on a slow machine. The kernel moves an interrupt when the
            # next one comes, so the first ones are still the old CPU's.
            assert FRAMES / 10 < sum(gained) <= FRAMES + 10
            assert gained[1 - CPUS[cpu]] <= FIRST < gained[CPUS[cpu]]
        report = topology.sender.probe().report()
        assert report.received == report.offered == FRAMES
        topology.close()


def interrupts_in(guest: Vm) -> list[int]:
    """By CPU of the machine, of its interface."""
    [line] = [one for one in guest.run("cat /proc/interrupts").splitlines() if "vfio-msix[1]" in one]
    return list(map(int, line.split()[1:3]))


def interrupts_per_second(host: Lab, card: str) -> list[float]:
    """By CPU, of the card, for what it received."""
    seen = []
    for wait in (LOOKED_S, 0):
        uptime, line = host.run(rf"cat /proc/uptime; grep -F 'vfio-msix[1]({card})' /proc/interrupts").stdout.splitlines()
        seen.append((float(uptime.split()[0]), list(map(int, line.split()[1 : 1 + host.cpus]))))
        time.sleep(wait)
    (began, before), (ended, after) = seen
    return [(late - early) / (ended - began) for early, late in zip(before, after, strict=True)]
