# SPDX-License-Identifier: GPL-2.0-or-later
"""A learning switch: who gets which frame."""

import time
from collections.abc import Iterator

import pytest
from running import Switch, kept
from traffic import BROADCAST, HEAD, exchange, frame, frames, introduce, mac, quiet, same, silent

pytestmark = pytest.mark.dataplane
GROUPS = {"broadcast": BROADCAST, "ipv4-multicast": b"\x01\0\x5e\0\0\1", "ipv6-multicast": b"\x33\x33\0\0\0\1", "unknown": mac(999)}
AGE_S = 2  # were the test's own process stopped for longer than this, what goes on talking would be forgotten


@pytest.fixture
def trio(switch, guests):
    made = guests(), guests(), guests()
    for name, guest in zip("abc", made, strict=True):
        switch.attach(guest, name)
        guest.post(100)
    return made


@pytest.fixture(scope="module")
def ageing_options() -> tuple[str, ...]:
    return ("--age-s", str(AGE_S))


@pytest.fixture
def ageing(keeper, ageing_options) -> Iterator[Switch]:
    yield from kept(keeper, ageing_options)


def flooded(sender, others, sent) -> None:
    sender.send_all(sent)
    for number, other in enumerate(others):
        same(other.receive(len(sent)), sent, f"receiver {number}")
    sender.all_back()
    silent(sender, who="the sender itself")


def counted(switch, name) -> int:
    return sum(switch.ask(f"/vhost_switch/lcore,{lcore}")[name] for lcore in switch.ask("/vhost_switch/lcores"))


@pytest.mark.parametrize("target", GROUPS.values(), ids=list(GROUPS))
def test_unknown_and_group_addresses_go_to_all_but_the_source(switch, trio, target):
    a, b, c = trio
    before = counted(switch, "flooded")
    flooded(a, [b, c], frames(23, mac(1), target))
    flooded(b, [a, c], frames(23, mac(2), target, 1514))
    assert counted(switch, "flooded") - before == 46


def test_a_known_address_gets_its_frames_alone(switch, trio):
    a, b, c = trio
    introduce(b, 2, [a, c])
    exchange(a, b, frames(23, mac(1), mac(2)))
    exchange(b, a, frames(23, mac(2), mac(1)))
    silent(c)
    assert switch.macs() == {"52:54:00:00:00:01": "a", "52:54:00:00:00:02": "b"}


def test_a_frame_to_its_own_port_is_filtered(switch, trio):
    a, b, c = trio
    introduce(a, 1, [b, c])
    before = counted(switch, "filtered")
    a.send_all(frames(23, mac(3), mac(1)))
    a.all_back()
    for guest in trio:
        silent(guest)
    assert counted(switch, "filtered") - before == 23


def test_an_address_that_moves_is_followed(switch, trio):
    a, b, c = trio
    introduce(b, 2, [a, c])
    exchange(a, b, frames(5, mac(1), mac(2)))
    introduce(c, 2, [a, b])
    exchange(a, c, frames(5, mac(1), mac(2)))
    silent(b)
    introduce(b, 2, [a, c])
    exchange(a, b, frames(5, mac(1), mac(2)))
    silent(c)


def test_a_group_address_is_no_source(switch, trio):
    a, b, c = trio
    a.send_all([frame(BROADCAST, mac(7))])
    b.receive(1, 0.05)
    c.receive(1, 0.05)
    a.all_back()
    flooded(b, [a, c], frames(3, mac(2), BROADCAST))
    assert "ff:ff:ff:ff:ff:ff" not in switch.macs()


def test_addresses_can_be_taught_and_forgotten(switch, trio):
    a, b, c = trio
    switch.control("learn c 52:54:00:00:00:09")
    exchange(a, c, frames(5, mac(1), mac(9)))
    silent(b)
    switch.control("flush-macs")
    assert switch.macs() == {}
    flooded(a, [b, c], frames(5, mac(1), mac(9)))


def test_the_addresses_of_a_port_go_with_it(switch, trio):
    a, b, c = trio
    introduce(b, 2, [a, c])
    switch.control("remove-port b")
    flooded(a, [c], frames(5, mac(1), mac(2)))
    assert "b" not in switch.macs().values()


def test_a_tag_is_carried_and_not_looked_at(switch, trio):
    a, b, c = trio
    introduce(b, 2, [a, c])
    tagged = [one[:12] + b"\x81\0\0\x07" + one[12:] for one in frames(5, mac(1), mac(2))]
    exchange(a, b, tagged)
    silent(c)


def test_more_addresses_than_a_table_holds_do_no_harm(switch, trio):
    a, b, c = trio
    head = HEAD.pack(BROADCAST, mac(0), 0x88B5, 0)
    everybody = [head[:6] + b"\x02" + number.to_bytes(5, "big") + head[12:] + bytes(42) for number in range(4000)]
    for start in range(0, len(everybody), 200):
        a.send_all(everybody[start : start + 200])
        b.received()
        c.received()
    a.all_back()
    quiet(b, c)
    introduce(b, 2, [a, c])
    exchange(a, b, frames(5, mac(1), mac(2)))


def test_an_address_that_is_silent_is_forgotten_after_its_time(ageing, guests):
    a, b, c = guests(), guests(), guests()
    for name, guest in zip("abc", (a, b, c), strict=True):
        ageing.attach(guest, name)
        guest.post(100)
    introduce(b, 2, [a, c])
    exchange(a, b, frames(3, mac(1), mac(2)))
    silent(c)
    # One that goes on talking is kept all the time.
    end = time.monotonic() + 2 * AGE_S
    while time.monotonic() < end:
        exchange(a, b, frames(1, mac(1), mac(2)))
        exchange(b, a, frames(1, mac(2), mac(1)))
        time.sleep(0.05)
    silent(c)
    time.sleep(AGE_S + 1.5)
    flooded(a, [b, c], frames(3, mac(1), mac(2)))
