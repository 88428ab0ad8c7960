# SPDX-License-Identifier: GPL-2.0-or-later
"""The guests' side by itself, without any back-end: its memory, its rings, and the choice of modes."""

import struct

import pytest
from frontend import Layout
from guest_memory import KIB, Memory, OutOfRange
from hypothesis import given
from hypothesis import strategies as st
from modes import MODES, VALUES, pairwise
from traffic import frame, mac, same
from vhost_user import drain
from virtqueue import DESCRIPTOR, INDIRECT, NEXT, WRITE, Buffer, Virtqueue


def ring(size: int = 8, **more: bool) -> Virtqueue:
    return Virtqueue(Memory((64 * KIB, 64 * KIB)), 0, size, **more)


def given_back(queue: Virtqueue, *heads: int) -> None:
    """What a device does to give these back."""
    used = queue.next_used
    for place, head in enumerate(heads):
        queue.memory.write(queue.used + 4 + 8 * ((used + place) % queue.size), struct.pack("=II", head, 0))
    queue.memory.write(queue.used + 2, struct.pack("=H", (used + len(heads)) & 0xFFFF))


def descriptor(queue: Virtqueue, slot: int) -> tuple[int, int, int, int]:
    return DESCRIPTOR.unpack(queue.memory.read(queue.descriptors + DESCRIPTOR.size * slot, DESCRIPTOR.size))


def test_a_chain_is_described_as_the_standard_says():
    queue = ring()
    head = queue.add([Buffer(100, 12), Buffer(200, 60), Buffer(300, 5, writable=True)])
    first = descriptor(queue, head)
    second = descriptor(queue, first[3])
    assert first[:3] == (100, 12, NEXT)
    assert second[:3] == (200, 60, NEXT)
    assert descriptor(queue, second[3])[:3] == (300, 5, WRITE)
    assert queue.room == 5


def test_an_indirect_chain_takes_one_descriptor():
    queue = ring()
    head = queue.add([Buffer(100, 12), Buffer(200, 60)], indirect=True)
    address, length, flags, _ = descriptor(queue, head)
    assert (length, flags, queue.room) == (2 * DESCRIPTOR.size, INDIRECT, 7)
    assert queue.memory.read(address, length) == DESCRIPTOR.pack(100, 12, NEXT, 1) + DESCRIPTOR.pack(200, 60, 0, 0)


def test_nothing_is_seen_before_it_is_published_and_then_there_is_a_kick():
    queue = ring()
    queue.add([Buffer(100, 12)])
    assert queue.memory.read(queue.available + 2, 2) == b"\0\0"
    queue.publish()
    assert queue.memory.read(queue.available + 2, 2) == b"\1\0"
    assert drain(queue.kick_fd) == 1


@given(st.integers(0, 0xFFFF), st.integers(1, 8))
def test_with_event_idx_the_kick_is_when_the_event_is_passed(start, count):
    for ahead in (0, count - 1, count, 100):
        queue = ring(event_idx=True)
        queue.next_available = queue._told = start
        queue.memory.write(queue.used + 4 + 8 * queue.size, struct.pack("=H", (start + ahead) & 0xFFFF))
        for _ in range(count):
            queue.offer(0)
        queue.publish()
        assert drain(queue.kick_fd) == (ahead < count)


def test_what_comes_back_can_be_used_again_in_any_order_and_for_ever():
    queue = ring(4)
    for turn in range(70_000 // 3):
        heads = [queue.add([Buffer(turn, 1)]) for _ in range(3)]
        queue.publish()
        given_back(queue, *reversed(heads))
        assert [chain.head for chain, _ in queue.collect()] == heads[::-1]
    assert queue.room == 4


@pytest.mark.parametrize("heads", [(1,), (0, 0), (9,)], ids=["another", "twice", "beyond"])
def test_a_back_end_is_found_out_that_gives_back_what_it_was_not_given(heads):
    queue = ring()
    queue.add([Buffer(0, 1)])
    given_back(queue, *heads)
    with pytest.raises(AssertionError, match="came back, but only"):
        queue.collect()


def test_memory_that_is_full_says_so():
    memory = Memory((64 * KIB,))
    memory.give(taken := memory.take(40 * KIB), 40 * KIB)
    assert memory.take(64 * KIB) == taken
    with pytest.raises(OutOfRange, match="region 0 of 65536 bytes is full"):
        memory.take(1)


def test_what_is_in_no_region_is_not_read():
    memory = Memory((64 * KIB, 64 * KIB))
    with pytest.raises(OutOfRange):
        memory.read(memory.regions[0].end - 1, 2)


def test_what_lies_in_two_regions_is_one():
    memory = Memory((64 * KIB, 64 * KIB), touching=True)
    memory.write(memory.regions[0].end - 3, b"abcdef")
    assert memory.read(memory.regions[1].start - 3, 6) == b"abcdef"


@given(st.integers(0, 300), st.integers(1, 80), st.booleans())
def test_however_a_frame_is_cut_it_is_whole(size, pieces, apart):
    parts = Layout(pieces, apart).cut(b"h" * 12, data := bytes(at & 255 for at in range(size)))
    assert b"".join(parts) == b"h" * 12 + data
    assert len(parts) <= pieces + apart


@pytest.mark.parametrize("size", [1, 13, 14, 17, 18, 60, 9000])
def test_no_two_frames_are_the_same_but_for_runts(size):
    one, other = frame(mac(1), mac(2), size), frame(mac(1), mac(2), size)
    assert len(one) == len(other) == size
    assert (one == other) == (size < 18)


def test_a_difference_is_told_in_few_words():
    sent = [frame(mac(1), mac(2)) for _ in range(3)]
    same(sent, sent)
    with pytest.raises(AssertionError, match="b got 2 frames of 3"):
        same(sent[:2], sent, "b")
    with pytest.raises(AssertionError, match="b: frame 1 of 3 is 60 bytes, sent 60; byte 59 is the first"):
        same([sent[0], sent[1][:-1] + bytes([sent[1][-1] ^ 1]), sent[2]], sent, "b")


def test_every_two_values_of_the_modes_are_together_once():
    seen = {frozenset([(one, getattr(mode, one)), (other, getattr(mode, other))]) for mode in MODES for one in VALUES for other in VALUES}
    pairs = [(one, other) for one in VALUES for other in VALUES if one != other]
    assert all(frozenset([(one, x), (other, y)]) in seen for one, other in pairs for x in VALUES[one] for y in VALUES[other])
    assert len(pairwise({"a": "xy", "b": "xy"})) == 4
