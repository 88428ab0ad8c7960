# SPDX-License-Identifier: GPL-2.0-or-later
"""The one schema of every number: a long, tidy table with one row per number; and its like for single functions, for call stacks, and for
what happened when.

Results outlive code, so columns are only ever added, never renamed. Values are stored as measured, in SI
units (seconds, bytes, hertz, events) and unrounded. A number that could not be counted is a row whose
``value`` is null and whose ``note`` says why; zero means "counted, and it was zero".
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vsprof.terms import files

VERSION = 1
"""Version of the table's layout, kept in the file's metadata and in the manifest."""
METADATA = {"vsprof_schema": str(VERSION)}

ROLES = ("switch", "vhost", "guest", "softirq", "host-other")
"""What a CPU or a thread did. ``vhost`` is whatever moves frames between a guest's virtqueues and the host:
a vhost worker, or QEMU's main loop when access is ``virtio-net``."""
SOURCES = ("hardware", "model", "software")
MODES = ("user", "kernel", "guest", "all")
CARD = "card"
"""The access of an end that is no part of the host: at the other end of a wire from one of its network cards."""
ACCESSES = ("virtio-net", "vhost-net", "vhost-user", "virtio-user", "veth", "tap", CARD)
"""In the order of every figure and table: from the kernel's way to the poll-mode way."""

_TEXT, _WHOLE, _LONG, _REAL = pa.string(), pa.int32(), pa.int64(), pa.float64()
_WORDS = ("experiment", "run_id", "case_id", "repetition", "window", "testbed", "switch", "access", "topology", "traffic")
KEYS = pa.schema({**dict.fromkeys(_WORDS, _TEXT), "repetition": _WHOLE, "frame_bytes": _WHOLE, "flows": _WHOLE})
"""Where a number belongs. ``frame_bytes`` is the Ethernet frame with FCS, as RFC 2544 counts it."""
_WHO = {"collector": _TEXT, "source": _TEXT, "role": _TEXT, "cpu": _WHOLE, "mode": _TEXT}
_WHAT = {"name": _TEXT, "value": _REAL, "unit": _TEXT}
NUMBER = pa.schema({**_WHO, **_WHAT, "enabled_s": _REAL, "running_s": _REAL, "note": _TEXT})
"""The number itself. ``enabled_s`` and ``running_s`` are how long its counter was wanted and really counted."""
FUNCTION = pa.schema({**_WHO, "object": _TEXT, "function": _TEXT, **_WHAT})
"""The same of one function: a flat profile, in a table of its own. What has no row was not seen: zero, or too little to be kept."""
STACK = pa.schema({**_WHO, "stack": _TEXT, **_WHAT})
"""The same of one call stack. ``stack`` is folded: the thread's name, then each frame from the outermost in, joined by ``;``."""
SPAN = pa.schema({**_WHO, "kind": _TEXT, "time_ns": _LONG, "duration_ns": _LONG, "thread": _WHOLE, "name": _TEXT, "value": _REAL})
"""What happened on a CPU from when on (nanoseconds since the window's begin) and how long; a mark has no duration. ``value``: see SPANS."""
TABLES = {"measurements": NUMBER, "functions": FUNCTION, "stacks": STACK, "timeline": SPAN}
"""A result's tables, by the names of their files without `.parquet`."""
SPANS = {
    "recorded": "the part of the window that is known of this CPU; name: why it ended early",
    "task": "a thread has the CPU (mode guest: the guest's thread has the guest's CPU)",
    "guest": "the CPU is in its guest; name: why it left",
    "sleep": "the CPU is halted, and wakes",
    "irq": "an interrupt is served",
    "softirq": "a softirq is served; value: IP packets that the kernel received in it",
    "upcall": "a packet is handed to the switch's user-space process",
    "work": "a thread that moves packets does what its name says",
    "poll": "a poll that found frames, up to the next one; value: frames",
    "empty_polls": "polls in a row that found nothing; value: polls",
    "wake": "a thread is woken",
    "ipi": "an interrupt is sent to another CPU; value: the CPU",
}
"""The kinds of what happens."""
LONGEST_NS = 2**62
"""No time is as long."""

FCS_BYTES = 4
"""Interfaces count, and pktgen sizes, a frame without its frame check sequence; ``frame_bytes`` has it (RFC 2544)."""


def without_fcs(frame_bytes: int) -> int:
    """A frame's bytes as interfaces and generators count them: nothing else converts."""
    return frame_bytes - FCS_BYTES


RESERVED = frozenset(name for layout in (KEYS, NUMBER, FUNCTION, STACK, SPAN) for name in layout.names)
_OWN_WINDOW = re.compile(r"(?P<collector>\w+)-[0-9]+", re.ASCII)


def _check_words(counted: "Counted") -> None:
    if counted.role is not None and counted.role not in ROLES:
        raise ValueError(f"{counted.name}: role {counted.role!r} is none of {', '.join(ROLES)}")
    if counted.mode not in MODES:
        raise ValueError(f"{counted.name}: mode {counted.mode!r} is none of {', '.join(MODES)}")


