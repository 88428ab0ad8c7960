# SPDX-License-Identifier: GPL-2.0-or-later
"""Packed rings: what a good guest may do with them and not with split ones, and what a hostile one could."""

import random

import hostile
import pytest
from frontend import USUAL, Frontend, Layout, eventually
from hostile import NOWHERE, RUNTS, Attack, good, offered
from packed_virtqueue import AVAILABLE, DESCRIPTOR, USED, WORDS
from running import unharmed
from test_hostile import broadcast_much, named, reformed, refused, settle
from traffic import BROADCAST, exchange, frame, frames, mac
from vhost_user import Feature
from virtqueue import INDIRECT, NEXT, WRITE

pytestmark = [pytest.mark.dataplane, pytest.mark.parametrize("ring", ["packed"])]
# librte_vhost refuses such in its own way, and counts none.
ours = pytest.mark.parametrize("datapath", ["own", "zero-copy"], indirect=True)
MOST = 64
"""Descriptors of a chain."""


def table(guest: Frontend, *entries: tuple[int, int, int]) -> int:
    """Where these lie as an indirect table: address, length, flags."""
    address = guest.memory.take(16 * len(entries))
    packed = b"".join(DESCRIPTOR.pack(address, length, 0, flags) for address, length, flags in entries)
    guest.memory.write(address, packed)
    return address


def table_in_a_table(guest):
    inner = table(guest, (good(guest), 72, 0))
    offered(guest.tx, (table(guest, (inner, 16, INDIRECT)), 16, INDIRECT, 0))


def table_entry_nowhere(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, 0), (NOWHERE, 72, 0)), 32, INDIRECT, 0))


def table_of_what_the_device_may_write(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, WRITE)), 16, INDIRECT, 0))


def table_of_too_many(guest):
    offered(guest.tx, (table(guest, *[(good(guest), 1, 0)] * (MOST + 30)), 16 * (MOST + 30), INDIRECT, 0))


def second_is_a_table(guest):
    offered(guest.tx, (good(guest), 72, NEXT, 0), (table(guest, (good(guest), 72, 0)), 16, INDIRECT, 0))


DESCRIPTORS = (
    hostile.address_nowhere, hostile.address_zero, hostile.address_at_the_end, hostile.length_past_the_end, hostile.address_wraps,
    hostile.length_of_4_gib, hostile.second_nowhere, hostile.second_wraps, hostile.header_nowhere, hostile.length_zero,
    hostile.nowhere_of_length_zero, hostile.all_of_length_zero, hostile.half_a_header, hostile.header_alone, hostile.header_and_nothing,
    hostile.device_may_write, hostile.a_megabyte, hostile.table_nowhere, hostile.table_past_the_end, hostile.table_wraps,
    hostile.table_of_length_zero, hostile.table_of_half_an_entry, hostile.table_of_4_gib, table_in_a_table, table_entry_nowhere,
    table_of_what_the_device_may_write, table_of_too_many, second_is_a_table,
)  # fmt: skip
"""``hostile`` has others that make sense for split rings alone: loops, heads, indices."""


def chain_of_too_many(guest):
    offered(guest.tx, *[(good(guest), 1, NEXT, 0)] * MOST, (good(guest), 72, 0, 0))


def chain_without_an_end(guest):
    offered(guest.tx, *[(good(guest), 1, NEXT, 0)] * guest.tx.size)


BREAKING = (chain_of_too_many, chain_without_an_end)
"""After these nobody can know where the next chain begins, and by what ID this one goes back."""


def receive_nowhere(guest):
    offered(guest.rx, (NOWHERE, 2048, WRITE, 0))


def receive_single_bytes(guest):
    for _ in range(200):
        offered(guest.rx, (good(guest), 1, WRITE, 0))


def receive_into_the_ring(guest):
    offered(guest.rx, (guest.rx.descriptors, 2048, WRITE, 0))
    offered(guest.rx, (guest.tx.descriptors, 2048, WRITE, 0))
    guest.rx.publish()


def receive_without_an_end(guest):
    offered(guest.rx, *[(good(guest), 20, NEXT | WRITE, 0)] * guest.rx.size)


RECEIVE = (hostile.receive_into_read_only, receive_nowhere, receive_single_bytes, receive_into_the_ring, receive_without_an_end)


@pytest.fixture
def villain(switch, neighbours, guests):
    guest = guests()
    switch.attach(guest, "v")
    return guest


