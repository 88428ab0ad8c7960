# SPDX-License-Identifier: GPL-2.0-or-later
"""From perf script's text to samples, and from samples to numbers, functions and folded stacks."""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vsprof.collectors import messages
from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_record import events
from vsprof.collectors.perf_text import IDLE_TASK, Recording, lost, nanoseconds, thread_name
from vsprof.terms.placement import Placement
from vsprof.terms.schema import FunctionCount, Number, StackCount

HEAD_TEXT = (
    r"^(?P<comm>.*\S)\s+(?P<pid>-?\d+)/(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s(?P<misc>.*?)\s+(?P<time>\d+\.\d+):"
    r"\s+(?:(?P<period>\d+)\s+)?(?P<event>[^\s:]+)(?P<modifier>[:\w]*):"
)
HEAD = re.compile(HEAD_TEXT + r"\s*$")
FRAME = re.compile(r"^\s+(?P<ip>[0-9a-f]+) (?P<symbol>.*) \((?P<object>[^()]*?(?: \(deleted\))?)(?:\+0x(?P<place>[0-9a-f]+))?\)$")
# perf's letters for where a sample fell (tools/perf/Documentation/perf-script.txt, field misc): guests' in their own column.
GUESTS = {"G": "guest kernel", "g": "guest programs"}
GUEST = "vCPU"
SAMPLES, EVENTS = "samples", "events"
"""Samples of the clock or of cycles are counted one by one, under this name; others stand for so many events of their own name."""
CLOCKS = ("cpu-clock", "task-clock")
KERNEL_HALF = 1 << 63
UNNAMED = "(unknown)"
UNKNOWN = "[unknown]"
USER_BRACKETS = ("[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[unknown]")
"""What perf brackets though it is no part of the kernel."""
# What the idle task does beside being idle is work for others: interrupts, and softirqs on their way out.
BUSY_IDLE = re.compile(r"^(asm_)?(sysvec|common_interrupt|handle_softirqs|__do_softirq|do_softirq|irq_exit|flush_smp_call_function)")


@dataclass(frozen=True)
class Frame:
    """One function of a stack."""

    function: str
    object: str
    kernel: bool

    def folded(self) -> str:
        where = f"[{self.object}]" if self.kernel else self.object
        return f"{self.function} ({where})".replace(";", ":")


@dataclass(frozen=True)
class Sample:
    thread: int
    comm: str
    cpu: int
    mode: str
    time: int
    """Nanoseconds."""
    event: str
    frames: tuple[Frame, ...]
    """From the innermost out."""
    names: tuple[str, ...] = (SAMPLES,)
    """What it is a sample of."""
    weight: int = 1
    """How many events it stands for."""

    @property
    def idle(self) -> bool:
        return self.thread == IDLE_TASK and not any(frame.kernel and BUSY_IDLE.match(frame.function) for frame in self.frames)

    def role(self, placement: Placement) -> str:
        """As everywhere; and what runs on the idle task's stack, but for the idle task itself, are interrupts and softirqs."""
        if self.thread == IDLE_TASK or self.comm.startswith("ksoftirqd"):
            return "softirq"
        return placement.role_of_thread(self.thread)

    def folded(self) -> str:
        return ";".join([thread_name(self.comm), *(frame.folded() for frame in reversed(self.frames))])


@dataclass(frozen=True)
class Profile:
    """All samples of a window."""

    samples: list[Sample]
    lost: int
    cut: str
    left_out: Mapping[str, str]
    """By the name of an event that was asked for: why it was not sampled."""
    kernels_own: bool = False
    """Events that the kernel counts by itself, not a PMU."""


@functools.lru_cache(maxsize=1)  # its numbers, its functions and its stacks are all made of one window's
def read(recorded: str) -> Profile:
    """Raises ``ValueError`` on what is no recording of samples."""
    try:
        return _read(Recording.read(recorded))
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"not a recording of samples: {error!r}") from error


