# SPDX-License-Identifier: GPL-2.0-or-later
"""From the kernel's tracepoints, in the order of their times, to spans."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from vsprof.collectors.perf_text import IDLE_TASK, Recording, lost, nanoseconds
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Span

LINE = re.compile(r"^\s*(?P<thread>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<time>\d+\.\d+):\s+(?P<system>\w+):(?P<event>\w+):\s*(?P<told>.*)$")
SWITCH = re.compile(r"prev_comm=(?P<left_name>.*) prev_pid=(?P<left>\d+) .* ==> next_comm=(?P<next_name>.*) next_pid=(?P<next>\d+) ")
WAKING = re.compile(r"^comm=(?P<name>.*) pid=(?P<thread>\d+) ")
IRQ = re.compile(r"^irq=\d+ name=(?P<name>.*)$")
SOFTIRQ = re.compile(r"\[action=(?P<name>\w+)\]")
LEFT_GUEST = re.compile(r"\breason (?P<name>\w+)")
IDLE_STATE = re.compile(r"^state=(?P<state>\d+) ")
AWAKE = 2**32 - 1
"""What power:cpu_idle calls the state of a CPU that left one: -1, in 32 bits."""
VECTORS = {
    "local_timer": "timer", "reschedule": "reschedule", "call_function": "call-function", "call_function_single": "call-function",
}  # fmt: skip
"""Interrupts that no device sends, by the names of their tracepoints, and those that they have in the processor model's timelines.
The kernel lets nobody sample irq_work's."""
IDLE, IDLE_NAME, KSOFTIRQD = 0, "idle", "ksoftirqd/"


@dataclass(frozen=True)
class Event:
    thread: int
    """That was on the CPU."""
    cpu: int
    time: int
    kind: str
    told: str


@dataclass
class _Story:
    """``open``: by CPU and kind what began and has not ended: since when, the name, the thread."""

    placement: Placement
    begin: int
    names: dict[int, str]
    spans: list[Span] = field(default_factory=list)
    open: dict[tuple[int, str], tuple[int, str, int | None]] = field(default_factory=dict)

    def start(self, event: Event, kind: str, name: str = "", thread: int | None = None) -> None:
        self.stop(event, kind)
        self.open[event.cpu, kind] = event.time, name, thread

    def stop(self, event: Event, kind: str, name: str | None = None) -> None:
        if (one := self.open.pop((event.cpu, kind), None)) is not None:
            self._add(event.cpu, kind, one[0], event.time, one[1] if name is None else name, one[2])

    def mark(self, event: Event, kind: str, name: str = "", thread: int | None = None) -> None:
        self._add(event.cpu, kind, event.time, event.time, name, thread)

    def close(self, end: int) -> None:
        for (cpu, kind), (since, name, thread) in self.open.items():
            self._add(cpu, kind, since, end, name, thread)

    def _add(self, cpu: int, kind: str, since: int, until: int, name: str, thread: int | None) -> None:
        if thread == IDLE_TASK:
            role, name = None, IDLE_NAME
        elif thread is not None:
            role = "softirq" if name.startswith(KSOFTIRQD) else self.placement.role_of_thread(thread)
        else:
            role = "softirq" if kind in ("irq", "softirq") else "guest" if kind == "guest" else self.placement.role_of_cpu(cpu)
        self.spans.append(Span(kind, since - self.begin, until - since, cpu, role, "all", name, thread))


def ends(recording: Recording) -> tuple[int, int]:
    """When the first event was, and the last one. Raises ``ValueError``."""
    times = [event.time for event in _events(recording)]
    if not times:
        raise ValueError("perf recorded no event, not even its own")
    return min(times), max(times)


def spans(recording: Recording, placement: Placement) -> list[Span]:
    """All of it. Raises ``ValueError`` on what is no event of ours."""
    begin, end = ends(recording)
    story = _Story(placement, begin, {thread.tid: thread.name for thread in placement.threads})
    seen: set[int] = set()
    for event in sorted(_events(recording), key=lambda event: event.time):
        if event.cpu not in seen:
            seen.add(event.cpu)
            # Whoever it is that the first event finds there has been there since the begin.
            story.open[event.cpu, "task"] = begin, story.names.get(event.thread, ""), event.thread
        _take(story, event)
    story.close(end)
    known = [Span("recorded", 0, end - begin, cpu, placement.role_of_cpu(cpu)) for cpu in sorted(seen)]
    return [*known, *sorted(story.spans, key=lambda span: span.time_ns)]


def _take(story: _Story, event: Event) -> None:
    system, _, name = event.kind.partition(":")
    if system == "irq_vectors":
        vector, _, at = name.rpartition("_")
        story.start(event, "irq", VECTORS.get(vector, vector)) if at == "entry" else story.stop(event, "irq")
    elif (take := TAKERS.get(event.kind)) is not None:
        take(story, event)
    else:
        raise ValueError(f"not an event of a timeline: {event.kind}")


def _switch(story: _Story, event: Event) -> None:
    told = _match(SWITCH, event)
    since, _, thread = story.open.get((event.cpu, "task"), (story.begin, "", int(told["left"])))
    story.open[event.cpu, "task"] = since, told["left_name"], thread
    story.start(event, "task", told["next_name"], int(told["next"]))


def _waking(story: _Story, event: Event) -> None:
    told = _match(WAKING, event)
    story.mark(event, "wake", told["name"], int(told["thread"]))


def _idle(story: _Story, event: Event) -> None:
    if int(_match(IDLE_STATE, event)["state"]) == AWAKE:
        story.stop(event, "sleep")
    else:
        story.start(event, "sleep")


TAKERS: Mapping[str, Callable[[_Story, Event], None]] = {
    "sched:sched_switch": _switch,
    "sched:sched_waking": _waking,
    "power:cpu_idle": _idle,
    "irq:irq_handler_entry": lambda story, event: story.start(event, "irq", _match(IRQ, event)["name"]),
    "irq:irq_handler_exit": lambda story, event: story.stop(event, "irq"),
    "irq:softirq_entry": lambda story, event: story.start(event, "softirq", _match(SOFTIRQ, event)["name"].lower()),
    "irq:softirq_exit": lambda story, event: story.stop(event, "softirq"),
    "kvm:kvm_entry": lambda story, event: story.start(event, "guest"),
    "kvm:kvm_exit": lambda story, event: story.stop(event, "guest", _match(LEFT_GUEST, event)["name"]),
    "openvswitch:ovs_dp_upcall": lambda story, event: story.mark(event, "upcall"),
}


def _events(recording: Recording) -> Iterator[Event]:
    for line in recording.whole_lines():
        if not line.strip() or lost(line) is not None:
            continue
        match = LINE.match(line)
        if match is None:
            raise ValueError(f"not an event of the kernel: {line[:80]}")
        time = nanoseconds(match["time"])
        yield Event(int(match["thread"]), int(match["cpu"]), time, f"{match['system']}:{match['event']}", match["told"])


def _match(pattern: re.Pattern[str], event: Event) -> re.Match[str]:
    match = pattern.search(event.told)
    if match is None:
        raise ValueError(f"not what {event.kind} tells: {event.told[:80]}")
    return match
