# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest could do to harm its switch: descriptors and rings that no driver writes.

Each attack is a function of a guest that is up; its name says what it does. ``DESCRIPTORS`` and ``RUNTS`` hold frames that must be
refused, and counted so; ``RINGS`` make nonsense of the rings themselves, ``RECEIVE`` of receive buffers.
"""

import random
import struct
from collections.abc import Callable

from frontend import Frontend
from packed_virtqueue import PackedVirtqueue
from traffic import frame, mac
from virtqueue import DESCRIPTOR, INDIRECT, NEXT, WRITE, Buffer, Virtqueue

Attack = Callable[[Frontend], None]
NOWHERE = 0xDEAD_0000_0000
FRAME = bytes(12) + frame(mac(6), mac(2))


def offered(queue: Virtqueue | PackedVirtqueue, *descriptors: tuple[int, int, int, int]) -> None:
    queue.offer_as_is(*descriptors)


def good(guest: Frontend) -> int:
    """Where a good frame lies, header and all."""
    address = guest.memory.take(4096)
    guest.memory.write(address, FRAME)
    return address


def table(guest: Frontend, *entries: tuple[int, int, int, int]) -> int:
    """Where these lie as an indirect table."""
    address = guest.memory.take(16 * len(entries))
    guest.memory.write(address, b"".join(DESCRIPTOR.pack(*entry) for entry in entries))
    return address


def address_nowhere(guest):
    offered(guest.tx, (NOWHERE, 72, 0, 0))


def address_zero(guest):
    offered(guest.tx, (0, 72, 0, 0))


def address_at_the_end(guest):
    offered(guest.tx, (guest.memory.regions[-1].end, 72, 0, 0))


def length_past_the_end(guest):
    offered(guest.tx, (guest.memory.regions[-1].end - 60, 72, 0, 0))


def address_wraps(guest):
    offered(guest.tx, (2**64 - 16, 72, 0, 0))


def length_of_4_gib(guest):
    offered(guest.tx, (good(guest), 2**32 - 1, 0, 0))


def second_nowhere(guest):
    offered(guest.tx, (good(guest), 72, NEXT, 1), (NOWHERE, 60, 0, 0))


def second_wraps(guest):
    offered(guest.tx, (good(guest), 72, NEXT, 1), (2**64 - 1, 2**32 - 1, 0, 0))


def header_nowhere(guest):
    offered(guest.tx, (NOWHERE, 12, NEXT, 1), (good(guest), 60, 0, 0))


def length_zero(guest):
    offered(guest.tx, (good(guest), 0, 0, 0))


def nowhere_of_length_zero(guest):
    offered(guest.tx, (NOWHERE, 0, 0, 0))


def all_of_length_zero(guest):
    offered(guest.tx, (good(guest), 0, NEXT, 1), (good(guest), 0, NEXT, 2), (good(guest), 0, 0, 0))


def half_a_header(guest):
    offered(guest.tx, (good(guest), 5, 0, 0))


def header_alone(guest):
    offered(guest.tx, (good(guest), 12, 0, 0))


def header_and_nothing(guest):
    offered(guest.tx, (good(guest), 12, NEXT, 1), (good(guest), 0, 0, 0))


def loop_of_two(guest):
    offered(guest.tx, (good(guest), 72, NEXT, 1), (good(guest), 60, NEXT, 0))


def loop_of_one(guest):
    offered(guest.tx, (good(guest), 72, NEXT, 0))


def loop_of_nothing(guest):
    offered(guest.tx, (good(guest), 0, NEXT, 0))


def next_out_of_the_ring(guest):
    offered(guest.tx, (good(guest), 72, NEXT, guest.tx.size))


def next_far_out_of_the_ring(guest):
    offered(guest.tx, (good(guest), 72, NEXT, 0xFFFF))


def device_may_write(guest):
    offered(guest.tx, (good(guest), 72, WRITE, 0))


def a_megabyte(guest):
    # Within the memory, which is what makes it more than an address out of range.
    offered(guest.tx, (guest.memory.regions[-1].start, 1 << 20, 0, 0))


def a_chain_of_megabytes(guest):
    start = guest.memory.regions[-1].start
    offered(guest.tx, *((start, 1 << 20, NEXT if slot < 200 else 0, slot + 1) for slot in range(201)))


def table_nowhere(guest):
    offered(guest.tx, (NOWHERE, 32, INDIRECT, 0))


def table_past_the_end(guest):
    offered(guest.tx, (guest.memory.regions[-1].end - 16, 32, INDIRECT, 0))


def table_wraps(guest):
    offered(guest.tx, (2**64 - 16, 32, INDIRECT, 0))


def table_of_length_zero(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, 0, 0)), 0, INDIRECT, 0))


def table_of_half_an_entry(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, 0, 0)), 8, INDIRECT, 0))


def table_of_4_gib(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, NEXT, 1)), 2**32 - 16, INDIRECT, 0))


def table_in_a_table(guest):
    inner = table(guest, (good(guest), 72, 0, 0))
    offered(guest.tx, (table(guest, (inner, 16, INDIRECT, 0)), 16, INDIRECT, 0))


def table_that_is_its_own(guest):
    address = guest.memory.take(16)
    guest.memory.write(address, DESCRIPTOR.pack(address, 16, INDIRECT, 0))
    offered(guest.tx, (address, 16, INDIRECT, 0))


def table_loops(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, NEXT, 1), (good(guest), 60, NEXT, 0)), 32, INDIRECT, 0))


def table_next_out_of_it(guest):
    offered(guest.tx, (table(guest, (good(guest), 72, NEXT, 2), (good(guest), 60, 0, 0)), 32, INDIRECT, 0))


def table_longer_than_the_ring(guest):
    many = 4 * guest.tx.size
    entries = [
        (good(guest) if not slot else guest.memory.regions[-1].start, 72, NEXT if slot < many - 1 else 0, slot + 1) for slot in range(many)
    ]
    offered(guest.tx, (table(guest, *entries), 16 * many, INDIRECT, 0))


def table_entry_nowhere(guest):
    offered(guest.tx, (table(guest, (NOWHERE, 72, 0, 0)), 16, INDIRECT, 0))


def runt(length: int) -> Attack:
    def attack(guest: Frontend) -> None:
        offered(guest.tx, (good(guest), 12 + length, 0, 0))

    attack.__name__ = f"runt_of_{length}"
    return attack


DESCRIPTORS = (
    address_nowhere, address_zero, address_at_the_end, length_past_the_end, address_wraps, length_of_4_gib, second_nowhere, second_wraps,
    header_nowhere, length_zero, nowhere_of_length_zero, all_of_length_zero, half_a_header, header_alone, header_and_nothing, loop_of_two,
    loop_of_one, loop_of_nothing, next_out_of_the_ring, next_far_out_of_the_ring, device_may_write, a_megabyte, a_chain_of_megabytes,
    table_nowhere, table_past_the_end, table_wraps, table_of_length_zero, table_of_half_an_entry, table_of_4_gib, table_in_a_table,
    table_that_is_its_own, table_loops, table_next_out_of_it, table_longer_than_the_ring, table_entry_nowhere,
)  # fmt: skip
RUNTS = tuple(runt(length) for length in (1, 2, 6, 12, 13))


def head_out_of_the_ring(guest):
    guest.tx.offer(guest.tx.size)
    guest.tx.publish()


def head_far_out_of_the_ring(guest):
    guest.tx.offer(0xFFFF)
    guest.tx.publish()


def the_same_head_twice(guest):
    guest.tx.describe(0, good(guest), 72)
    for _ in range(20):
        guest.tx.offer(0)
    guest.tx.publish()


def index_far_ahead(guest):
    guest.tx.describe(0, good(guest), 72)
    guest.tx.jump(guest.tx.size + 1)
    guest.tx.publish()


def index_half_way_round(guest):
    guest.tx.jump(0x8000)
    guest.tx.publish()


def index_backwards(guest):
    guest.tx.jump(-1)
    guest.tx.publish()


def garbage(guest: Frontend, seed: int) -> None:
    """Random descriptors and tables in every slot of both rings, some of which mean something; all are available."""
    dice = random.Random(seed)
    for queue, writable in ((guest.tx, 0), (guest.rx, WRITE)):
        regions = guest.memory.regions
        places = [good(guest), good(guest), NOWHERE, 0, regions[0].start, regions[0].end - 30, regions[-1].end - 8, 2**64 - 8, *queue.parts]
        lengths = [0, 1, 11, 12, 13, 25, 26, 27, 72, 1500, 4000, 65536, 2**31, 2**32 - 1]
        flags = [writable, writable, writable | NEXT, writable | NEXT, INDIRECT]
        tables = [
            [
                (dice.choice(places), dice.choice(lengths), dice.choice([*flags, dice.randrange(8)]), dice.randrange(size + 1))
                for _ in range(size)
            ]
            for size in range(1, 12)
        ]
        made = [(table(guest, *entries), 16 * len(entries)) for entries in tables]
        for slot in range(queue.size):
            if dice.random() < 0.3:
                address, length = dice.choice(made)
                queue.describe(
                    slot, address, length + dice.choice([0, 0, 0, -16, 16, 1]), INDIRECT | dice.choice([0, 0, NEXT, WRITE]), slot
                )
            else:
                queue.describe(slot, dice.choice(places), dice.choice(lengths), dice.choice(flags), dice.randrange(queue.size + slot % 2))
        for head in dice.sample(range(queue.size), queue.size):
            queue.offer(head)
        queue.publish()


def descriptors_that_change(guest):
    """The length is rewritten while the switch reads it."""
    address = good(guest)
    for _ in range(300):
        guest.tx.describe(0, address, 72)
        guest.tx.offer(0)
        guest.tx.publish()
        guest.tx.describe(0, address, 2**32 - 1)
        guest.tx.describe(0, NOWHERE, 72, NEXT, 0)


def header_of_garbage(guest):
    """Offloads that were never negotiated, with checksums far outside the frame."""
    for kind in range(0, 256, 5):
        guest.send([frame(mac(6), mac(8))], header=struct.pack("<BBHHHHH", 0xFF, kind, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF))


def rings_in_each_other(guest):
    """The frame is the ring itself, which the switch writes to meanwhile."""
    offered(guest.tx, (guest.tx.used, 72, NEXT, 1), (guest.tx.descriptors, 72, 0, 0))


RINGS = (
    head_out_of_the_ring,
    head_far_out_of_the_ring, the_same_head_twice, index_far_ahead, index_half_way_round, index_backwards, descriptors_that_change,
    header_of_garbage, rings_in_each_other,
)  # fmt: skip
BREAKING = (head_out_of_the_ring, head_far_out_of_the_ring, index_far_ahead, index_half_way_round, index_backwards)
"""After these nobody can know what in the ring is meant: it is not touched any more."""


def receive_nowhere(guest):
    offered(guest.rx, (NOWHERE, 2048, WRITE, 0))


def receive_past_the_end(guest):
    offered(guest.rx, (guest.memory.regions[-1].end - 20, 2048, WRITE, 0))


def receive_wraps(guest):
    offered(guest.rx, (2**64 - 16, 2048, WRITE, 0))


def receive_of_length_zero(guest):
    offered(guest.rx, (good(guest), 0, WRITE, 0))


def receive_less_than_a_header(guest):
    for _ in range(20):
        guest.rx.add([Buffer(good(guest), 5, writable=True)])
    guest.rx.publish()


def receive_single_bytes(guest):
    for _ in range(250):
        guest.rx.add([Buffer(good(guest), 1, writable=True)])
    guest.rx.publish()


def receive_into_read_only(guest):
    offered(guest.rx, (good(guest), 2048, 0, 0))


def receive_in_a_loop(guest):
    offered(guest.rx, (good(guest), 20, NEXT | WRITE, 1), (good(guest), 20, NEXT | WRITE, 0))


def receive_in_a_loop_of_nothing(guest):
    offered(guest.rx, (good(guest), 0, NEXT | WRITE, 0))


def receive_next_out_of_the_ring(guest):
    offered(guest.rx, (good(guest), 20, NEXT | WRITE, guest.rx.size + 7))


def receive_table_nowhere(guest):
    offered(guest.rx, (NOWHERE, 64, INDIRECT, 0))


def receive_table_of_length_zero(guest):
    offered(guest.rx, (table(guest, (good(guest), 2048, WRITE, 0)), 0, INDIRECT, 0))


def receive_table_in_a_table(guest):
    inner = table(guest, (good(guest), 2048, WRITE, 0))
    offered(guest.rx, (table(guest, (inner, 16, INDIRECT, 0)), 16, INDIRECT, 0))


def receive_head_out_of_the_ring(guest):
    guest.rx.offer(guest.rx.size + 1)
    guest.rx.publish()


def receive_index_far_ahead(guest):
    guest.rx.describe(0, good(guest), 2048, WRITE)
    guest.rx.jump(0x4000)
    guest.rx.publish()


def receive_into_the_rings(guest):
    """What others send overwrites the rings themselves."""
    queue = guest.rx
    for place in (queue.available, queue.used, queue.descriptors):
        queue.add([Buffer(place, 2048, writable=True)])
    queue.publish()


RECEIVE = (
    receive_nowhere, receive_past_the_end, receive_wraps, receive_of_length_zero, receive_less_than_a_header, receive_single_bytes,
    receive_into_read_only, receive_in_a_loop, receive_in_a_loop_of_nothing, receive_next_out_of_the_ring, receive_table_nowhere,
    receive_table_of_length_zero, receive_table_in_a_table, receive_head_out_of_the_ring, receive_index_far_ahead, receive_into_the_rings,
)  # fmt: skip