def _read(recording: Recording) -> Profile:
    found: list[Sample] = []
    gone = 0
    for block in blocks(recording):
        if (count := lost(block[0])) is not None:
            gone += count
        else:
            found.append(_sample(block, recording.header))
    # In a guest a thread has the guest's name; on the host it has its own.
    names = {sample.thread: sample.comm for sample in found if sample.mode != "guest"}
    named = [replace(one, comm=names.get(one.thread, GUEST)) if one.mode == "guest" else one for one in found]
    left_out = {str(name): str(why) for name, why in recording.header.get("left_out", {}).items()}
    return Profile(named, gone, recording.cut(), left_out, recording.header.get("kernels_own") is True)


def is_clock(recorded: Recorded) -> bool:
    """Whether the kernel took the samples, by its clock or its own events, and not the PMU."""
    profile = read(recorded.end)
    return profile.kernels_own or all(sample.event in CLOCKS for sample in profile.samples)


def numbers(recorded: Recorded) -> Iterable[Number]:
    profile = read(recorded.end)
    if why := profile.cut or ("" if profile.samples else messages.no_sample()):
        return [Number("samples", None, "samples", note=why)]
    return [*_by_role(profile, recorded.placement), *_not_sampled(profile), *_by_cpu(profile, recorded.placement)]


def _by_role(profile: Profile, placement: Placement) -> Iterable[Number]:
    found: dict[tuple[str, str, int, str], list[Sample]] = defaultdict(list)
    for sample in profile.samples:
        if not sample.idle:
            for name in sample.names:
                found[name, sample.role(placement), sample.cpu, sample.mode].append(sample)
    for (name, role, cpu, mode), some in sorted(found.items()):
        if name == SAMPLES:
            yield Number(name, len(some), SAMPLES, role, cpu, mode, note=f"sampled by {some[0].event}")
        else:
            note = messages.from_samples(len(some), some[0].event)
            yield Number(f"sampled_{name}", sum(one.weight for one in some), EVENTS, role, cpu, mode, note=note)


def _not_sampled(profile: Profile) -> Iterable[Number]:
    return [Number(f"sampled_{name}", None, EVENTS, note=why) for name, why in profile.left_out.items()]


def _by_cpu(profile: Profile, placement: Placement) -> Iterable[Number]:
    """How often each CPU was looked at, and found idle. The rate is that of the samples that came: idle CPUs may have fewer."""
    for cpu in sorted({s.cpu for s in profile.samples}):
        times = sorted(s.time for s in profile.samples if s.cpu == cpu)
        idle = sum(s.idle for s in profile.samples if s.cpu == cpu)
        yield Number("samples_idle", idle, "samples", None, cpu)
        if times[-1] > times[0]:
            yield Number("sampling_rate", (len(times) - 1) * 1e9 / (times[-1] - times[0]), "hertz", None, cpu)
    times = [s.time for s in profile.samples]
    yield Number("samples_lost", profile.lost, "samples")
    yield Number("window_seconds", (max(times) - min(times)) / 1e9, "seconds")


def functions(recorded: Recorded) -> Iterable[FunctionCount]:
    """A flat profile: samples by the innermost function."""
    counts: Counter[tuple[str, str, int, str, Frame]] = Counter()
    for sample in _busy(recorded):
        for name in sample.names:
            counts[name, sample.role(recorded.placement), sample.cpu, sample.mode, sample.frames[0]] += sample.weight
    # A kernel's and a program's function of one name differ by mode alone if the objects agree.
    return [
        FunctionCount(name, count, _unit(name), frame.object, frame.function, role, cpu, mode)
        for (name, role, cpu, mode, frame), count in counts.items()
    ]


def stacks(recorded: Recorded) -> Iterable[StackCount]:
    counts: Counter[tuple[str, str, int, str, str]] = Counter()
    for sample in _busy(recorded):
        for name in sample.names:
            counts[name, sample.role(recorded.placement), sample.cpu, sample.mode, sample.folded()] += sample.weight
    return [StackCount(name, count, _unit(name), stack, role, cpu, mode) for (name, role, cpu, mode, stack), count in counts.items()]


def _unit(name: str) -> str:
    return SAMPLES if name == SAMPLES else EVENTS


def unnamed(recording: Recording) -> dict[str, set[int]]:
    """By program the places that perf found no name for."""
    found: dict[str, set[int]] = defaultdict(set)
    for line in recording.whole_lines():
        match = FRAME.match(line)
        if match and match["symbol"] == UNKNOWN and match["object"].startswith("/"):
            found[match["object"]].add(_place(match))
    return dict(found)