@pytest.mark.parametrize("size", [100, 256], ids=["100-descriptors", "256-descriptors"])
def test_many_times_around_the_ring(switch, guests, size):
    """It need not be a power of two. Chains of one descriptor and of several lie across its end."""
    a, b = guests(queue_size=size), guests(queue_size=size)
    for name, guest in (("a", a), ("b", b)):
        switch.attach(guest, name)
        guest.post(60)
    for number in range(60):
        exchange(a, b, frames(7, mac(1), mac(2), (60, 1514, 4000)[number % 3]), Layout(pieces=1 + number % 5, indirect=number % 7 == 0))
    b.post(b.rx.room)
    exchange(a, b, frames(size - 5, mac(1), mac(2)))


@pytest.mark.parametrize("leaves", ["dies", "stops"])
def test_a_ring_goes_on_where_it_was(switch, guests, leaves):
    a, b = guests(), guests()
    for name, guest in (("a", a), ("b", b)):
        switch.attach(guest, name)
        guest.post(60)
    for number in range(6):
        exchange(a, b, frames(57, mac(1), mac(2)))
        a.die() if leaves == "dies" else a.stop()
        switch.await_down("a")
        # In the ring before there is anybody to take them.
        if number % 2:
            a.send(waiting := frames(23, mac(1), mac(2)))
        switch.again(a, "a")
        if number % 2:
            assert b.receive(23) == waiting


def test_an_id_may_be_any_number_where_frames_are_copied(switch, neighbours, villain, datapath):
    address = good(villain)
    for name in (0xFFFF, villain.tx.size, 7):
        villain.tx.offer_as_is((address, 72, 0, 0), name=name)
    if datapath == "zero-copy":
        # Who lends by the ID must know it again.
        eventually(lambda: switch.port("v")["broken_rings"] == 1, "the ring to be given up", lambda: switch.port("v"), 1)
    else:
        eventually(lambda: switch.port("v")["rx_packets"] == 3, "3 frames", lambda: switch.port("v"), 1)
    unharmed(switch, neighbours)


@pytest.mark.parametrize("datapath", ["zero-copy"], indirect=True)
def test_the_same_id_twice_breaks_the_ring_where_frames_are_lent(switch, neighbours, villain):
    address = good(villain)
    for _ in range(20):
        villain.tx._write([(address, 72, 0, 0)], 5)
    villain.tx.publish()
    eventually(lambda: switch.port("v")["broken_rings"] == 1, "the ring to be given up", lambda: switch.port("v"), 1)
    unharmed(switch, neighbours)
    reformed(switch, villain, neighbours[0])


@ours
@pytest.mark.parametrize("attack", [*DESCRIPTORS, *RUNTS], ids=named)
def test_a_frame_that_is_none_is_refused_and_counted(switch, neighbours, villain, attack: Attack):
    attack(villain)
    refused(switch, "v")
    unharmed(switch, neighbours)
    reformed(switch, villain, neighbours[0])


@ours
@pytest.mark.parametrize("attack", BREAKING, ids=named)
def test_a_chain_whose_end_is_not_found_breaks_the_ring(switch, neighbours, villain, attack: Attack):
    attack(villain)
    eventually(lambda: switch.port("v")["broken_rings"] == 1, "the ring to be given up", lambda: switch.port("v"), 1)
    unharmed(switch, neighbours)
    reformed(switch, villain, neighbours[0])


@ours
@pytest.mark.parametrize("attack", RECEIVE, ids=named)
def test_receive_buffers_of_nonsense_do_no_harm(switch, neighbours, villain, attack: Attack):
    attack(villain)
    broadcast_much(neighbours)
    unharmed(switch, neighbours)
    reformed(switch, villain, neighbours[0])


@ours
def test_chains_that_lie_over_each_other_lead_nobody_out_of_the_ring(switch, neighbours, guests):
    """Of ten descriptors nine are a chain; the tenth, and then these again, are another, where a frame needs both."""
    villain = switch.attach(guests(queue_size=10), "v")
    villain.post(5, 100)
    neighbours[0].send_all(frames(5, mac(1), BROADCAST))
    assert len(villain.receive(5, repost=False)) == 5
    address = good(villain)
    offered(villain.rx, *[(address, 10, WRITE | NEXT, 0)] * 8, (address, 10, WRITE, 0))
    offered(villain.rx, (address, 10, WRITE | NEXT, 0))
    for _ in range(3):
        neighbours[0].send_all([frame(mac(1), BROADCAST, 150)])
    neighbours[1].receive(8, 0.1)
    eventually(lambda: switch.port("v")["broken_rings"] == 1, "the ring to be given up", lambda: switch.port("v"), 1)
    unharmed(switch, neighbours)


