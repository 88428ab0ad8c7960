# SPDX-License-Identifier: GPL-2.0-or-later
"""What each thread went through in a window, told from the scheduler's events in the order of their times."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from vsprof.collectors.perf_text import IDLE_TASK, Recording, lost, nanoseconds, thread_name
from vsprof.terms.placement import Placement

REASONS = {
    "R": "switches_preempted", "S": "switches_sleeping", "D": "switches_uninterruptible", "I": "switches_idle_worker",
    "T": "switches_stopped", "t": "switches_stopped", "X": "switches_ended", "Z": "switches_ended", "P": "switches_parked",
}  # fmt: skip
"""The kernel's letter for the state of the thread that left the CPU (sched_switch's prev_state), and the name of what is counted."""
OTHER = "switches_other"
RUNNABLE = "R"
LINE = re.compile(r"^\s*-?\d+\s+\[(?P<cpu>\d+)\]\s+(?P<time>\d+\.\d+):\s+sched:(?P<event>\w+):\s*(?P<told>.*)$")
SWITCH = re.compile(
    r"^prev_comm=(?P<left_name>.*) prev_pid=(?P<left>\d+) prev_prio=-?\d+ prev_state=(?P<state>\S+)"
    r" ==> next_comm=(?P<next_name>.*) next_pid=(?P<next>\d+) next_prio=-?\d+$"
)
TASK = re.compile(r"^comm=(?P<name>.*) pid=(?P<thread>\d+) prio=-?\d+ ")


@dataclass
class Thread:
    """One thread, or all of a role. Times in nanoseconds, as perf tells them: whole numbers, so that none is a little off."""

    role: str
    switches: Counter[str] = field(default_factory=Counter)
    """Times that it left a CPU, by reason."""
    followers: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Who then ran on that CPU: thread and name."""
    waits: list[int] = field(default_factory=list)
    """From being woken to running."""
    preempted: int = 0
    """Waited for a CPU after one was taken from it."""
    slices: list[int] = field(default_factory=list)
    """On a CPU without a break, begun and ended inside the window."""
    on_cpu: int = 0
    migrations: int = 0

    @classmethod
    def sum(cls, threads: "Sequence[Thread]", role: str) -> Self:
        whole = cls(role)
        for one in threads:
            whole.switches += one.switches
            whole.waits += one.waits
            whole.preempted += one.preempted
            whole.slices += one.slices
            whole.on_cpu += one.on_cpu
            whole.migrations += one.migrations
        return whole


@dataclass(frozen=True)
class Event:
    cpu: int
    time: int
    kind: str
    told: str


@dataclass
class Story:
    """A window."""

    placement: Placement
    begin: int
    end: int
    threads: dict[int, Thread] = field(default_factory=dict)
    _running: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """By CPU the thread on it, and since when; None: since before the first event."""
    _waiting: dict[int, tuple[int, bool]] = field(default_factory=dict)
    """By thread since when it has waited for a CPU, and whether one was taken from it."""

    @classmethod
    def of(cls, recording: Recording, placement: Placement) -> Self:
        """Raises ``ValueError`` on what is no event of the scheduler, and where there is none at all."""
        events = list(_events(recording.whole_lines()))
        if not events:
            raise ValueError("perf recorded no event of the scheduler, not even its own")
        story = cls(placement, events[0].time, events[-1].time)
        for event in events:
            story._take(event)
        for thread, since in story._running.values():
            story._ran(thread, since, story.end, whole=False)
        return story

    def _take(self, event: Event) -> None:
        if event.kind == "sched_switch":
            self._switch(event)
        elif event.kind in ("sched_wakeup", "sched_wakeup_new"):
            self._wake(event)
        elif event.kind == "sched_migrate_task":
            told = _match(TASK, event)
            self._thread(int(told["thread"]), told["name"]).migrations += 1

    def _switch(self, event: Event) -> None:
        told = _match(SWITCH, event)
        left, then = int(told["left"]), int(told["next"])
        # Who is first seen when it leaves has run since before the first event.
        _, since = self._running.get(event.cpu, (left, None))
        self._running[event.cpu] = then, event.time
        self._arrives(then, told["next_name"], event.time)
        if left == IDLE_TASK:
            return
        thread = self._thread(left, told["left_name"])
        self._ran(left, since, event.time, whole=True)
        thread.switches[REASONS.get(told["state"][0], OTHER)] += 1
        thread.followers[then, thread_name(told["next_name"])] += 1
        self._waiting.pop(left, None)
        if told["state"].startswith(RUNNABLE):
            self._waiting[left] = event.time, True

    def _arrives(self, thread: int, name: str, time: int) -> None:
        if thread == IDLE_TASK:
            return
        seen = self._thread(thread, name)
        since, taken = self._waiting.pop(thread, (None, False))
        if since is None:
            return
        if taken:
            seen.preempted += time - since
        else:
            seen.waits.append(time - since)

    def _wake(self, event: Event) -> None:
        told = _match(TASK, event)
        thread = int(told["thread"])
        self._thread(thread, told["name"])
        # One that is on a CPU, about to sleep, stays there; one that waits already is not woken again.
        if thread not in self._waiting and thread not in [running for running, _ in self._running.values()]:
            self._waiting[thread] = event.time, False

    def _ran(self, thread: int, since: int | None, until: int, *, whole: bool) -> None:
        if thread == IDLE_TASK:
            return
        seen = self.threads[thread]
        seen.on_cpu += until - (self.begin if since is None else since)
        if whole and since is not None:
            seen.slices.append(until - since)

    def _thread(self, thread: int, name: str) -> Thread:
        if thread not in self.threads:
            role = "softirq" if name.startswith("ksoftirqd") else self.placement.role_of_thread(thread)
            self.threads[thread] = Thread(role)
        return self.threads[thread]


def _events(lines: Iterable[str]) -> Iterator[Event]:
    for line in lines:
        if not line.strip() or lost(line) is not None:
            continue
        match = LINE.match(line)
        if match is None:
            raise ValueError(f"not an event of the scheduler: {line[:80]}")
        yield Event(int(match["cpu"]), nanoseconds(match["time"]), match["event"], match["told"])


def _match(pattern: re.Pattern[str], event: Event) -> re.Match[str]:
    match = pattern.match(event.told)
    if match is None:
        raise ValueError(f"not what {event.kind} tells: {event.told[:80]}")
    return match
