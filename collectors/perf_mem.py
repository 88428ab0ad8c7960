# SPDX-License-Identifier: GPL-2.0-or-later
"""From where loads got their data, and which cache lines CPUs take from each other, by function and call stack: single loads and stores
that the PMU samples with their addresses (PEBS, IBS, SPE), recorded by ``perf c2c record``.

Not run here: no machine of the project has such a PMU. The text is perf script's, whose form was seen; what the PMU puts into it follows
perf_event_open(2). docs/collectors/perf_mem.md.
"""

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vsprof.collectors import messages, perf_text
from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_record import FIELDS as SAMPLED
from vsprof.collectors.perf_record import FREQUENCY_HZ, OPTIONS, SAMPLE_BYTES, STACK_BYTES, PerfRecord, samples
from vsprof.collectors.perf_record.samples import Sample
from vsprof.collectors.perf_text import Recording, lost
from vsprof.terms.placement import Placement
from vsprof.terms.schema import FunctionCount, Number, StackCount
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import Testbed

RECORD = "perf c2c record"
FIELDS = tuple(fields.replace("event", "period,event,addr,data_src,weight,phys_addr") for fields in SAMPLED)
MOST_LATENCY = 65_535
ACCESS = re.compile(samples.HEAD_TEXT + r"\s+(?P<address>[0-9a-f]+)\s(?:.*\s)?(?P<source>[0-9a-f]+) \|[^|]*\|.*\s(?P<weight>\d+)\s*$")
PHYSICAL = re.compile(r"^\s+(?P<address>[0-9a-f]+)\s*$")
LINE_BYTES = 64
# perf_event_open(2), data_src: the fields' places, and in mem_lvl_num, or where that says nothing in mem_lvl, what was hit.
OP, LVL, SNOOP, LOCK, TLB, LVL_NUM, REMOTE, SNOOPX = (0, 5), (5, 14), (19, 5), (24, 2), (26, 7), (33, 4), (37, 1), (38, 2)
OP_LOAD, OP_STORE = 0x02, 0x04
SNOOP_HITM, SNOOPX_PEER = 0x10, 0x02
TLB_WALKER, TLB_MISSED_L2, LOCKED = 0x20, 0x14, 0x02
LEVEL_NUMBERS = {0x1: "l1", 0x2: "l2", 0x3: "l3", 0x4: "l4", 0x9: "cxl", 0xA: "io", 0xC: "lfb", 0xD: "memory", 0xE: "memory"}
LEVEL_BITS = {
    0x008: "l1", 0x010: "lfb", 0x020: "l2", 0x040: "l3", 0x080: "memory", 0x100: "remote_memory", 0x200: "remote_memory",
    0x400: "remote_cache", 0x800: "remote_cache", 0x1000: "io", 0x2000: "uncached",
}  # fmt: skip
LVL_HIT = 0x02
UNKNOWN = "unknown"
LATENCIES = {"p50": 0.5, "p99": 0.99}


@dataclass(frozen=True)
class Access:
    """A load or a store."""

    sample: Sample
    kind: str
    """``loads`` or ``stores``."""
    level: str
    """From where it got its data."""
    hitm: bool
    """Another core had changed the line, or gave it."""
    walked: bool
    """The page walker found its address."""
    latency: int
    """Cycles; 0: not known."""
    line: int
    """The line of physical memory; 0: not known."""

    def names(self, contended: frozenset[int]) -> Iterator[str]:
        """All that it counts for."""
        yield f"mem_{self.kind}"
        if self.kind == "loads":
            yield f"mem_loads_{self.level}"
        if self.hitm:
            yield f"mem_{self.kind}_hitm"
        if self.walked:
            yield "mem_dtlb_walks"
        if self.kind == "stores" and self.line in contended:
            yield "mem_stores_contended"


