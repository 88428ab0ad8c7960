# SPDX-License-Identifier: GPL-2.0-or-later
"""What this host can count: each event is tried alone, by ``perf stat`` of a program that does nothing.

An event that perf does not know ends a whole ``perf stat``, all others with it, so each has one of its own. What perf printed
is read by ``read``, which knows ``-x ;`` and ``-j``.
"""

import contextlib
import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import messages
from vsprof.collectors.events.catalogue import Catalogue

SEPARATOR = ";"
EACH_S, ALL_S = 5.0, 60.0
"""How long one event may take, and all together."""
COUNTED, NOT_COUNTED, NOT_SUPPORTED, UNKNOWN, REFUSED, NOT_TRIED = (
    "counted",
    "not counted",
    "not supported",
    "unknown to perf",
    "refused",
    "not tried",
)
SURE = "task-clock"
"""Counted wherever perf works at all."""
CORE = ("cycles", "instructions")
"""Counted by every PMU."""
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_WORDS = (("<not supported>", NOT_SUPPORTED), ("<not counted>", NOT_COUNTED))
_DENIED = ("No permission", "Permission denied", "Operation not permitted", "Access to performance monitoring")
_UNKNOWN = ("event syntax error", "parser error", "Bad event", "Cannot find PMU", "invalid or unsupported event", "unknown term")


@dataclass(frozen=True, slots=True)
class Count:
    """One event, as perf stat printed it."""

    event: str
    value: float | None
    """None: not counted."""
    unit: str
    running_s: float | None
    state: str
    cpu: int | None = None
    percent: float = field(default=100.0, compare=False)
    """Of the time that it was wanted, how long it counted: below 100 it shared its counter, and perf scaled the value up."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A perf that has ended. ``status`` None: it was killed, for it took too long; ``text``: all that it printed."""

    status: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Probed:
    """Whether one event can be counted; ``why`` it can't is in words where the state alone doesn't say it."""

    state: str
    why: str = ""

    @property
    def counted(self) -> bool:
        return self.state == COUNTED


@dataclass(frozen=True)
class Survey:
    """What was found out about a host."""

    perf: str
    """``perf version 6.1.187``, or nothing."""
    findings: list[str]
    """What stands in the way, for all events at once."""
    events: Mapping[str, Probed]


Run = Callable[[list[str]], Ran]


# --- Reading perf stat ------------------------------------------------------------------------------------------


def read(text: str) -> list[Count]:
    """The counts in what ``perf stat -x ;`` or ``-j`` printed; lines of other things are passed over.

    A value is None where nothing was counted: perf's ``<not …>``, or a counter that never ran (perf says "100 % running" of it).
    Raises ``ValueError`` for a line that looks like a count and can't be read.
    """
    return [count for line in text.splitlines() if (count := _json_line(line) if line.startswith("{") else _csv_line(line))]


def _json_line(line: str) -> Count | None:
    try:
        row = json.loads(line)
        if "counter-value" not in row or "event" not in row:
            return None  # a metric of perf's own, of the line before
        cpu = row.get("cpu")
        return _count(
            str(row["event"]).removesuffix(" [software]"),
            str(row["counter-value"]),
            _word(row.get("unit")),
            row.get("event-runtime"),
            None if cpu is None else int(cpu),
            row.get("pcnt-running"),
        )
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"not perf stat -j: {line[:80]}") from error


def _csv_line(line: str) -> Count | None:
    """``[CPU;]value;unit;event;running time in ns;percent;…``; of several CPUs each has a line, and its column first."""
    columns = line.strip().split(SEPARATOR)
    cpu = None
    if columns[0].startswith("CPU") and columns[0][3:].isdecimal():
        cpu, columns = int(columns[0][3:]), columns[1:]
    if len(columns) < 5 or not columns[2]:
        return None
    value, unit, event, running, percent, *_ = columns
    try:
        return _count(event, value, _word(unit), running, cpu, percent or None)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"not perf stat -x: {line[:80]}") from error


def _count(event: str, value: str, unit: str, running: Any, cpu: int | None, percent: Any = None) -> Count:
    running_s = float(running) / 1e9
    share = 100.0 if percent is None else float(percent)
    state = next((state for word, state in _WORDS if value.strip() == word), COUNTED)
    number = None if state != COUNTED else float(value)
    if not (math.isfinite(running_s) and math.isfinite(share)) or (number is not None and not math.isfinite(number)):
        raise ValueError(value)
    if state == COUNTED and running_s <= 0:
        state, number = NOT_COUNTED, None
    return Count(event, number, unit, running_s, state, cpu, share)