@dataclass(frozen=True, slots=True)
class Number:
    """One measured number, before the runner adds where it belongs.

    ``value`` is None when it could not be counted; then ``note`` must say why.
    """

    name: str
    value: float | None
    unit: str
    role: str | None = None
    cpu: int | None = None
    mode: str = "all"
    enabled_s: float | None = None
    running_s: float | None = None
    note: str = ""
    window: str | None = None
    """Only for a number that belongs to no window (say, a whole flood's losses): the word to put there instead."""
    source: str | None = None
    """Only for a number that came about in another way than its collector's others (the kernel's own events among a PMU's)."""

    def __post_init__(self) -> None:
        if self.value is None and not self.note:
            raise ValueError(f"{self.name}: an empty value needs a note that says why")
        _check_words(self)


@dataclass(frozen=True, slots=True)
class FunctionCount:
    """What was counted in one function of a program, library or kernel, before the runner adds where it belongs."""

    name: str
    value: float
    unit: str
    object: str
    """The file or kernel that has the function."""
    function: str
    role: str | None = None
    cpu: int | None = None
    mode: str = "all"

    def __post_init__(self) -> None:
        if not (isinstance(self.object, str) and isinstance(self.function, str)):
            raise ValueError(f"{self.name}: object {self.object!r} and function {self.function!r} must be words")
        _check_words(self)


@dataclass(frozen=True, slots=True)
class StackCount:
    """What was counted in one call stack, before the runner adds where it belongs."""

    name: str
    value: float
    unit: str
    stack: str
    """Folded; a frame is ``function (object)``, and the object of a kernel's frame stands in brackets: ``ip_rcv ([kernel])``."""
    role: str | None = None
    cpu: int | None = None
    mode: str = "all"

    __post_init__ = _check_words


@dataclass(frozen=True, slots=True)
class Span:
    """What happened on a CPU, and when, before the runner adds where it belongs. See SPAN and SPANS."""

    kind: str
    time_ns: int
    duration_ns: int
    cpu: int
    role: str | None = None
    mode: str = "all"
    name: str = ""
    thread: int | None = None
    value: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in SPANS:
            raise ValueError(f"{self.kind!r} is none of {', '.join(SPANS)}")
        times = (self.time_ns, self.duration_ns)
        if not all(isinstance(one, int) and abs(one) < LONGEST_NS for one in times) or self.duration_ns < 0:
            raise ValueError(f"{self.kind}: begins at {self.time_ns!r} and lasts {self.duration_ns!r}: need whole nanoseconds")
        if not isinstance(self.name, str) or not (self.thread is None or isinstance(self.thread, int)):
            raise ValueError(f"{self.kind}: {self.name!r} is no name, or {self.thread!r} no thread's number")
        _check_words(self)


Counted = Number | FunctionCount | StackCount | Span


def own_window(collector: str, number: int) -> str:
    """The name of a collector's own window, from 1 on: in the column ``window``, and of the folder that holds it."""
    return f"{collector}-{number}"


def window_owner(window: str) -> str | None:
    """The collector whose own window this is, by the window's name; None for any other (``w1``, ``flood``)."""
    match = _OWN_WINDOW.fullmatch(window)
    return match["collector"] if match else None


def row(where: Mapping[str, object], collector: str, source: str, counted: Counted) -> dict[str, object]:
    """Join what was counted with its coordinates ``where`` (the columns of KEYS, and any varied values)."""
    fields = {one.name: getattr(counted, one.name) for one in dataclasses.fields(counted)}
    source = fields.pop("source", None) or source
    if source not in SOURCES:
        raise ValueError(f"source {source!r} is none of {', '.join(SOURCES)}")
    window = fields.pop("window", None) or where["window"]
    return {**where, "window": window, "collector": collector, "source": source, **fields}


def table(rows: Iterable[Mapping[str, object]], layout: pa.Schema = NUMBER) -> pa.Table:
    """Build the table of KEYS, then the varied values in alphabetical order, then ``layout`` (NUMBER, FUNCTION, STACK or SPAN).

    A varied value is stored as a string column of its own, so that tables of different experiments can be joined.
    """
    rows = list(rows)
    varied = sorted({name for one in rows for name in one} - RESERVED)
    columns = pa.schema([*KEYS, *((name, pa.string()) for name in varied), *layout])
    texts = [{**one, **{v: None if one.get(v) is None else str(one[v]) for v in varied}} for one in rows]
    return pa.Table.from_pylist(texts, schema=columns).replace_schema_metadata(METADATA)


def write(path: Path, rows: Iterable[Mapping[str, object]], layout: pa.Schema = NUMBER) -> int:
    """Write ``rows`` to ``path`` so that a reader (or a crash) sees either the old file or the whole new one; return how many they are."""
    content = table(rows, layout)
    _replace(path, content)
    return content.num_rows


def join(path: Path, parts: Iterable[Path], layout: pa.Schema = NUMBER) -> None:
    """Write the tables ``parts``, one after the other, to ``path`` in the same way.

    A column that a part lacks is null there. Raises ``OSError`` if a part is not there, ``ValueError`` if it is no such table.
    """
    # The empty table first: it says which columns there are in any case.
    whole = pa.concat_tables([table([], layout), *map(read, parts)], promote_options="default")
    varied = sorted(set(whole.column_names) - RESERVED)
    _replace(path, whole.select([*KEYS.names, *varied, *layout.names]).replace_schema_metadata(METADATA))


def _replace(path: Path, content: pa.Table) -> None:
    files.replace(path, lambda partial: pq.write_table(content, partial, compression="zstd", compression_level=9))


def read(path: Path) -> pa.Table:
    """Read a table of numbers, of functions, of stacks or of spans."""
    return pq.read_table(path)
