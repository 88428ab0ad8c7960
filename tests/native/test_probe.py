# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-probe for real, on this host: single frames through OVS-DPDK, an outage that is known, a restart of the switch; and with one port,
behind which frames come back at once."""

import time
from collections.abc import Iterator

import pytest

from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.terms import flows
from vsprof.terms.errors import RunFailed
from vsprof.testbeds.native import Native
from vsprof.workloads.endpoints import probe
from vsprof.workloads.endpoints.base import Frames
from vsprof.workloads.endpoints.probe import HostProbe, Probe
from vsprof.workloads.topologies.vm2vm import Vm2Vm

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
PERIOD_S = 350e-6
FROZEN_S = 0.4


@pytest.fixture
def path(request) -> Iterator[Vm2Vm]:
    """Two ends over virtio-user on OVS-DPDK; the test's parameter is who owns the sockets."""
    with Native() as host:
        if why := probe.unavailable(host) or host.hugepages_lacking():
            pytest.skip(why)
        options = {"socket": request.param}
        switch = OvsDpdk(host, host.plan(), options)
        topology = Vm2Vm(host, switch, host.plan(), "virtio-user", options)
        try:
            switch.start()
            topology.start()
            switch.ready()
            yield topology
        finally:
            topology.stop()
            switch.stop()


def received(ends: Probe, seconds: float) -> int:
    before = ends.report().received
    time.sleep(seconds)
    return ends.report().received - before


@pytest.mark.parametrize("path", ["client"], indirect=True)
def test_frames_are_timed_and_a_known_outage_is_seen(path):
    ends = path.sender.probe()
    ends.send(PERIOD_S, 64)
    time.sleep(1)
    ends.pause()
    time.sleep(0.2)
    report = ends.report()
    assert report.received == report.offered > 1000
    assert report.reordered == report.duplicates == 0
    assert 0.2e-6 < report.latency.percentile(50) < 1e-3
    ends.send(PERIOD_S, 1518)
    # Nobody forwards meanwhile, and nobody is told.
    pid = path.switch.processes()[1].pid
    path.host.run(f"kill -STOP {pid}; sleep {FROZEN_S}; kill -CONT {pid}")
    time.sleep(0.3)
    assert FROZEN_S * 0.9 < ends.report().gap.longest_s < FROZEN_S + 0.5
    # Back to the program that floods, and the path is there.
    flood = path.sender.flood(Frames(64, 1, None, path.sender.mac, path.receiver.mac, "10.77.0.1", "10.77.0.250"))
    flood.prepare()
    before = path.receiver.counters().received_packets
    flood.start()
    time.sleep(0.5)
    flood.stop()
    assert path.receiver.counters().received_packets - before > 10_000
    path.check()


@pytest.mark.long
@pytest.mark.parametrize(("path", "survives"), [("client", True), ("server", False)], indirect=["path"])
def test_only_a_switch_that_is_client_comes_back_by_itself(path, survives):
    ends = path.sender.probe()
    ends.send(PERIOD_S, 64)
    assert received(ends, 0.5) > 100
    path.switch.kill()
    assert path.host.died(path.switch.processes())
    path.switch.restart()
    path.check()
    time.sleep(4)
    assert (received(ends, 1) > 100) == survives


@pytest.fixture
def alone() -> Iterator[HostProbe]:
    """A frame-probe with one port, DPDK's net_ring, that gives what it got."""
    with Native() as host:
        if why := probe.unavailable(host) or host.hugepages_lacking():
            pytest.skip(why)
        one = HostProbe(host, "alone", ["net_ring0"], [1, 0])
        try:
            yield one
        finally:
            one.stop()


def test_one_port_sends_a_given_number_of_frames_at_a_rate_and_gets_them_back(alone):
    alone.send(PERIOD_S, 64)
    alone.pause()
    report = alone.burst(300_000, 1e-6, 1518)
    assert report.offered == report.sent == report.received == 300_000
    assert len(report.ports) == 1
    assert report.reordered == report.duplicates == 0
    # Nothing more is sent, and what is asked again is the same.
    time.sleep(0.2)
    again = alone.report()
    assert (again.offered, again.received) == (300_000, 300_000)
    # A million a second takes bursts wherever this host was away for a microsecond. What it was away for longer than 32 is skipped.
    due = report.offered + report.skipped
    assert report.skipped <= 0.5 * due or report.stalls.seconds > 0.1


def test_a_stream_without_end_can_not_be_waited_for(alone):
    alone.begin(PERIOD_S, 64)
    with pytest.raises(RunFailed, match="no end to wait for: start it with count=N"):
        probe._read(alone._ask("wait"))
    alone.pause()
    assert alone.report().received > 0


def test_settings_that_it_does_not_take_are_told_with_what_was_asked(alone):
    with pytest.raises(RunFailed, match=r"start period-us=0\.005 .*burst=32: error: period-us: need 0\.01"):
        alone.flow(1 / 200_000_000, 64)


TARGET = "52:54:00:76:67:0a"
WRITTEN = "/tmp/vsprof-flows.pcap"


def frames_of(pcap: bytes) -> Iterator[bytes]:
    """The frames of a file in libpcap's classic format."""
    at = 24
    while at < len(pcap):
        size = int.from_bytes(pcap[at + 8 : at + 12], "little")
        yield pcap[at + 16 : at + 16 + size]
        at += 16 + size


@pytest.mark.parametrize("burst", [1, 32])
def test_flows_take_turns_and_go_where_they_are_told(burst, tmp_path):
    with Native() as host:
        if why := probe.unavailable(host):
            pytest.skip(why)
        plan = host.plan()
        one = HostProbe(host, "flows", [f"net_pcap0,tx_pcap={WRITTEN}"], [plan.switch, plan.housekeeping])
        try:
            start = probe.start_command(1e-4, 64, count_all=True, burst=burst, count=600)
            probe.accept(start, one._ask(f"{start} flows=7 target={TARGET}"))
            one.settle()
        finally:
            one.stop()
        host.pull(WRITTEN, tmp_path)
        host.run(f"rm {WRITTEN}")
    found = list(frames_of((tmp_path / WRITTEN.rpartition("/")[2]).read_bytes()))
    assert len(found) == 600
    assert {frame[:6].hex(":") for frame in found} == {TARGET}
    assert [".".join(map(str, frame[30:34])) for frame in found] == [flows.address(number % 7) for number in range(600)]
