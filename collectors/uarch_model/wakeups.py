# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of a wake-up, out of what was written down: how long it takes from the instant at which a thread that moves frames is woken
until it has some.

1. kick: until the CPU that wakes it has sent an interrupt to the thread's.
2. interrupt: until that CPU serves it. It must have come, and the CPU must have left its idle state.
3. schedule: until the thread has the CPU.
4. run: until it has frames.

The names follow "Working model transition" (docs/targets/T11.md). What the waker does before it wakes, such as the system call that it
makes for it, is not in the first stage.

A virtual machine that sleeps is woken like such a thread, and then wakes its own program. Of its processor's thread, `run` ends when the
machine runs, and there is a fifth stage:

5. inside: until the thread that the machine wakes first has the machine's processor. The machine takes its interrupt, and wakes that
   thread: a program, or one of its kernel's own.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from vsprof.terms.schema import Number, Span

MOVERS = ("switch", "vhost")
"""The roles of threads that move frames."""
GUEST = "guest"
"""The role of the thread that is a machine's processor, and the mode of what happens in it."""
STAGES = ("kick", "interrupt", "schedule", "run", "inside")
AT_WORK = {"switch": ("poll", "work"), "vhost": ("poll", "work"), GUEST: ("guest",)}
"""What such a thread does when it has frames, or when the machine runs; see SPANS."""
NONE_SEEN = "no wake-up by another CPU's interrupt was written down as a whole"


def of(spans: Iterable[Span]) -> Iterable[Number]:
    """By role, how many wake-ups were seen as a whole, and the mean of each stage [s]; nothing where nobody was woken. Of a machine also
    nothing where none was seen as a whole: many are woken for its timer, and no thread in it."""
    ordered = sorted(spans, key=lambda one: one.time_ns)
    for role in (*MOVERS, GUEST):
        if not any(_wakes(one, role) for one in ordered):
            continue
        found = list(_followed(ordered, role))
        if role == GUEST and not found:
            continue
        # Without a role of their own: what has one is a counter, and divided by packets.
        yield Number(f"{role}_wake_ups_followed", len(found), "events")
        for place, stage in enumerate(STAGES if role == GUEST else STAGES[:-1]):
            mean = fmean(one[place] for one in found) / 1e9 if found else None
            yield Number(f"{role}_wake_up_{stage}", mean, "seconds", note="" if found else NONE_SEEN)


def _followed(spans: Sequence[Span], role: str) -> Iterator[list[int]]:
    """The stages of each wake-up [ns]."""
    woken = [one for one in spans if _wakes(one, role)]
    for thread in {one.thread for one in woken}:
        times = [one.time_ns for one in woken if one.thread == thread]
        for begin, end in pairwise([*times, spans[-1].time_ns + 1]):
            between = [one for one in spans if begin <= one.time_ns < end]
            if marks := _marks(begin, between, thread, role):
                yield [after - before for before, after in pairwise(marks)]


def _wakes(span: Span, role: str) -> bool:
    """Whether it is a wake-up by the host of a thread with this role. A machine also wakes threads of its own."""
    return span.kind == "wake" and span.role == role and span.mode != GUEST


def _marks(woken: int, spans: Sequence[Span], thread: int | None, role: str) -> list[int] | None:
    """The instants at which stages begin, and the end of the last; None where one of them is missing."""
    task = next((one for one in spans if one.kind == "task" and one.thread == thread and one.mode != GUEST), None)
    if task is None:
        return None
    before = [one for one in spans if one.time_ns <= task.time_ns]
    sent = next((one.time_ns for one in before if one.kind == "ipi" and one.value == task.cpu), None)
    served = next((one.time_ns for one in before if one.kind == "irq" and one.cpu == task.cpu and sent and one.time_ns >= sent), None)
    runs = [one for one in spans if one.cpu == task.cpu and task.time_ns <= one.time_ns < task.time_ns + task.duration_ns]
    marks = [sent, served, task.time_ns, next((one.time_ns for one in runs if one.kind in AT_WORK[role]), None)]
    if role == GUEST:
        marks.append(_first_thread(runs))
    found = [one for one in marks if one is not None]
    return [woken, *found] if len(found) == len(marks) else None


def _first_thread(spans: Sequence[Span]) -> int | None:
    """When the first thread that a machine wakes has the machine's processor."""
    woken = next((one for one in spans if one.kind == "wake" and one.mode == GUEST), None)
    tasks = (one.time_ns for one in spans if woken and one.kind == "task" and one.mode == GUEST and one.thread == woken.thread)
    return next(tasks, None)
