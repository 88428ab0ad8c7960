# SPDX-License-Identifier: GPL-2.0-or-later
"""Who had which CPU, and why not longer: each switch of threads by its reason, how long threads waited for a CPU, and who ran next.

The kernel's scheduler tells it by its tracepoints, each event at its time: nothing is sampled. Writing them down costs something at
each switch, so it has windows of its own, and an experiment must name it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from vsprof.collectors import messages, perf_text
from vsprof.collectors.base import Apart, Recorded
from vsprof.collectors.perf_text import IDLE_TASK, Recording
from vsprof.collectors.sched.story import OTHER, REASONS, Story, Thread
from vsprof.terms.schema import FunctionCount, Number
from vsprof.terms.vocabulary import NumberWords

EVENTS = "-e sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_migrate_task"
FIELDS = ("tid,cpu,time,event,trace",)
PERCENTILES = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
BOUNDS_US = [2**power for power in range(21)]
"""Of the histogram of waits, from 1 µs to about 1 s: each bucket counts what is below it, and not below the one before."""
NS = 1e9
SWITCHES = (*dict.fromkeys(REASONS.values()), OTHER)
SERIES = {"run_queue_latency": "wait for a CPU", "slice": "time on a CPU"}
"""What has a distribution, and its words."""


class Sched(Apart):
    words = "the scheduler"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "run_queue_latency_*": NumberWords("time that a runnable thread waits for a CPU", better="less"),
        "preempted_wait_seconds": NumberWords("time waiting after the CPU was taken away", better="less"),
        "switches_*": NumberWords("context switches, by why the thread left its CPU", better="less"),
        "task_migrations": NumberWords("threads moved to another CPU", better="less"),
        "run_queue_waits": NumberWords("times that a thread was woken and got a CPU"),
        "on_cpu_seconds": NumberWords("time on a CPU"),
        "slices": NumberWords("times that a thread had a CPU without a break"),
        "slice_*": NumberWords("how long a thread had a CPU without a break"),
        "lost_events": NumberWords("events that perf lost", better="less"),
        "window_seconds": NumberWords("length of the trace"),
    }
    automatic = False

    def unavailable(self) -> str | None:
        tried = perf_text.tried(self.host, EVENTS)
        return None if tried.status == 0 else messages.no_tracepoints(" ".join(tried.stderr.split()))

    def measure(self, seconds: float) -> str:
        return Recording.of(perf_text.record(self.host, EVENTS, seconds, FIELDS)).recorded()

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        """By role, over all CPUs. Where events were lost, all are empty."""
        recording = Recording.read(recorded.end)
        lost = perf_text.lost_in(recording)
        yield Number("lost_events", lost, "events")
        if why := _distrust(recording, lost):
            yield from _empty(why)
            return
        story = Story.of(recording, recorded.placement)
        yield Number("window_seconds", (story.end - story.begin) / NS, "seconds")
        # A role whose threads did not switch once is what one hopes of a poll-mode thread: it has zeros.
        roles = {thread.role for thread in (*recorded.placement.threads, *story.threads.values())}
        for role in sorted(roles):
            yield from _of_role(role, Thread.sum([thread for thread in story.threads.values() if thread.role == role], role))

    @classmethod
    def functions(cls, recorded: Recorded) -> Iterable[FunctionCount]:
        """Who ran next: the object is its role, or ``idle``, and the function its name."""
        recording = Recording.read(recorded.end)
        if _distrust(recording, perf_text.lost_in(recording)):
            return []
        story = Story.of(recording, recorded.placement)
        counts: Counter[tuple[str, str, str]] = Counter()
        for left in story.threads.values():
            for (then, name), count in left.followers.items():
                counts[left.role, "idle" if then == IDLE_TASK else story.threads[then].role, name] += count
        return [FunctionCount("switches_to", count, "events", next_role, name, role) for (role, next_role, name), count in counts.items()]


def _distrust(recording: Recording, lost: int) -> str:
    return recording.cut() or (messages.lost_events(lost) if lost else "")


def _empty(why: str) -> Iterable[Number]:
    for name in (*SWITCHES, "run_queue_waits", "slices", "task_migrations"):
        yield Number(name, None, "events", note=why)
    for name in ("preempted_wait_seconds", "on_cpu_seconds", *(f"{one}_{end}" for one in SERIES for end in (*PERCENTILES, "mean"))):
        yield Number(name, None, "seconds", note=why)


def _of_role(role: str, seen: Thread) -> Iterable[Number]:
    for name in SWITCHES:
        yield Number(name, seen.switches[name], "events", role)
    yield Number("task_migrations", seen.migrations, "events", role)
    yield Number("preempted_wait_seconds", seen.preempted / NS, "seconds", role)
    yield Number("on_cpu_seconds", seen.on_cpu / NS, "seconds", role)
    yield Number("run_queue_waits", len(seen.waits), "events", role)
    yield Number("slices", len(seen.slices), "events", role)
    yield from _distribution("run_queue_latency", seen.waits, role)
    yield from _distribution("slice", seen.slices, role)
    yield from _histogram(seen.waits, role)


def _distribution(name: str, values: Sequence[int], role: str) -> Iterable[Number]:
    """Percentiles by nearest rank, and the mean; all of them are of values that occurred."""
    ordered = sorted(values)
    for end, percent in PERCENTILES.items():
        value = ordered[math.ceil(percent / 100 * len(ordered)) - 1] / NS if ordered else None
        yield Number(f"{name}_{end}", value, "seconds", role, note=_why_empty(name, ordered))
    mean = sum(ordered) / len(ordered) / NS if ordered else None
    yield Number(f"{name}_mean", mean, "seconds", role, note=_why_empty(name, ordered))


def _why_empty(name: str, values: Sequence[int]) -> str:
    return "" if values else messages.nothing_seen(SERIES[name])


def _histogram(waits: Sequence[int], role: str) -> Iterable[Number]:
    """Over windows and repetitions histograms can be summed, where percentiles can't."""
    below = 0
    for bound in BOUNDS_US:
        until = sum(one < 1000 * bound for one in waits)
        yield Number(f"run_queue_latency_below_{bound}us", until - below, "events", role)
        below = until
    yield Number("run_queue_latency_longer", len(waits) - below, "events", role)


COLLECTOR = Sched
