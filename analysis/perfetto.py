# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace in Perfetto's own format, written without a library: tracks, and on them slices, instants and arrows between the two.

The format is protobuf's: each field is its number and kind in one integer, then its content. The numbers are those of Perfetto's
protos/perfetto/trace/trace_packet.proto, track_event/track_descriptor.proto, track_event/track_event.proto and debug_annotation.proto.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

VARINT, FIXED64, BYTES = 0, 1, 2
PACKET = 1
TIMESTAMP, SEQUENCE, TRACK_EVENT, SEQUENCE_FLAGS, TRACK_DESCRIPTOR = 8, 10, 11, 13, 60
UUID, NAME, PARENT, CHILD_ORDERING, RANK = 1, 2, 5, 11, 12
EXPLICIT = 3
"""The order of children: by their ranks."""
ANNOTATION, TYPE, TRACK, CATEGORY, EVENT_NAME, FLOW, FLOW_ENDS = 4, 9, 11, 22, 23, 47, 48
BEGIN, END, INSTANT = 1, 2, 3
INTEGER, STRING, ANNOTATION_NAME = 4, 6, 10
OWN_SEQUENCE, STATE_CLEARED = 1, 1

Detail = Mapping[str, int | str]


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def number(at: int, value: int) -> bytes:
    # A negative number is that of 64 bits which it would be in memory.
    return varint(at << 3 | VARINT) + varint(value & (1 << 64) - 1)


def content(at: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(at << 3 | BYTES) + varint(len(raw)) + raw


def fixed(at: int, value: int) -> bytes:
    return varint(at << 3 | FIXED64) + value.to_bytes(8, "little")


@dataclass(frozen=True)
class Slice:
    """What lasts from ``begin`` to ``end`` (nanoseconds); an instant, where the two are one."""

    begin: int
    end: int
    name: str
    category: str
    details: Detail = field(default_factory=dict)
    starts: tuple[int, ...] = ()
    """Numbers of the arrows that begin here."""
    ends: tuple[int, ...] = ()


@dataclass
class Trace:
    """Tracks in the order in which they are added; ``data`` is the file."""

    packets: list[bytes] = field(default_factory=list)
    _tracks: int = 0
    _arrows: int = 0

    @property
    def data(self) -> bytes:
        return b"".join(content(PACKET, packet) for packet in self.packets)

    def track(self, name: str, parent: int = 0) -> int:
        """A new track below another, or on top; its number."""
        self._tracks += 1
        where = number(UUID, self._tracks) + content(NAME, name) + number(CHILD_ORDERING, EXPLICIT) + number(RANK, self._tracks)
        self._add(content(TRACK_DESCRIPTOR, where + (number(PARENT, parent) if parent else b"")))
        return self._tracks

    def arrow(self) -> int:
        """The number of an arrow that no other one has."""
        self._arrows += 1
        return self._arrows

    def slices(self, track: int, slices: Sequence[Slice]) -> None:
        """All of a track at once: one that begins inside another ends inside it, too."""
        for time, event in _nested(slices):
            self._add(number(TIMESTAMP, time) + content(TRACK_EVENT, number(TRACK, track) + event))

    def _add(self, packet: bytes) -> None:
        flags = b"" if self.packets else number(SEQUENCE_FLAGS, STATE_CLEARED)
        self.packets.append(packet + number(SEQUENCE, OWN_SEQUENCE) + flags)


def _nested(slices: Sequence[Slice]) -> Iterator[tuple[int, bytes]]:
    """The time and the event of each begin, end and instant, in order of time. A slice is cut where the one around it ends."""
    ends: list[int] = []
    for one in sorted(slices, key=lambda one: (one.begin, one.begin - one.end)):
        while ends and ends[-1] <= one.begin:
            yield ends.pop(), number(TYPE, END)
        if one.end == one.begin:
            yield one.begin, _described(one, INSTANT)
        else:
            yield one.begin, _described(one, BEGIN)
            ends.append(min([one.end, *ends[-1:]]))
    for end in reversed(ends):
        yield end, number(TYPE, END)


def _described(one: Slice, kind: int) -> bytes:
    words = number(TYPE, kind) + content(EVENT_NAME, one.name) + content(CATEGORY, one.category)
    details = (content(ANNOTATION, _annotation(name, value)) for name, value in one.details.items())
    arrows = itertools.chain((fixed(FLOW, at) for at in one.starts), (fixed(FLOW_ENDS, at) for at in one.ends))
    return b"".join([words, *details, *arrows])


def _annotation(name: str, value: int | str) -> bytes:
    return content(ANNOTATION_NAME, name) + (content(STRING, value) if isinstance(value, str) else number(INTEGER, value))
