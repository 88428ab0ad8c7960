# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's side of one packed virtqueue (virtio 1.2, section 2.8), well-behaved unless asked to be otherwise."""

import os
import struct
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from guest_memory import Memory
from vhost_user import drain
from virtqueue import INDIRECT, NEXT, WRITE, Buffer, Chain

DESCRIPTOR = struct.Struct("=QIHH")
"""Guest physical address, length, buffer ID, flags."""
AVAILABLE, USED = 1 << 7, 1 << 15
ENABLE, DISABLE, AT = 0, 1, 2
"""When to tell the other side: always, never, or where its event offset says."""
WRAP = 1 << 15
WORDS, FLAGS = 8, 7
"""Of 16 bits, of a descriptor; and which of them the flags are."""


@dataclass(slots=True)
class Place:
    """Where a driver is in a ring of ``size`` descriptors: it comes by each with another wrap counter than the time before."""

    size: int
    slot: int = 0
    wrap: int = 1

    def step(self, slots: int) -> None:
        self.slot += slots
        if self.slot >= self.size:
            self.slot, self.wrap = self.slot - self.size, 1 - self.wrap

    def on(self, slots: int) -> "Place":
        other = Place(self.size, self.slot, self.wrap)
        other.step(slots)
        return other

    def number(self) -> int:
        """As the protocol and event offsets have it."""
        return self.slot | self.wrap * WRAP

    def flags(self) -> int:
        """Of a descriptor that is made available there."""
        return AVAILABLE if self.wrap else USED

    def distance(self, other: int) -> int:
        """How many descriptors further on ``other`` is, a place's number."""
        line = (other & (WRAP - 1)) + (0 if other & WRAP else self.size)
        return (line - self.slot - (0 if self.wrap else self.size)) % (2 * self.size)