@ours
def test_a_ring_that_is_broken_stays_so(switch, neighbours, villain):
    offered(villain.rx, (NOWHERE, 2048, WRITE, 0))
    neighbours[0].send_all([frame(mac(1), BROADCAST)])
    eventually(lambda: switch.port("v")["broken_rings"] == 1, "the ring to be given up", lambda: switch.port("v"), 1)
    # Mended, and yet nobody looks any more.
    villain.rx.describe(0, good(villain), 2048, WRITE | AVAILABLE)
    before = switch.port("v")["tx_packets"]
    neighbours[0].send_all([frame(mac(1), BROADCAST)] * 3)
    unharmed(switch, neighbours)
    assert switch.port("v")["tx_packets"] == before
    assert villain.rx._ring[WORDS * 0 + 7] & (AVAILABLE | USED) == AVAILABLE
    reformed(switch, villain, neighbours[0])


@ours
@pytest.mark.parametrize("seed", range(8))
def test_garbage_in_both_rings_does_no_harm(switch, neighbours, villain, seed):
    dice = random.Random(seed)
    for queue, writable in ((villain.tx, 0), (villain.rx, WRITE)):
        regions = villain.memory.regions
        places = [good(villain), good(villain), NOWHERE, 0, regions[0].start, regions[0].end - 30, regions[-1].end - 8, *queue.parts]
        lengths = [0, 1, 11, 12, 13, 25, 26, 27, 72, 1500, 4000, 65536, 2**31, 2**32 - 1]
        kinds = [writable] * 6 + [writable | NEXT, INDIRECT, INDIRECT | NEXT, WRITE]
        for slot in reversed(range(queue.size)):
            whose = dice.choice([AVAILABLE, AVAILABLE, AVAILABLE, AVAILABLE, USED, AVAILABLE | USED])
            queue.describe(slot, dice.choice(places), dice.choice(lengths), dice.choice(kinds) | whose, dice.randrange(2**16))
        queue.publish()
    neighbours[0].send_all([frame(mac(1), BROADCAST, (60, 1514, 9000)[number % 3]) for number in range(30)])
    settle(villain)
    unharmed(switch, neighbours)
    reformed(switch, villain, neighbours[0])


@ours
def test_descriptors_that_change_while_they_are_read(switch, neighbours, villain):
    address = good(villain)
    for _ in range(300):
        slot = villain.tx.next.slot
        offered(villain.tx, (address, 72, 0, 0))
        for length, kind in ((2**32 - 1, 0), (72, NEXT), (72, INDIRECT)):
            flags = villain.tx._ring[WORDS * slot + 7] & (AVAILABLE | USED)
            villain.tx.describe(slot, address, length, flags | kind)
    settle(villain)
    unharmed(switch, neighbours)
    reformed(switch, villain, neighbours[0])


@ours
def test_an_indirect_table_that_was_not_negotiated_is_refused(switch, neighbours, guests):
    villain = switch.attach(guests((Feature.VERSION_1, Feature.PROTOCOL_FEATURES)), "v")
    villain.send([frame(mac(6), mac(2))], Layout(indirect=True))
    refused(switch, "v")
    unharmed(switch, neighbours)


@pytest.mark.parametrize("features", [USUAL, (*USUAL, Feature.EVENT_IDX)], ids=["by-flag", "by-event-idx"])
def test_a_guest_is_called_only_when_it_wants_to_be_all_around_the_ring(switch, guests, features):
    a, b = guests(features, queue_size=50), guests(features, queue_size=50)
    for name, guest in (("a", a), ("b", b)):
        switch.attach(guest, name)
    b.post(50)
    for number in range(40):
        wanted = number % 4 != 0
        a.tx.calls(), b.rx.calls()
        a.tx.want_calls(wanted)
        b.rx.want_calls(wanted)
        exchange(a, b, frames(7, mac(1), mac(2)))
        seen = (a.tx.calls() > 0, b.rx.calls() > 0)
        assert seen == (wanted, wanted), f"round {number}"
