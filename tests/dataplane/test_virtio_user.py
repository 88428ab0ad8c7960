# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's own guests: testpmd with virtio-user ports plays 23 frames from a file, and writes down what arrives at the other end."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from conftest import kept
from frontend import eventually
from modes import DATAPATHS
from running import FOLDER, Switch, fresh
from traffic import frames, mac, same

from workloads.endpoints.testpmd import Testpmd

pytestmark = pytest.mark.lab
PATHS = {
    "mergeable": "",
    "non-mergeable": ",mrg_rxbuf=0",
    "vector": ",mrg_rxbuf=0,in_order=1,vectorized=1",
    "in-order": ",in_order=1",
    "packed": ",packed_vq=1",
}
SIZES = (60, 61, 512, 1024, 1514)
HEAD = struct.Struct("<IHHiIII")
RECORD = struct.Struct("<IIII")


def written(sent: list[bytes]) -> bytes:
    """A file in libpcap's classic format."""
    head = HEAD.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(RECORD.pack(0, 0, len(one), len(one)) + one for one in sent)


def read(data: bytes) -> list[bytes]:
    got, at = [], HEAD.size
    while at < len(data):
        length = RECORD.unpack_from(data, at)[2]
        got.append(data[at + RECORD.size : at + RECORD.size + length])
        at += RECORD.size + length
    return got


@pytest.fixture
def switch(keeper, datapath) -> Iterator[Switch]:
    yield from kept(keeper, DATAPATHS[datapath])


@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
def test_23_in_23_out_between_two_testpmd_ports(switch, host, path):
    name = fresh("t")
    sent = [one for size in SIZES for one in frames(23, mac(1), mac(2), size)]
    host.push(written(sent), f"{FOLDER}/{name}.in")
    for end in "ab":
        switch.control(f"add-port {end},path={FOLDER}/{name}.{end},server=1")
    devices = [
        f"net_pcap0,rx_pcap={FOLDER}/{name}.in",
        f"net_virtio_user0,path={FOLDER}/{name}.a{path}",
        f"net_virtio_user1,path={FOLDER}/{name}.b{path}",
        f"net_pcap1,tx_pcap={FOLDER}/{name}.out",
    ]
    testpmd = Testpmd(host, name, devices, [host.plan().house])
    try:
        for end in "ab":
            switch.await_up(end)
        testpmd.tell("start")
        eventually(
            lambda: switch.port("b")["tx_packets"] == len(sent), f"{len(sent)} frames", lambda: f"{switch.port('a')}\n{switch.port('b')}"
        )
        # Closed, its file is complete.
        eventually(
            lambda: f"TX-packets: {len(sent)}" in testpmd.tell("show port stats 3").replace("TX-packets:  ", "TX-packets: "),
            "all to be written",
        )
        testpmd.tell("stop", "port stop 3", "port close 3")
    finally:
        testpmd.stop()
    same(read(host.socket(f"{FOLDER}/{name}.out").read_bytes()), sent, "the other end")
    for end in "ab":
        switch.await_down(end)