class PackedVirtqueue:
    """Ring ``index`` with ``size`` descriptors, in the region ``region`` of the memory, with the methods of ``Virtqueue``.

    A back-end that gives back what it was not given, or gives it back twice, is found out in ``collect``.
    """

    def __init__(self, memory: Memory, index: int, size: int, *, event_idx: bool = False, region: int = 0) -> None:
        self.memory, self.index, self.size, self._event_idx = memory, index, size, event_idx
        self.descriptors = memory.take(DESCRIPTOR.size * size, region)
        self.driver = memory.take(4, region)
        self.device = memory.take(4, region)
        self.kick_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.call_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # As native 16 bits: struct would write a word byte by byte, and the other side could see half of it.
        self._ring = memory.view(self.descriptors, DESCRIPTOR.size * size).cast("H")
        self._driver = memory.view(self.driver, 4).cast("H")
        self._device = memory.view(self.device, 4).cast("H")
        self._fence = threading.Lock()
        self.kicks = 0
        self.reset()

    def reset(self) -> None:
        """Empty, as after a boot."""
        self.memory.write(self.descriptors, bytes(DESCRIPTOR.size * self.size))
        self._device[0] = self._device[1] = 0
        self._ids = deque(range(self.size))
        self.in_flight: dict[int, Chain] = {}
        self.room = self.size
        """Descriptors that are free."""
        self.next, self.used = Place(self.size), Place(self.size)
        """Where the next chain is made available, and where the next one comes back."""
        self._told = self.next.on(0)
        self._hidden: list[tuple[int, int]] = []
        self.base = self.next.number()
        self.want_calls(False)

    @property
    def parts(self) -> tuple[int, int, int]:
        """Guest physical addresses of the descriptors, and of the driver's and the device's event suppression."""
        return self.descriptors, self.driver, self.device

    def begin_again(self) -> None:
        """Let the next back-end begin with the first chain that did not come back, where all before it have."""
        self.base = self.used.number()

    # What a good driver does.

    def add(self, buffers: Sequence[Buffer], *, indirect: bool = False) -> int:
        """Describe a chain; it is seen by the device from ``publish`` on. Raises ``IndexError`` if full."""
        count = 1 if indirect else len(buffers)
        if count > self.room:
            raise IndexError("the ring is full")
        table = self._table(buffers) if indirect else None
        parts = [(table.address, table.length, INDIRECT)] if table else [(one.address, one.length, WRITE * one.writable) for one in buffers]
        name = self._ids.popleft()
        slots = self._write([(*part, NEXT * (place < count - 1)) for place, part in enumerate(parts)], name)
        self.in_flight[name] = Chain(name, slots, tuple(buffers), table)
        self.room -= count
        return name

    def publish(self) -> None:
        """Let the device see what was added, and kick it where it asked for that."""
        # The first one last: the device takes them in their order.
        for slot, flags in reversed(self._hidden):
            self._ring[WORDS * slot + FLAGS] = flags
        self._hidden.clear()
        # A lock's instruction is a full barrier: the device must see the flags before we look whether it sleeps.
        with self._fence:
            wanted = self._kick_wanted()
        if wanted:
            self.kicks += 1
            os.eventfd_write(self.kick_fd, 1)
        self._told = self.next.on(0)

    def collect(self) -> list[tuple[Chain, int]]:
        """The chains that came back since, in order, each with the number of bytes that the device says it wrote."""
        back = []
        while self._came_back():
            _, length, name, flags = DESCRIPTOR.unpack_from(self._ring.cast("B"), DESCRIPTOR.size * self.used.slot)
            assert name in self.in_flight, f"ring {self.index}: {name} came back, but only {sorted(self.in_flight)} are with the device"
            chain = self.in_flight.pop(name)
            assert bool(flags & WRITE) == chain.buffers[0].writable, f"ring {self.index}: {name} came back with flags {flags:#x}"
            self.used.step(len(chain.slots))
            self.room += len(chain.slots)
            self._ids.append(name)
            if chain.table:
                self.memory.give(chain.table.address, chain.table.length)
            back.append((chain, length))
        if self._event_idx and back:
            self.want_calls(self._calls)
        return back

    def want_calls(self, wanted: bool) -> None:
        """Whether the device shall signal ``call_fd`` when it gives something back."""
        self._calls = wanted
        self._driver[0] = self.used.number()
        self._driver[1] = DISABLE if not wanted else AT if self._event_idx else ENABLE

    def calls(self) -> int:
        """How often the device signalled since last asked."""
        return drain(self.call_fd)

    # What a hostile one has to go by.

    def describe(self, slot: int, address: int, length: int, flags: int = 0, name: int = 0) -> None:
        """Write descriptor ``slot``, whatever it says."""
        self.memory.write(self.descriptors + DESCRIPTOR.size * slot, DESCRIPTOR.pack(address & (2**64 - 1), length, name, flags))

    def offer_as_is(self, *descriptors: tuple[int, int, int, int], name: int = 0) -> None:
        """Make these available as a chain: address, length, flags; a packed ring has no use for the next one's number."""
        self._write([(address & (2**64 - 1), length, 0, flags) for address, length, flags, _ in descriptors], name)
        self.publish()

    def close(self) -> None:
        os.close(self.kick_fd)
        os.close(self.call_fd)

    def _write(self, descriptors: Sequence[tuple[int, int, int, int]], name: int) -> tuple[int, ...]:
        """Write descriptors (address, length, and two parts of the flags) where the driver is; of the first one not yet the flags."""
        slots = []
        for number, (address, length, *flags) in enumerate(descriptors):
            slot, said = self.next.slot, flags[0] | flags[1] | self.next.flags()
            old = self._ring[WORDS * slot + FLAGS]
            self.describe(slot, address, length, said if number else old, name)
            if not number:
                self._hidden.append((slot, said))
            self.next.step(1)
            slots.append(slot)
        return tuple(slots)

    def _came_back(self) -> bool:
        flags = self._ring[WORDS * self.used.slot + FLAGS]
        return flags & (AVAILABLE | USED) == (AVAILABLE | USED if self.used.wrap else 0)

    def _table(self, buffers: Sequence[Buffer]) -> Buffer:
        """An indirect table of these buffers in the guest's memory, which has no chain."""
        entries = b"".join(DESCRIPTOR.pack(one.address, one.length, 0, WRITE * one.writable) for one in buffers)
        table = Buffer(self.memory.take(len(entries)), len(entries))
        self.memory.write(table.address, entries)
        return table

    def _kick_wanted(self) -> bool:
        asked, flags = self._device
        if flags == AT and self._event_idx:
            return self._told.distance(asked) < self._told.distance(self.next.number())
        return flags != DISABLE
