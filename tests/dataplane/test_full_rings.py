# SPDX-License-Identifier: GPL-2.0-or-later
"""Receivers that are slow: frames are dropped and counted, or wait; a sender's buffer is its own again only after the last receiver."""

import time
from collections.abc import Iterator

import pytest
from frontend import SECONDS, eventually
from modes import DATAPATHS, RINGS
from running import Switch, kept
from traffic import BROADCAST, exchange, frames, mac, same, silent

pytestmark = [pytest.mark.dataplane, pytest.mark.parametrize("ring", RINGS)]
LONG, SHORT = "1000000", "150000"
"""Of --hold-us: longer than a test waits for anything, and short."""


@pytest.fixture
def patient(keeper, datapath) -> Iterator[Switch]:
    yield from kept(keeper, (*DATAPATHS[datapath], "--hold-us", LONG))


@pytest.fixture
def hasty(keeper, datapath) -> Iterator[Switch]:
    yield from kept(keeper, (*DATAPATHS[datapath], "--hold-us", SHORT))


def attach(switch, guests, names="abc", posted=()):
    made = [guests() for _ in names]
    for name, guest in zip(names, made, strict=True):
        switch.attach(guest, name)
        if name in posted:
            guest.post(100)
    return made


def test_what_finds_no_room_is_dropped_and_counted(switch, guests):
    a, b, c = attach(switch, guests, posted="c")
    b.post(10)
    sent = frames(23, mac(1), mac(2))
    switch.control("learn b 52:54:00:00:00:02")
    a.send_all(sent)
    a.all_back()
    same(b.receive(23, 0.2, repost=False), sent[:10])
    after = switch.port("b")
    assert (after["tx_packets"], after["tx_dropped_full"]) == (10, 13)
    exchange(a, c, frames(23, mac(1), mac(3)))
    b.post(50)
    exchange(a, b, frames(23, mac(1), mac(2)))


def test_a_full_receiver_takes_nothing_from_the_others(switch, guests):
    a, _, c = attach(switch, guests, posted="c")
    exchange(a, c, frames(23, mac(1), BROADCAST))
    assert switch.port("b")["tx_dropped_full"] == 23


def test_a_port_that_is_down_gets_nothing(switch, guests):
    a, b, c = attach(switch, guests, posted="bc")
    switch.control("learn b 52:54:00:00:00:02")
    b.stop()
    switch.await_down("b")
    # As of a bridge whose link is down: its addresses are unknown.
    exchange(a, c, frames(23, mac(1), mac(2)))
    assert b.received() == []
    assert switch.port("b")["tx_packets"] == 0
    switch.again(b, "b")
    exchange(a, b, frames(23, mac(1), mac(2)))


def test_a_frame_may_wait_for_room(patient, guests, datapath):
    a, b = attach(patient, guests, "ab")
    sent = frames(23, mac(1), mac(2))
    a.send_all(sent)
    time.sleep(0.2)
    assert patient.port("b")["tx_dropped_full"] == 0
    if datapath == "zero-copy":
        assert a.outstanding() == 23, "a buffer came back whose frame nobody has"
        assert patient.port("a")["in_flight"] == 23
    b.post(50)
    same(b.receive(23), sent)
    a.all_back()
    assert patient.port("a")["in_flight"] == 0


def test_frames_that_wait_stay_in_order(patient, guests):
    """Room comes in small pieces while more frames come: none may overtake one that waits."""
    a, b = attach(patient, guests, "ab")
    b.post(4)
    sent, got = frames(600, mac(1), mac(2)), []
    begun, end = 0, time.monotonic() + SECONDS
    while len(got) < len(sent) and time.monotonic() < end:
        if begun - len(got) < 50:
            begun += a.send(sent[begun : begun + 7])
        got += b.received()
    same(got, sent)
    a.all_back()


def test_frames_that_wait_keep_no_others(patient, guests):
    a, b, c, d = attach(patient, guests, "abcd", posted="acd")
    for name, number in zip("abcd", range(1, 5), strict=True):
        patient.control(f"learn {name} 52:54:00:00:00:0{number}")
    waiting = frames(23, mac(1), mac(2))
    a.send_all(waiting)
    for _ in range(3):
        exchange(c, d, frames(23, mac(3), mac(4)), seconds=1)
    b.post(50)
    same(b.receive(23), waiting)
    a.all_back()


def test_it_waits_no_longer_than_told(hasty, guests):
    a, b = attach(hasty, guests, "ab")
    start = time.monotonic()
    a.send_all(frames(23, mac(1), mac(2)))
    a.all_back()
    eventually(lambda: hasty.port("b")["tx_dropped_full"] == 23, "23 drops", lambda: hasty.port("b"))
    assert 0.1 < time.monotonic() - start < 1
    b.post(50)
    silent(b)
    exchange(a, b, frames(23, mac(1), mac(2)))


@pytest.mark.parametrize("leaves", ["posts", "dies", "stops", "is-removed"])
def test_a_buffer_comes_back_only_after_the_last_receiver(patient, guests, datapath, leaves):
    a, b, c = attach(patient, guests, posted="b")
    sent = frames(23, mac(1), BROADCAST)
    a.send_all(sent)
    same(b.receive(23), sent)
    if datapath == "zero-copy":
        time.sleep(0.05)
        assert a.outstanding() == 23
    if leaves == "posts":
        c.post(100)
        same(c.receive(23), sent)
    elif leaves == "dies":
        c.die()
    elif leaves == "stops":
        c.stop()
    else:
        patient.control("remove-port c")
    a.all_back(1)
    exchange(a, b, frames(23, mac(1), mac(2)))


@pytest.mark.parametrize("leaves", ["dies", "stops", "is-removed"])
def test_a_sender_may_leave_while_its_frames_wait(patient, guests, leaves):
    a, b, c = attach(patient, guests, posted="c")
    patient.control("learn c 52:54:00:00:00:03")
    a.send_all(frames(23, mac(1), mac(2)))
    time.sleep(0.02)
    if leaves == "dies":
        a.die()
        patient.await_down("a")
    elif leaves == "stops":
        a.stop()
        assert a.outstanding() == 0, "a stopped ring still has its descriptors with the switch"
    else:
        patient.control("remove-port a")
    b.post(100)
    for one in b.receive(24, 0.1):
        assert one[6:12] == mac(1), "a frame that nobody sent"
    exchange(c, b, frames(23, mac(3), mac(2)))
    c.receive(100, 0.05)
    if leaves != "is-removed":
        a.reset()
        patient.again(a, "a")
        exchange(a, c, frames(23, mac(1), mac(3)))