class PerfMem(PerfRecord):
    words = "loads and stores sampled with their addresses"
    source = "hardware"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "mem_loads": NumberWords("sampled loads"),
        "mem_stores": NumberWords("sampled stores"),
        "mem_loads_hitm": NumberWords("sampled loads of a line that another core had changed", better="less"),
        "mem_stores_contended": NumberWords("sampled stores to a line that another core then had to take", better="less"),
        "mem_dtlb_walks": NumberWords("sampled accesses whose address the page walker found", better="less"),
        "mem_loads_*": NumberWords("sampled loads that got their data there"),
        "mem_stores_*": NumberWords("sampled stores of this kind"),
        "mem_load_latency_*": NumberWords("cycles that sampled loads took, as the PMU has it", better="less"),
        "mem_contended_lines": NumberWords("cache lines that loads took from another core", better="less"),
        "samples_lost": NumberWords("samples that perf could not write in time", better="less"),
    }
    options: ClassVar[dict[str, str]] = {
        "frequency": PerfRecord.options["frequency"],
        "stack_bytes": PerfRecord.options["stack_bytes"],
        "least_latency": f"loads that take fewer cycles are not sampled, 0 to {MOST_LATENCY} (Intel, Arm; default: perf's own, 30)",
    }

    def __init__(
        self, host: Testbed, frequency: int = FREQUENCY_HZ, stack_bytes: int = STACK_BYTES, least_latency: int | None = None
    ) -> None:
        super().__init__(host, frequency, stack_bytes)
        self.least_latency = least_latency

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        super().check_options(given)
        latency = given.get("least_latency", 0)
        if type(latency) is not int or not 0 <= latency <= MOST_LATENCY:
            raise messages.bad_latency(latency, MOST_LATENCY)

    @property
    def _tool(self) -> str:
        least = "" if self.least_latency is None else f" --ldlat {self.least_latency}"
        return f"{RECORD}{least} --"

    def unavailable(self) -> str | None:
        tried = perf_text.tried(self.host, "", self._tool)
        return None if tried.status == 0 else messages.no_memory_events(" ".join(tried.stderr.split()))

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "event": RECORD, "least_latency": self.least_latency}

    def measure(self, seconds: float) -> str:
        callers = f"dwarf,{self.stack_bytes}" if self.stack_bytes else "fp"
        buffer = math.ceil(seconds * self.frequency * (self.stack_bytes + SAMPLE_BYTES))
        what = f"-F {self.frequency} --call-graph {callers}"
        printed = perf_text.record(self.host, what, seconds, FIELDS, OPTIONS, buffer, self._tool)
        recording = Recording.of(printed, modules=self._modules)
        names = self._place_names(samples.unnamed(recording))
        return Recording({**recording.header, "names": names}, recording.text).recorded()

    @classmethod
    def source_of(cls, recorded: Recorded) -> str:
        return cls.source

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        found = read(recorded.end)
        if why := found.cut or ("" if found.accesses else messages.no_sample()):
            return [Number("mem_loads", None, samples.SAMPLES, note=why)]
        return [*_by_place(found, recorded.placement), *_latencies(found, recorded.placement), *_totals(found)]

    @classmethod
    def functions(cls, recorded: Recorded) -> Iterable[FunctionCount]:
        counts = _counted(recorded, lambda sample: (sample.frames[0].object, sample.frames[0].function))
        return [
            FunctionCount(name, count, samples.SAMPLES, *what, role, cpu, mode) for (name, role, cpu, mode, what), count in counts.items()
        ]

    @classmethod
    def stacks(cls, recorded: Recorded) -> Iterable[StackCount]:
        counts = _counted(recorded, Sample.folded)
        return [StackCount(name, count, samples.SAMPLES, what, role, cpu, mode) for (name, role, cpu, mode, what), count in counts.items()]


@dataclass(frozen=True)
class Window:
    """All accesses of a window. contended: the lines that a load took from another core."""

    accesses: list[Access]
    lost: int
    cut: str
    contended: frozenset[int]


@functools.lru_cache(maxsize=1)  # its numbers, its functions and its stacks are all made of one window's
def read(recorded: str) -> Window:
    """Raises ``ValueError`` on what is no recording of accesses."""
    try:
        return _read(Recording.read(recorded))
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"not a recording of loads and stores: {error!r}") from error


