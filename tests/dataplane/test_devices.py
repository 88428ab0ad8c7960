# SPDX-License-Identifier: GPL-2.0-or-later
"""Ports that are DPDK's devices: the kernel's interfaces, with packet sockets (AF_PACKET) at their other end."""

import ctypes
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from modes import DATAPATHS
from running import Switch, kept
from traffic import BROADCAST, KIND, exchange, frame, frames, introduce, mac, same

pytestmark = pytest.mark.dataplane
CLONE_NEWNET = 0x40000000
SIZES = (60, 64, 128, 1024, 1514)


class Wire:
    """A packet socket on an interface in the testbed's network: what is sent there, the switch's port receives."""

    def __init__(self, host, interface: str) -> None:
        pid = host._keeper.pid
        thread = threading.Thread(target=self._open, args=(pid, interface))
        thread.start()
        thread.join()

    def _open(self, pid: int, interface: str) -> None:
        # Of this thread alone, which then ends; the socket stays where it was made.
        with open(f"/proc/{pid}/ns/net") as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(KIND))
        self.socket.bind((interface, KIND))

    def send(self, frames: list[bytes]) -> None:
        for one in frames:
            self.socket.send(one)

    def receive(self, count: int, seconds: float = 2) -> list[bytes]:
        got: list[bytes] = []
        end = time.monotonic() + seconds
        while len(got) < count and (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data, (_, _, kind, *_) = self.socket.recvfrom(1 << 16)
            except TimeoutError:
                break
            # What it sent itself is seen as well.
            if kind != socket.PACKET_OUTGOING:
                got.append(data)
        return got


@pytest.fixture
def switch(keeper, datapath) -> Iterator[Switch]:
    yield from kept(keeper, DATAPATHS[datapath])


@pytest.fixture(params=["tap", "af_packet"])
def wire(request, host, switch) -> Iterator[Wire]:
    # Else the kernel says hello to its neighbours, which is counted too.
    host.run("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
    if request.param == "tap":
        switch.control("add-port w,dev=net_tap0,iface=vs0")
        host.run("ip link set vs0 up")
        yield Wire(host, "vs0")
    else:
        host.run("ip link add vs1 type veth peer name vs2 && ip link set vs1 up && ip link set vs2 up")
        try:
            switch.control("add-port w,dev=net_af_packet0,iface=vs2")
            yield Wire(host, "vs1")
        finally:
            switch.answer("remove-port w")
            host.run("ip link del vs1")


def test_23_in_23_out_between_a_guest_and_the_kernel(switch, wire, guests):
    guest = switch.attach(guests(), "g")
    guest.post(100)
    time.sleep(0.05)
    for size in SIZES:
        out = frames(23, mac(1), mac(2), size)
        guest.send_all(out)
        same(wire.receive(23), out, f"the interface, at {size} bytes")
        guest.all_back()
        back = frames(23, mac(2), mac(1), size)
        wire.send(back)
        same(guest.receive(23), back, f"the guest, at {size} bytes")
    port = switch.port("w")
    assert port["kind"] == "dpdk"
    assert (port["rx_packets"], port["tx_packets"]) == (23 * len(SIZES),) * 2


def test_a_group_frame_goes_to_guests_and_kernel(switch, wire, guests):
    a, b = switch.attach(guests(), "a"), switch.attach(guests(), "b")
    for guest in (a, b):
        guest.post(100)
    sent = frames(23, mac(1), BROADCAST)
    a.send_all(sent)
    same(wire.receive(23), sent, "the interface")
    same(b.receive(23), sent, "the guest")
    a.all_back()
    introduce(b, 2, [a])
    exchange(a, b, frames(23, mac(1), mac(2)))


def test_a_guest_may_die_while_a_device_has_its_frames(switch, wire, guests):
    b = switch.attach(guests(), "b")
    b.post(100)
    for number in range(5):
        a = switch.attach(guests(), f"a{number}")
        a.send(frames(200, mac(1), BROADCAST, 1514))
        a.die()
        switch.await_down(f"a{number}")
        b.receive(200, 0.05)
    wire.receive(1000, 0.1)
    back = [frame(mac(9), BROADCAST)]
    wire.send(back)
    same([one for one in b.receive(1) if one in back], back)


def test_a_device_can_be_added_when_the_switch_starts(host, keeper, guests):
    keeper.stop()
    switch = Switch(host, "vdev", ("--port", "n,dev=net_null0,size=64,no-rx=1"))
    try:
        guest = switch.attach(guests(), "g")
        guest.send_all(frames(23, mac(1), BROADCAST))
        guest.all_back()
        assert switch.port("n")["tx_packets"] == 23
    finally:
        assert switch.stop() == 0


@pytest.mark.parametrize("rx", ["interrupt", "adaptive"])
def test_a_device_that_can_not_wake_a_sleeper_is_refused(keeper, guests, rx):
    for sleeper in kept(keeper, ("--rx", rx)):
        answer = sleeper.answer("add-port w,dev=net_null0")
        assert "net_null0" in answer
        assert "--rx poll" in answer
        a, b = sleeper.attach(guests(), "a"), sleeper.attach(guests(), "b")
        b.post(50)
        exchange(a, b, frames(23, mac(1), mac(2)))


def test_the_testbeds_network_is_another_one(host, native):
    assert os.readlink(f"/proc/{host._keeper.pid}/ns/net") != os.readlink("/proc/self/ns/net")
