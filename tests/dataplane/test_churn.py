# SPDX-License-Identifier: GPL-2.0-or-later
"""Ports that come and go, guests that are killed, memory that is unplugged: all while frames flow."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from frontend import Frontend, eventually
from guest_memory import MIB, Memory
from modes import DATAPATHS, RINGS
from running import FOLDER, Switch, held, kept
from traffic import BROADCAST, Load, exchange, frames, introduce, mac, quiet
from vhost_user import HEADER, Refused, Request

pytestmark = [pytest.mark.dataplane, pytest.mark.parametrize("ring", RINGS)]
KILLS = 100
ROUNDS = 9
SEED = 23
HOLD = ("--hold-us", "2000")


@pytest.fixture
def switch(keeper, datapath) -> Iterator[Switch]:
    """Two workers, and frames that wait a little: more that can go wrong."""
    yield from kept(keeper, (*DATAPATHS[datapath], *HOLD), workers=2)


def small(make: Callable[..., Frontend]) -> Frontend:
    return make(memory=Memory((MIB, MIB)))


def attach(switch: Switch, guest: Frontend, name: str, posted: int = 100) -> Frontend:
    switch.attach(guest, name)
    guest.post(posted)
    return guest


def nothing_left(switch: Switch, before: Counter[str]) -> None:
    """It has no more open than before."""
    eventually(
        lambda: held(switch.process.pid) <= before, "files and mappings of ports to be gone", lambda: held(switch.process.pid) - before
    )


def test_ports_come_and_go_under_load(switch, guests):
    a, b = (attach(switch, guests(), name) for name in "ab")
    introduce(b, 2, [a])
    introduce(a, 1, [b])
    before = held(switch.process.pid)
    sent = frames(64, mac(1), mac(2)) + frames(4, mac(1), BROADCAST)
    with Load(a, b, sent) as load:
        for number in range(ROUNDS):
            with Frontend(memory=Memory((MIB, MIB))) as c:
                attach(switch, c, "c", posted=(0, 4, 100)[number % 3])
                c.send(frames(20, mac(3), mac((1, 2, 9)[number % 3])), publish=True)
                load.flows()
                switch.control("remove-port c")
                load.flows()
        load_seen = load.received
    assert load_seen
    assert switch.ports() == ["a", "b"]
    nothing_left(switch, before)


def half_a_message(guest: Frontend) -> None:
    guest.connection.sock.send(HEADER.pack(Request.SET_MEM_TABLE, 1, 300)[: random.randrange(1, 12)])


def after_negotiation(guest: Frontend) -> None:
    guest.negotiate()


def after_sharing(guest: Frontend) -> None:
    guest.negotiate()
    guest.share()


def with_one_ring(guest: Frontend) -> None:
    after_sharing(guest)
    guest.start_ring(guest.tx)


def with_frames_in_flight(guest: Frontend) -> None:
    guest.start()
    guest.post(random.choice([0, 3, 100]))
    guest.send(frames(random.randrange(1, 100), mac(3), random.choice([mac(1), mac(2), BROADCAST])))
    time.sleep(random.choice([0, 0, 0.0002, 0.001, 0.005]))


# Most of them with frames in flight.
MOMENTS = (half_a_message, after_negotiation, after_sharing, with_one_ring, *[with_frames_in_flight] * 12)


def test_a_guest_may_be_killed_at_any_moment(switch, guests):
    """100 times, at random moments (seeded), while others send to it and to each other."""
    random.seed(SEED)
    a, b = (attach(switch, guests(), name) for name in "ab")
    introduce(b, 2, [a])
    introduce(a, 1, [b])
    path = switch.local(f"{FOLDER}/{switch.name}.c")
    switch.control(f"add-port c,path={FOLDER}/{switch.name}.c,server=1")
    switch.control("learn c 52:54:00:00:00:04")
    before = held(switch.process.pid)
    own = set(sent := frames(32, mac(1), mac(2)) + frames(4, mac(1), mac(4)))
    assert len(own) == 36
    # What the victim sends to b is not the load's: let it go to a, which nobody reads.
    with Load(a, None, sent) as load:
        for kill in range(KILLS):
            with Frontend(memory=Memory((MIB, MIB))) as victim:
                try:
                    victim.connect(path, start=False)
                    random.choice(MOMENTS)(victim)
                except Refused as error:
                    raise AssertionError(f"kill {kill}: {error}\n{switch.log()}") from error
                b.received()
            assert switch.alive(), f"kill {kill}: the switch ended with status {switch.status()}\n{switch.log()}"
        assert load.sent
    a.all_back()
    nothing_left(switch, before)
    quiet(a, b)
    exchange(a, b, frames(23, mac(1), mac(2)))
    exchange(b, a, frames(23, mac(2), mac(1)))
    with Frontend() as last:
        switch.again(last, "c")
        last.post(30)
        exchange(a, last, frames(23, mac(1), mac(4)))
    switch.await_down("c")


def test_a_guest_that_listens_may_be_killed_and_come_back(switch, guests):
    """The switch connects again by itself, which librte_vhost tries once a second."""
    a = attach(switch, guests(), "a")
    victim = switch.attach(guests(), "c", server=False)
    for _ in range(2):
        victim.post(50)
        introduce(victim, 3, [a])
        a.send(frames(100, mac(1), mac(3)))
        victim.die()
        switch.await_down("c")
        a.all_back()
        victim.reset()
        victim.accept()
        switch.await_up("c")
    victim.post(50)
    exchange(a, victim, frames(23, mac(1), mac(3)))
    assert switch.port("c")["connects"] == 3


@pytest.mark.parametrize("waiting", [False, True], ids=["flowing", "waiting"])
def test_memory_may_be_unplugged_under_load(switch, guests, waiting):
    """Once the switch has acknowledged it, the memory is really gone: whoever touches it then dies of SIGBUS."""
    b = attach(switch, guests(), "b", posted=0 if waiting else 100)
    c, d = (attach(switch, guests(), name) for name in "cd")
    introduce(c, 3, [d] if waiting else [b, d])
    others = frames(8, mac(3), mac(4)) + frames(1, mac(3), mac(1))
    for number in range(10):
        with Frontend(memory=Memory((MIB, MIB, MIB))) as a:
            attach(switch, a, "a", posted=0)
            # Frames and receive buffers in the region that goes, and in the one that stays.
            for region in (2, 1):
                a.memory.buffers = region
                a.post(20)
            a.memory.buffers = 2
            with Load(c, d, others) as load:
                a.send(frames(60, mac(1), (mac(2), BROADCAST)[number % 2]))
                time.sleep((0, 0.0002, 0.001)[number % 3])
                a.share([0, 1])
                os.ftruncate(a.memory.regions[2].fd, 0)
                load.flows() if number % 2 == 0 else time.sleep(0.01)
                assert switch.alive(), f"unplug {number}: the switch ended with status {switch.status()}\n{switch.log()}"
            a.die()
        switch.control("remove-port a")
        b.received()
    c.all_back()
    quiet(b, c, d)
    exchange(c, d, frames(23, mac(3), mac(4)))


def test_a_guest_goes_on_after_its_memory_changed(switch, guests):
    a, b = guests(memory=Memory((MIB, MIB, MIB))), attach(switch, guests(), "b")
    switch.attach(a, "a")
    for regions in ((0, 1), (0, 2), (0, 1, 2), (0, 2), (0, 1)):
        a.memory.buffers = regions[1]
        a.share(regions)
        switch.await_up("a")
        exchange(a, b, frames(23, mac(1), mac(2)))


def test_a_stopped_ring_is_left_alone(switch, guests):
    """After GET_VRING_BASE is answered, the memory may go: of a guest that unloads its driver and reboots."""
    a, b = (attach(switch, guests(memory=Memory((MIB, MIB))), name) for name in "ab")
    introduce(a, 1, [b])
    for _ in range(10):
        a.send(frames(100, mac(1), mac(2)))
        for queue in a.queues:
            a.stop_ring(queue)
        # All of it is free for other use from here on.
        os.ftruncate(a.memory.regions[1].fd, 0)
        b.send(frames(20, mac(2), mac(1)))
        time.sleep(0.005)
        os.ftruncate(a.memory.regions[1].fd, MIB)
        a.die()
        assert switch.alive(), f"the switch ended with status {switch.status()}\n{switch.log()}"
        a.reset()
        switch.again(a, "a")
        a.post(50)
        b.received()
        b.all_back()
    quiet(a, b)
    exchange(a, b, frames(23, mac(1), mac(2)))