def _word(unit: Any) -> str:
    return "" if unit in (None, "(null)") else str(unit)


def judge(ran: Ran, seconds: float = EACH_S, level: str | None = None) -> Probed:
    """What a perf that was to count one event says of it. ``level``: the host's perf_event_paranoid; None: this machine's."""
    if ran.status is None:
        return Probed(NOT_COUNTED, collectors_messages.perf_hangs(seconds))
    try:
        counts = read(ran.text)
    except ValueError as error:
        return Probed(NOT_COUNTED, str(error))
    if ran.status == 0 and counts:
        worst = next((count.state for count in counts if count.state != COUNTED), COUNTED)
        return Probed(worst)
    if any(word in ran.text for word in _DENIED):
        return Probed(REFUSED, messages.perf_refused(level or _paranoid()))
    if any(word in ran.text for word in _UNKNOWN):
        return Probed(UNKNOWN, _first_line(ran.text))
    return Probed(NOT_COUNTED, _first_line(ran.text) or f"perf ended with {ran.status}, and printed nothing")


# --- Trying -----------------------------------------------------------------------------------------------------


def run(command: list[str]) -> Ran:
    """Run perf on this machine. Raises ``OSError`` if there is none."""
    environment = {**os.environ, "LC_ALL": "C"}  # else a decimal point may be a comma
    # A session of its own, so that what perf has started can be ended with it.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment, start_new_session=True
    ) as perf:
        try:
            text, _ = perf.communicate(timeout=EACH_S)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(perf.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                return Ran(None, "")
            raise
    return Ran(perf.returncode, text)


def survey(catalogue: Catalogue, run: Run = run, now: Callable[[], float] = time.monotonic) -> Survey:
    """Try every event of the catalogue alone; where none of a kind can be counted, one finding says so, and they are not tried."""
    try:
        version = " ".join(run(["perf", "--version"]).text.split())
    except OSError:
        return Survey("", [collectors_messages.perf_missing()], _all(catalogue, NOT_TRIED, collectors_messages.perf_missing()))
    if why := _useless(run, version):
        return Survey(version, [why], _all(catalogue, NOT_TRIED, why))
    findings = [messages.own_programs_only(_paranoid())] if _restricted() else []
    hardware = [name for name, event in catalogue.events.items() if event.hardware]
    has_pmu = any(_try(run, event).state != NOT_SUPPORTED for event in CORE)
    if not has_pmu:
        findings.append(collectors_messages.no_pmu(len(hardware), catalogue.microarchitecture))
    tried = (name for name in catalogue.events if has_pmu or name not in hardware)
    events = dict(_tried(catalogue, tried, run, now))
    events.update({name: Probed(NOT_TRIED, messages.pmu_refused()) for name in hardware if not has_pmu})
    return Survey(version, findings, {name: events[name] for name in catalogue.events})


def _tried(catalogue: Catalogue, names: Iterable[str], run: Run, now: Callable[[], float]) -> Iterator[tuple[str, Probed]]:
    began = now()
    for name in names:
        late = now() - began > ALL_S
        event = catalogue.events[name]
        tried = None if late else _try(run, event.perf(pmu=catalogue.pmu), outside=bool(event.unit))
        yield name, tried or Probed(NOT_TRIED, messages.time_is_up(ALL_S))


def _try(run: Run, event: str, *, outside: bool = False) -> Probed:
    """``outside``: of the cores, where no program can be followed, so all is counted that happens meanwhile."""
    return judge(run(["perf", "stat", *(["-a"] if outside else []), "-x", SEPARATOR, "-e", event, "true"]))


def _useless(run: Run, version: str) -> str | None:
    """Why perf can count nothing here, not even what it always can; or None."""
    ran = run(["perf", "stat", "-x", SEPARATOR, "-e", SURE, "true"])
    found = judge(ran)
    if found.counted:
        return None
    if ran.status is None:
        return collectors_messages.perf_hangs(EACH_S)
    if found.state == REFUSED:
        return found.why
    if ran.status == 0:
        return collectors_messages.perf_too_old(version or "perf", _first_line(ran.text))
    return collectors_messages.perf_silent(_first_line(ran.text))


def _all(catalogue: Catalogue, state: str, why: str) -> dict[str, Probed]:
    return dict.fromkeys(catalogue.events, Probed(state, why))


def _paranoid() -> str:
    try:
        return PARANOID.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return "not known"


def _restricted() -> bool:
    level = _paranoid()
    return os.geteuid() != 0 and level.lstrip("-").isdecimal() and int(level) > 0


def _first_line(text: str) -> str:
    return next((" ".join(line.split())[:200] for line in text.splitlines() if line.strip()), "")