def _read(recording: Recording) -> Window:
    found, gone = [], 0
    for block in samples.blocks(recording):
        if (count := lost(block[0])) is not None:
            gone += count
        else:
            found.append(_access(block, recording.header))
    busy = [one for one in found if one is not None and not one.sample.idle]
    return Window(busy, gone, recording.cut(), frozenset(one.line for one in busy if one.hitm and one.line))


def _access(block: list[str], header: Mapping[str, Any]) -> Access | None:
    """None for what is neither a load nor a store: IBS samples any instruction."""
    match = ACCESS.match(block[0])
    if match is None:
        raise ValueError(f"not an access of perf script: {block[0][:80]}")
    physical = PHYSICAL.match(block[-1]) if len(block) > 1 else None
    sample = samples.sample_of(match, block[1 : -1 if physical else None], header)
    source = int(match["source"], 16)
    operation, level = _field(source, OP), _level(source)
    kind = "loads" if operation & OP_LOAD else "stores" if operation & OP_STORE else None
    if kind is None:
        return None
    hitm = bool(_field(source, SNOOP) & SNOOP_HITM or _field(source, SNOOPX) & SNOOPX_PEER)
    line = int(physical["address"], 16) // LINE_BYTES if physical else 0
    return Access(sample, kind, level, hitm, _walked(_field(source, TLB)), int(match["weight"]), line)


def _walked(tlb: int) -> bool:
    """Whether the page table was walked. Intel's and AMD's drivers set no bit for it, but that the second level missed."""
    return bool(tlb & TLB_WALKER) or tlb & TLB_MISSED_L2 == TLB_MISSED_L2


def _field(source: int, place: tuple[int, int]) -> int:
    begin, bits = place
    return source >> begin & (1 << bits) - 1


def _level(source: int) -> str:
    """From where the data came."""
    remote = bool(_field(source, REMOTE))
    level = LEVEL_NUMBERS.get(_field(source, LVL_NUM))
    if level is not None:
        return f"remote_{'memory' if level == 'memory' else 'cache'}" if remote else level
    bits = _field(source, LVL)
    found = [name for bit, name in LEVEL_BITS.items() if bits & bit]
    # What missed a level says nothing of where the data was.
    return found[-1] if found and bits & LVL_HIT else UNKNOWN


def _by_place(found: Window, placement: Placement) -> Iterator[Number]:
    counts: Counter[tuple[str, str, int, str]] = Counter()
    for one in found.accesses:
        where = one.sample.role(placement), one.sample.cpu, one.sample.mode
        counts.update((name, *where) for name in one.names(found.contended))
    for (name, role, cpu, mode), count in sorted(counts.items()):
        yield Number(name, count, samples.SAMPLES, role, cpu, mode)


def _latencies(found: Window, placement: Placement) -> Iterator[Number]:
    by_role: dict[str, list[int]] = defaultdict(list)
    for one in found.accesses:
        if one.kind == "loads" and one.latency:
            by_role[one.sample.role(placement)].append(one.latency)
    for role, latencies in sorted(by_role.items()):
        ordered = sorted(latencies)
        yield Number("mem_load_latency_mean", sum(ordered) / len(ordered), "cycles", role)
        for name, share in LATENCIES.items():
            yield Number(f"mem_load_latency_{name}", ordered[math.ceil(share * len(ordered)) - 1], "cycles", role)


def _totals(found: Window) -> Iterator[Number]:
    yield Number("mem_contended_lines", len(found.contended), "lines")
    yield Number("samples_lost", found.lost, samples.SAMPLES)


def _counted(recorded: Recorded, what: Any) -> Counter[tuple[str, str, int, str, Any]]:
    found = read(recorded.end)
    counts: Counter[tuple[str, str, int, str, Any]] = Counter()
    for one in [] if found.cut else found.accesses:
        where = one.sample.role(recorded.placement), one.sample.cpu, one.sample.mode, what(one.sample)
        counts.update((name, *where) for name in one.names(found.contended))
    return counts


COLLECTOR = PerfMem
