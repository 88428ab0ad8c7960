# SPDX-License-Identifier: GPL-2.0-or-later
"""perf stat on this machine: whether it counts, what it is told, and what it printed."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

ALL_THE_TIME = 99.0
"""Per cent. Below it, an event had to share its counter with others, and its count is a projection."""


@dataclass(frozen=True)
class Count:
    """An event, and the seconds in which it was counted."""

    events: float
    seconds: float


def command(events: Sequence[str], *, cpu: int | None = None) -> list[str]:
    """A command line, to be followed by a command: count ``events`` in user mode, of that command or of all that runs on ``cpu``.

    By CPU is meant for threads that run already: counting attached to a thread was seen to slow it down.
    """
    where = [] if cpu is None else ["-C", str(cpu)]
    return ["perf", "stat", "-x", ";", "--log-fd", "1", *where, "-e", ",".join(f"{event}:u" for event in events), "--"]


def read(printed: str, events: Sequence[str]) -> Count | None:
    """The sum of ``events``, from what ``command`` printed; None if one of them was not counted all the time.

    A line is ``value;unit;event;nanoseconds;per cent;…`` (perf-stat(1), CSV format). One that was never on a counter says
    100 per cent, too: its nanoseconds tell.
    """
    lines = {fields[2].removesuffix(":u").lower(): fields for line in printed.splitlines() if len(fields := line.split(";")) >= 5}
    counts = []
    for event in events:
        value, _, _, nanoseconds, share, *_ = lines.get(event.lower(), ("", "", "", "0", "0"))
        if not value.replace(".", "", 1).isdigit() or int(nanoseconds) == 0 or float(share) < ALL_THE_TIME:
            return None
        counts.append(Count(float(value), int(nanoseconds) / 1e9))
    return Count(sum(one.events for one in counts), counts[0].seconds) if counts else None


def missing() -> str:
    """Why this machine can't say what a processor counts, or nothing."""
    if shutil.which("perf") is None:
        return "there is no perf here"
    tried = subprocess.run([*command(["instructions"]), "true"], capture_output=True, text=True, check=False, timeout=60)
    count = tried.stdout.strip().partition(";")[0]
    # Even `true` executes tens of thousands of instructions: a handful would be a dead counter.
    if tried.returncode == 0 and count.isdigit() and int(count) > 1000:
        return ""
    return f"there is no working PMU here (perf said {count or 'nothing'})"
