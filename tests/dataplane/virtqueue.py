# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's side of one split virtqueue (virtio 1.2, section 2.7), well-behaved unless asked to be otherwise."""

import os
import struct
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from guest_memory import Memory
from vhost_user import drain

DESCRIPTOR = struct.Struct("=QIHH")
"""Guest physical address, length, flags, next."""
NEXT, WRITE, INDIRECT = 1, 2, 4
NO_NOTIFY, NO_INTERRUPT = 1, 1


@dataclass(frozen=True, slots=True)
class Buffer:
    """One descriptor's part of a chain. ``writable``: by the device."""

    address: int
    length: int
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """What was made available under one head."""

    head: int
    slots: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    table: Buffer | None
    """The indirect table, if there is one."""


class Virtqueue:
    """Ring ``index`` with ``size`` descriptors, in the region ``region`` of the memory.

    A back-end that gives back what it was not given, or gives it back twice, is found out in ``collect``.
    """

    def __init__(self, memory: Memory, index: int, size: int, *, event_idx: bool = False, region: int = 0) -> None:
        self.memory, self.index, self.size, self._event_idx = memory, index, size, event_idx
        self.descriptors = memory.take(DESCRIPTOR.size * size, region)
        self.available = memory.take(6 + 2 * size, region)
        self.used = memory.take(6 + 8 * size, region)
        self.kick_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.call_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # As native 16 bits: struct would write an index byte by byte, and the other side could see half of it.
        self._available = memory.view(self.available, 6 + 2 * size).cast("H")
        self._used = memory.view(self.used, 6 + 8 * size)
        self._used_words = self._used[:4].cast("H")
        self._avail_event = self._used[4 + 8 * size :].cast("H")
        self._fence = threading.Lock()
        self.kicks = 0
        self.reset()

    def reset(self) -> None:
        """Empty, as after a boot."""
        for start, length in zip(self.parts, (DESCRIPTOR.size * self.size, 6 + 2 * self.size, 6 + 8 * self.size), strict=True):
            self.memory.write(start, bytes(length))
        self._free = deque(range(self.size))
        self.in_flight: dict[int, Chain] = {}
        self.next_available = self.next_used = self._told = 0
        # Where the device is to begin.
        self.base = 0
        self.want_calls(False)

    @property
    def parts(self) -> tuple[int, int, int]:
        """Guest physical addresses of the descriptors, the available and the used ring."""
        return self.descriptors, self.available, self.used

    def begin_again(self) -> None:
        """Let the next back-end begin with the first chain that did not come back, where all before it have."""
        self.base = self.next_used & 0xFFFF

    # What a good driver does.

    def add(self, buffers: Sequence[Buffer], *, indirect: bool = False) -> int:
        """Describe a chain and put it into the available ring; it is seen by the device from ``publish`` on. Raises ``IndexError`` if full."""
        slots = tuple(self._free.popleft() for _ in range(1 if indirect else len(buffers)))
        table = self._table(buffers) if indirect else None
        if table:
            self.describe(slots[0], table.address, table.length, INDIRECT)
        else:
            self._link(slots, buffers)
        self.in_flight[slots[0]] = Chain(slots[0], slots, tuple(buffers), table)
        self.offer(slots[0])
        return slots[0]

    def publish(self) -> None:
        """Let the device see what was added, and kick it where it asked for that."""
        self._available[1] = self.next_available & 0xFFFF
        # A lock's instruction is a full barrier: the device must see the index before we look whether it sleeps.
        with self._fence:
            wanted = self._kick_wanted()
        if wanted:
            self.kicks += 1
            os.eventfd_write(self.kick_fd, 1)
        self._told = self.next_available

    def collect(self) -> list[tuple[Chain, int]]:
        """The chains that came back since, in order, each with the number of bytes that the device says it wrote."""
        back = []
        while self._used_words[1] != self.next_used & 0xFFFF:
            head, length = struct.unpack_from("=II", self._used, 4 + 8 * (self.next_used % self.size))
            assert head in self.in_flight, f"ring {self.index}: {head} came back, but only {sorted(self.in_flight)} are with the device"
            self.next_used += 1
            chain = self.in_flight.pop(head)
            self._free.extend(chain.slots)
            if chain.table:
                self.memory.give(chain.table.address, chain.table.length)
            back.append((chain, length))
        if self._event_idx and back:
            self.want_calls(self._calls)
        return back

    def want_calls(self, wanted: bool) -> None:
        """Whether the device shall signal ``call_fd`` when it gives something back."""
        self._calls = wanted
        self._available[0] = 0 if wanted or self._event_idx else NO_INTERRUPT
        # used_event: at the next one, or at one that is as far off as can be.
        self._available[2 + self.size] = (self.next_used if wanted else self.next_used - 1) & 0xFFFF

    def calls(self) -> int:
        """How often the device signalled since last asked."""
        return drain(self.call_fd)

    @property
    def room(self) -> int:
        """Descriptors that are free."""
        return len(self._free)

    # What a hostile one has to go by.

    def describe(self, slot: int, address: int, length: int, flags: int = 0, following: int = 0) -> None:
        """Write descriptor ``slot``, whatever it says."""
        self.memory.write(self.descriptors + DESCRIPTOR.size * slot, DESCRIPTOR.pack(address & (2**64 - 1), length, flags, following))

    def offer(self, head: int) -> None:
        """Put ``head`` into the available ring, whatever it is."""
        self._available[2 + self.next_available % self.size] = head & 0xFFFF
        self.next_available += 1

    def offer_as_is(self, *descriptors: tuple[int, int, int, int]) -> None:
        """Make a chain available that begins at descriptor 0 and is exactly these: address, length, flags, next."""
        for slot, descriptor in enumerate(descriptors):
            self.describe(slot, *descriptor)
        self.offer(0)
        self.publish()

    def jump(self, by: int) -> None:
        """Move the available index ahead without anything behind it."""
        self.next_available += by

    def close(self) -> None:
        os.close(self.kick_fd)
        os.close(self.call_fd)

    def _link(self, slots: Sequence[int], buffers: Sequence[Buffer]) -> None:
        for place, (slot, buffer) in enumerate(zip(slots, buffers, strict=True)):
            following = slots[place + 1] if place + 1 < len(slots) else None
            self.describe(slot, buffer.address, buffer.length, _flags(buffer, following), following or 0)

    def _table(self, buffers: Sequence[Buffer]) -> Buffer:
        """An indirect table of these buffers in the guest's memory."""
        last = len(buffers) - 1
        entries = [
            DESCRIPTOR.pack(one.address, one.length, _flags(one, place + 1 if place < last else None), place + 1 if place < last else 0)
            for place, one in enumerate(buffers)
        ]
        table = Buffer(self.memory.take(DESCRIPTOR.size * len(entries)), DESCRIPTOR.size * len(entries))
        self.memory.write(table.address, b"".join(entries))
        return table

    def _kick_wanted(self) -> bool:
        if self._event_idx:
            # vring_need_event of the standard: whether the index that the device waits for was passed.
            return (self.next_available - self._avail_event[0] - 1) & 0xFFFF < (self.next_available - self._told) & 0xFFFF
        return not self._used_words[0] & NO_NOTIFY


def _flags(buffer: Buffer, following: int | None) -> int:
    return (WRITE if buffer.writable else 0) | (0 if following is None else NEXT)
