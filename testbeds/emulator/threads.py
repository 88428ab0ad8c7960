# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's threads: how long they waited for a CPU of this machine, and what they do when a lab does not answer."""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from vsprof.terms import errors
from vsprof.testbeds.qmp import Monitor

LOOK_S = 1.0
ANSWER_S = 5
"""A main loop that hangs answers nothing, which is an answer, too."""
WHERE = re.compile(r"\b(?:RIP|HLT)=\w+")
"""Of QEMU's ``info registers``: where the CPU was when it last left translated code, and whether it is halted."""


def waited(process: int) -> dict[int, float]:
    """By thread, how long it has waited for a CPU so far [s]."""
    return {thread: wait for thread, (_, wait) in _scheduled(process)}


def doing(process: int, monitor: Monitor) -> str:
    """A phrase for each emulated CPU, and one for the main loop, about the second that this takes."""
    names = {process: "main loop", **_cpus(monitor)}
    before = dict(_scheduled(process))
    time.sleep(LOOK_S)
    told = []
    for thread, (ran, wait) in _scheduled(process):
        if thread in names and thread in before:
            told.append(
                f"{names[thread]} ran for {ran - before[thread][0]:.2f} s and waited for a CPU for {wait - before[thread][1]:.2f} s"
            )
    return f"in {LOOK_S:g} s QEMU's {'; '.join(told)}" if told else "QEMU has no threads left"


def _scheduled(process: int) -> Iterator[tuple[int, tuple[float, float]]]:
    """Each thread's time on a CPU, and its time of waiting for one [s]; nothing where the kernel does not say."""
    for file in Path(f"/proc/{process}/task").glob("*/schedstat"):
        # On a CPU, waiting for one, time slices (Linux, Documentation/scheduler/sched-stats.rst). A thread may end meanwhile.
        with contextlib.suppress(OSError, IndexError, ValueError):
            ran, wait = file.read_text().split()[:2]
            yield int(file.parent.name), (int(ran) / 1e9, int(wait) / 1e9)


def _cpus(monitor: Monitor) -> dict[int, str]:
    """The threads of the emulated CPUs, with where each was last seen; none where the main loop does not answer."""
    named = {}
    with contextlib.suppress(errors.RunFailed):
        for cpu in monitor.execute("query-cpus-fast", seconds=ANSWER_S):
            number = cpu["cpu-index"]
            seen = monitor.execute("human-monitor-command", seconds=ANSWER_S, **{"command-line": f"info registers {number}"})
            named[cpu["thread-id"]] = " ".join([f"CPU {number}", *WHERE.findall(seen)])
    return named
