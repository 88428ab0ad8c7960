# SPDX-License-Identifier: GPL-2.0-or-later
"""The frames that testpmd plays, byte by byte; and what DPDK's telemetry counts."""

import json
import struct
from ipaddress import IPv4Address
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.switches.base import Port
from vsprof.terms.errors import RunFailed
from vsprof.terms.schema import FCS_BYTES
from vsprof.workloads.endpoints import testpmd, virtio_paths, virtio_user
from vsprof.workloads.endpoints.base import Counters, Frames
from vsprof.workloads.endpoints.testpmd import SMALLEST_FILE, pcap
from vsprof.workloads.endpoints.virtio_user import LOST_FEATURES, PATHS, Ends, VirtioUser, counters_of


def frames(size: int = 60, flows: int = 1) -> Frames:
    return Frames(size + FCS_BYTES, flows, None, "52:54:00:76:67:01", "52:54:00:76:67:02", "10.77.0.1", "10.77.0.250")


def packets(file: bytes) -> list[bytes]:
    """Read a file of libpcap, by its documented format."""
    magic, major, minor, _, _, _, link = struct.unpack_from("<IHHiIII", file)
    assert (magic, major, minor, link) == (0xA1B2C3D4, 2, 4, 1)
    found, at = [], 24
    while at < len(file):
        _, _, kept, length = struct.unpack_from("<IIII", file, at)
        assert kept == length
        found.append(file[at + 16 : at + 16 + kept])
        at += 16 + kept
    return found


def ones_complement_sum(header: bytes) -> int:
    total = sum(struct.unpack(">10H", header))
    return (total & 0xFFFF) + (total >> 16)


def test_a_frame_is_udp_over_ip_over_ethernet():
    frame = packets(pcap(frames()))[0]
    assert frame[:14].hex() == "525400766702" + "525400766701" + "0800"
    version, _, length, _, _, _, protocol = struct.unpack_from(">BBHHHBB", frame, 14)
    assert (version, length, protocol) == (0x45, 46, 17)
    # A right checksum makes the sum over the whole header all ones (RFC 1071).
    assert ones_complement_sum(frame[14:34]) == 0xFFFF
    assert (frame[26:30], frame[30:34]) == (bytes([10, 77, 0, 1]), bytes([10, 77, 0, 250]))
    assert struct.unpack_from(">HHHH", frame, 34) == (1024, 9, 26, 0)


@given(st.integers(60, 1514), st.integers(1, 300))
def test_every_flow_is_in_the_file_equally_often(size, flows):
    found = packets(pcap(frames(size, flows)))
    assert {len(packet) for packet in found} == {size}
    targets = [struct.unpack_from(">I", packet, 30)[0] for packet in found]
    first = int(IPv4Address("10.77.0.250"))
    assert sorted(set(targets)) == list(range(first, first + flows))
    assert all(ones_complement_sum(packet[14:34]) == 0xFFFF for packet in found)
    assert len({targets.count(target) for target in set(targets)}) == 1
    assert len(found) >= min(SMALLEST_FILE, len(found))
    assert len(found) % flows == 0


ANSWER = {"clock": 12.5, "/ethdev/stats": {"ipackets": 3, "opackets": 5, "ibytes": 180, "obytes": 300, "imissed": 0}}


def test_the_counters_of_a_port():
    assert counters_of(json.dumps(ANSWER)) == Counters(12.5, 3, 180, 5, 300)


@pytest.mark.parametrize(
    "text", ["", "null", "{}", '{"clock": 1}', '{"clock": 1, "/ethdev/stats": null}', "Traceback (most recent call last):"]
)
def test_what_is_no_telemetry_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        counters_of(text)


@pytest.mark.parametrize("path", PATHS)
def test_the_driver_says_which_path_it_takes(path):
    """testpmd's own output natively over OVS-DPDK 3.5, DPDK 24.11, started for each path."""
    log = Path(__file__).with_name(f"testpmd.{path}.txt").read_text()
    taken = virtio_paths.taken(log)
    assert {ways["rx"] for ways in taken.values()} == {PATHS[path].said}
    assert sorted(taken) == [0, 1]
    assert LOST_FEATURES not in log


def ends(log: str, path: str, monkeypatch) -> Ends:
    """Two ends on a testpmd that says ``log``."""
    testpmd = SimpleNamespace(log=lambda: log, stop=lambda: None)
    monkeypatch.setattr(virtio_user, "Testpmd", lambda *arguments, **more: testpmd)
    host = SimpleNamespace(run=lambda command, check=True: None)
    return Ends(host, [Port(name, "virtio-user", f"/run/{name}.sock") for name in ("p1", "p2")], [0], path)


def test_a_path_that_the_driver_does_not_take_fails_the_run_and_names_both(monkeypatch):
    log = Path(__file__).with_name("testpmd.mergeable.txt").read_text()
    assert ends(log, "mergeable", monkeypatch).ends[1].facts() == {
        "path": "mergeable",
        "driver": "dpdk",
        "rx": "mergeable buffer",
        "tx": "standard",
    }
    with pytest.raises(
        RunFailed, match=r"container1: asked for path packed, and its driver takes the path 'mergeable buffer'.*choose another"
    ):
        ends(log, "packed", monkeypatch)
    with pytest.raises(RunFailed, match="names none"):
        ends("", "packed", monkeypatch)


@pytest.mark.parametrize(("listener", "server"), [("endpoint", True), ("switch", False)])
def test_an_end_listens_on_its_socket_unless_the_switch_does(listener, server):
    end = VirtioUser(SimpleNamespace(path="vector"), Port("p1", "virtio-user", "/run/p1.sock", listener), 1)
    assert ("server=1" in end.device().split(",")) is server
    assert {"vectorized=1", "mrg_rxbuf=0", "in_order=0"} <= set(end.device().split(","))


class Slow:
    """A server whose testpmd needs ``looks`` time-outs to get ready; in the last of them it runs only if ``runs``."""

    def __init__(self, looks: int, *, runs: bool = True) -> None:
        self.looks, self.runs, self.pid, self.ran_ns = looks, runs, 7, 0

    def run(self, command, **_):
        if "schedstat" in command:
            self.looks -= 1
            self.ran_ns += 10_000_000 if self.looks or self.runs else 0
        return SimpleNamespace(stdout=f"{self.ran_ns} 0 0\n")

    def start(self, name, command, *, cpus):
        return self

    def patience(self, seconds):
        return SimpleNamespace(over=lambda: True)

    def alive(self):
        return True

    def log(self):
        return "EAL: ready\ntestpmd> " if self.looks <= 0 and self.runs else "EAL: Detected CPU lcores: 4"

    def stop(self):
        pass


def test_a_slow_server_is_waited_for_as_long_as_its_testpmd_runs():
    assert testpmd.Testpmd(Slow(3), "generator", [], [1]).log().endswith("testpmd> ")


@pytest.mark.parametrize("server", [Slow(3, runs=False), Slow(testpmd.MOST_LOOKS + 1)], ids=["sleeps", "in-a-loop"])
def test_one_that_does_not_go_on_is_an_error(server):
    with pytest.raises(RunFailed, match="testpmd did not get to 'testpmd>': EAL: Detected"):
        testpmd.Testpmd(server, "generator", [], [1])
