# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-flood for real, on this host: through every switch that it is used with, all that the switch sent comes, and nothing else."""

import contextlib
import re
import time
from collections.abc import Iterator

import pytest

from vsprof.bench import contenders
from vsprof.bench.flood import standing
from vsprof.switches.ovs import BRIDGE
from vsprof.terms.errors import RunFailed
from vsprof.testbeds.native import Native
from vsprof.workloads.endpoints import frame_flood
from vsprof.workloads.endpoints.base import Flood, Frames
from vsprof.workloads.endpoints.own_programs import FRAME_FLOOD
from vsprof.workloads.topologies.base import Topology

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
SECONDS = 0.5
DRAIN_S = 0.1
FIRST = "10.253.0.0"


@contextlib.contextmanager
def path(contender: str, **options: str) -> Iterator[Topology]:
    host = Native()
    with host:
        if why := FRAME_FLOOD.unavailable(host) or host.hugepages_lacking():
            pytest.skip(why)
    case = contenders.case(contender, {"driver": "frame-flood", "path": "vector", **options})
    with standing(Native(), case, print, switches=contenders.KINDS) as topology:
        yield topology


def flood(path: Topology, frame_bytes: int, flows: int = 1) -> Flood:
    target = path.receiver.address if flows == 1 else FIRST
    frames = Frames(frame_bytes, flows, None, path.sender.mac, path.receiver.mac, path.sender.address, target)
    return path.sender.flood(frames)


def counted(path: Topology) -> list[dict[str, int]]:
    program = path.sender._pair.program
    return [dict(program.counted(end)) for end in (0, 1)]


def through_switch(path: Topology) -> tuple[int, int]:
    ports = path.switch.parse_port_counters(path.host.run(path.switch.port_counters()).stdout)
    return ports[path.sender_port.name].received_packets, ports[path.receiver_port.name].sent_packets


def test_it_says_how_many_flows_it_sends():
    assert frame_flood.can_not_flood("one", 1024) is None
    assert "at most 1024 flows, not 1025" in frame_flood.can_not_flood("one", 1025)


@pytest.mark.long
@pytest.mark.parametrize("contender", ["vhost_switch", "zero_copy", "packed", "packed_librte", "librte", "ovs_dpdk", "testpmd_io"])
def test_what_the_switch_sent_has_come_and_is_the_floods(contender):
    with path(contender) as there:
        for frame_bytes in (64, 1518):
            one, before, (into_before, out_before) = flood(there, frame_bytes), counted(there), through_switch(there)
            one.prepare()
            one.start()
            time.sleep(SECONDS)
            one.stop()
            time.sleep(DRAIN_S)
            sender, receiver = ({name: now[name] - was[name] for name in was} for was, now in zip(before, counted(there), strict=True))
            into, out = through_switch(there)
            assert sender["opackets"] == into - into_before
            assert receiver["ipackets"] == out - out_before > 100_000
            assert receiver["foreign"] == 0
            assert receiver["ibytes"] == receiver["ipackets"] * (frame_bytes - 4)
            assert sender["ipackets"] == receiver["opackets"] == 0
            assert there.receiver.counters().received_packets == counted(there)[1]["ipackets"]
        # Stopped is stopped.
        assert one.ended() is None
        there.check()


def test_flows_differ_in_their_destination():
    with path("ovs_dpdk") as there:
        one = flood(there, 64, flows=100)
        first, last = FIRST, "10.253.0.99"
        for address in (first, last):
            there.host.run(f"ovs-ofctl add-flow {BRIDGE} priority=40000,ip,nw_dst={address},actions=normal")
        one.start()
        time.sleep(SECONDS)
        one.stop()
        listed = there.host.run(f"ovs-ofctl dump-flows {BRIDGE}").stdout
        seen = {address: int(packets) for packets, address in re.findall(r"n_packets=(\d+),.*nw_dst=([0-9.]+)", listed)}
        assert seen[first] > 1000
        assert seen[last] == pytest.approx(seen[first], rel=0.01)
        # The other 98 are as many each.
        assert there.receiver.counters().received_packets > 50 * seen[first]


def test_a_switch_that_comes_back_gets_the_rings_again():
    with path("ovs_dpdk") as there:
        one = flood(there, 64)
        one.start()
        time.sleep(SECONDS)
        there.switch.kill()
        there.switch.restart()
        end = time.monotonic() + 30
        while not all(each["up"] for each in counted(there)):
            assert time.monotonic() < end
            time.sleep(0.1)
        before = counted(there)[1]["ipackets"]
        time.sleep(SECONDS)
        one.stop()
        assert counted(there)[1]["ipackets"] - before > 100_000


def test_a_flood_begins_only_when_the_switch_has_none_of_the_last_and_never_after_it_was_refused():
    with path("vhost_switch") as there:
        one = flood(there, 64)
        one.start()
        time.sleep(SECONDS)
        pid = there.switch.processes()[0].pid
        there.host.run(f"kill -STOP {pid}")
        try:
            with pytest.raises(RunFailed, match="did not answer within 5 s, or the switch keeps its frames"):
                flood(there, 1518).start()
        finally:
            there.host.run(f"kill -CONT {pid}")
        time.sleep(SECONDS)
        before = counted(there)
        time.sleep(SECONDS)
        assert counted(there) == before
        # Nor is anything lost of what can be sent.
        flood(there, 1518).start()
        time.sleep(SECONDS)
        assert counted(there)[1]["ipackets"] - before[1]["ipackets"] > 100_000


def test_what_it_does_not_take_is_told_with_what_was_asked():
    with path("vhost_switch") as there:
        program = there.sender._pair.program
        where = (there.receiver.mac, "10.77.0.1", "10.77.0.2")
        with pytest.raises(RunFailed, match=r"start 0 59 1 52:54:00:76:67:02 10.77.0.1 10.77.0.2: .*need 60 to 1514 bytes"):
            program.tell("start", 0, 59, 1, *where)
        for wrong in ((2, 60, 1, *where), (0, 60, 1, there.receiver.mac, "10.77.0.1"), (0, 60, 1, "x", "10.77.0.1", "10.77.0.2")):
            with pytest.raises(RunFailed, match="need PORT,BYTES,FLOWS,MAC,SOURCE,TARGET"):
                program.tell("start", *wrong)
        with pytest.raises(RunFailed, match="need the port's number"):
            program.tell("stop", "x")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "found no --port"),
        ("--port path=/run/a.sock", "need mac=MAC and path=SOCKET"),
        ("--port mac=5,path=/run/a.sock", "need an address such as 52:54:00:76:67:01, found 5"),
        ("--port mac=52:54:00:76:67:01,path=/run/a.sock,color=red", "found color=red"),
        ("--ring 100", "need a power of two from 64 to 1024, found 100"),
        ("--what", "unknown option, or one without its value: --what"),
        ("--port mac=52:54:00:76:67:01,path=/run/no/such/folder/a.sock,server=1", "can't listen at /run/no/such/folder/a.sock"),
    ],
)
def test_wrong_options_are_one_line(words, said):
    with Native() as host:
        if why := FRAME_FLOOD.unavailable(host) or host.hugepages_lacking():
            pytest.skip(why)
        FRAME_FLOOD.bring(host)
        ran = host.run(f"{FRAME_FLOOD.path} --in-memory -m 16 --no-pci --lcores 0@0,1@0 -- {words}", check=False)
        assert ran.status == 2
        assert said in ran.stderr
        assert sum("frame-flood:" in line for line in ran.stderr.splitlines()) == 1