def _busy(recorded: Recorded) -> list[Sample]:
    profile = read(recorded.end)
    return [] if profile.cut else [sample for sample in profile.samples if not sample.idle]


def blocks(recording: Recording) -> Iterator[list[str]]:
    """The lines of each sample: they are parted by empty ones."""
    block: list[str] = []
    for line in recording.whole_lines():
        if not line.strip():
            if block:
                yield block
            block = []
        elif block and not line[0].isspace():
            # A line that tells of lost events has no empty one behind it in each version of perf.
            yield block
            block = [line]
        else:
            block.append(line)
    if block and not recording.cut():
        yield block


def _sample(block: list[str], header: Mapping[str, Any]) -> Sample:
    head = HEAD.match(block[0])
    if head is None:
        raise ValueError(f"not a sample of perf script: {block[0][:80]}")
    return sample_of(head, block[1:], header)


def sample_of(head: re.Match[str], lines: list[str], header: Mapping[str, Any]) -> Sample:
    """From what HEAD_TEXT found in a sample's first line, and the lines of its frames. Raises ``ValueError``."""
    guest = next((words for letter, words in GUESTS.items() if letter in head["misc"]), None)
    frames = _guest_frames(guest) if guest else tuple(_reliable(_frames(lines, header)))
    mode = "guest" if guest else "user" if "U" in head["misc"] else "kernel"
    where = (int(head["tid"]), head["comm"], int(head["cpu"]), mode, nanoseconds(head["time"]), head["event"], frames)
    if "events" not in header:
        return Sample(*where)
    names = events.names_in(header["events"], head["event"] + head["modifier"])
    return Sample(*where, tuple(names), int(head["period"] or 1))


def _guest_frames(words: str) -> tuple[Frame, ...]:
    """The host knows neither a guest's symbols nor its stacks."""
    return (Frame(UNNAMED, words, kernel=False),)


def _frames(lines: list[str], header: Mapping[str, Any]) -> Iterable[Frame]:
    for line in lines:
        match = FRAME.match(line)
        if match is None:
            raise ValueError(f"not a frame of perf script: {line[:80]}")
        yield _frame(match, header)


def _place(match: re.Match[str]) -> int:
    """The place in the program: see FIELDS of the collector."""
    return int(match["place"] or match["ip"], 16)


def _frame(match: re.Match[str], header: Mapping[str, Any]) -> Frame:
    address, where, function = int(match["ip"], 16), match["object"], match["symbol"]
    if function == UNKNOWN:
        function = header.get("names", {}).get(where, {}).get(f"{_place(match):x}", UNNAMED)
    name = Path(where.removesuffix(" (deleted)")).name
    if ".ko" in Path(name).suffixes:
        # Modules are named with - and _ for the same; the kernel's own list has _.
        return Frame(function, name.partition(".ko")[0].replace("-", "_"), kernel=True)
    if where.startswith("[") and not where.startswith(("[kernel", *USER_BRACKETS)):
        return Frame(function, where.strip("[]"), kernel=True)
    if where.startswith("[kernel") or address >= KERNEL_HALF:
        return Frame(function, _module(address, header.get("modules", [])), kernel=True)
    return Frame(function, name, kernel=False)


def _module(address: int, modules: Iterable[tuple[str, str, str]]) -> str:
    """The module that has the address, by where their code begins and how large they are; else the kernel."""
    begins = [(int(begin, 16), int(size), name) for begin, size, name in modules]
    begin, size, name = max((one for one in begins if one[0] <= address), default=(0, 0, ""))
    return name if address < begin + size else "kernel"


def _reliable(frames: Iterable[Frame]) -> Iterable[Frame]:
    """The stack up to where it goes astray.

    Callers are found by the frame pointer, which many programs use for other things: the first address that is in no file, or in the
    kernel though a program called, is a number that only looked like one, and all behind it follow from it.
    """
    found = list(frames)
    program = next((at for at, frame in enumerate(found) if not frame.kernel), len(found))
    beyond = range(program + 1, len(found))
    astray = next((at for at in beyond if found[at].kernel or found[at].object == UNKNOWN), len(found))
    return found[:astray] or [Frame(UNNAMED, UNKNOWN, kernel=False)]
