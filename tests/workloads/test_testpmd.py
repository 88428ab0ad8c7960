# SPDX-License-Identifier: GPL-2.0-or-later
"""The frames that testpmd plays, byte by byte; and what DPDK's telemetry counts."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.endpoints.base import Counters, Frames
from workloads.endpoints.testpmd import SMALLEST_FILE, pcap
from workloads.endpoints.virtio_user import counters_of


def frames(size: int = 60, flows: int = 1) -> Frames:
    return Frames(size, flows, None, "52:54:00:76:67:01", "52:54:00:76:67:02", "10.77.0.1", "10.77.0.250")


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
    ports = [struct.unpack_from(">H", packet, 34)[0] for packet in found]
    assert sorted(set(ports)) == list(range(1024, 1024 + flows))
    assert len({ports.count(port) for port in set(ports)}) == 1
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
