# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the event catalogue: files that can't be used, formulas that give no value, and what this host can't count."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from terms import profile_messages
from terms.errors import BadInput

PAGE = "docs/adding-a-pmu-event.md"


def bad_catalogue(reasons: Iterable[str]) -> BadInput:
    return BadInput("\n".join(reasons))


def no_events_file(path: Path) -> BadInput:
    return BadInput(f"no events in {path}: give the path of a JSON file, or of a folder that has some; {PAGE} shows one")


def unknown_microarchitecture(name: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"no events for a processor {name!r}: use one of {', '.join(known)}")


def unknown_metric(name: str, near: list[str]) -> BadInput:
    return BadInput(f"no metric or event {name!r}{_meant(near)}: `make events` lists them")


# --- Reasons, each for one file, entry and key ------------------------------------------------------------------


def at(path: Path | str, entry: str, reason: str) -> str:
    return f"{path}: {entry}: {reason}" if entry else f"{path}: {reason}"


not_readable = profile_messages.not_readable


def not_json(why: str) -> str:
    return f"is not JSON: {why}"


def no_list(seen: str) -> str:
    return f"is no list of events: found {seen}, need [{{…}}, …], or the same under Events or Metrics; {PAGE} shows one"


def no_entry(seen: str) -> str:
    return f"need keys and values, found {seen}"


def key_twice(key: str) -> str:
    return f"the key {key!r} is given twice"


def no_name(keys: Iterable[str]) -> str:
    return f"has neither EventName nor MetricName (found {', '.join(keys) or 'no key'})"


def wrong_value(key: str, what: str, seen: object) -> str:
    return f"{key}: {what} (found {seen!r})"


def no_code() -> str:
    return "has no EventCode: give it, or ConfigCode, or as PerfEvent a name that perf knows"


def two_codes(keys: Iterable[str]) -> str:
    return f"gives {' and '.join(keys)}: give one of them"


def no_expression() -> str:
    return "MetricExpr: missing; give it, or under Missing the reason why this processor can't have the metric"


def both_expression_and_missing() -> str:
    return "gives MetricExpr and Missing: give one of them"


def reserved_name(name: str) -> str:
    return f"the name {name} stands for what a window carried: choose another"


def name_twice(name: str, first: str) -> str:
    return f"the name {name} is given in {first} too: choose another"


def bad_expression(why: str) -> str:
    return f"MetricExpr: {why}"


def unknown_name(name: str, near: list[str]) -> str:
    return f"MetricExpr: no event or metric {name}{_meant(near)}"


def missing_word(name: str, by: str) -> str:
    return f"has no event or metric {name}, which {by} needs: add it, or an entry with Missing that says why it can't be had"


def goes_round(names: list[str]) -> str:
    return f"MetricExpr: {' -> '.join(names)} leads back to itself"


def bad_map_line(number: int, why: str) -> str:
    return f"line {number}: {why}"


def bad_map_columns(seen: int) -> str:
    return f"need regular expression, version, folder, type; found {seen} columns"


def bad_map_pattern(pattern: str, why: str) -> str:
    return f"{pattern!r} is no regular expression: {why}"


def no_map_folder(name: str) -> str:
    return f"there is no folder {name}"


def _meant(near: list[str]) -> str:
    return f"; did you mean {' or '.join(near)}?" if near else ""


# --- Formulas ---------------------------------------------------------------------------------------------------


def unreadable_formula(text: str, place: int) -> str:
    return f"can't read {_short(text[place:])!r} at character {place + 1} of {_short(text)!r}"


def literal_not_known(name: str) -> str:
    return f"{name} is a literal of perf that vsprof doesn't know: write the formula without it"


def pmu_not_known(text: str) -> str:
    return f"{_short(text)!r} names an event by its PMU (@…@): give that event an entry of its own, and use its name"


def not_a_formula(text: str) -> str:
    return f"{_short(text)!r} is no formula: use names, numbers, + - * / ( ), comparisons, `a if b else c`, min, max and d_ratio"


def formula_too_long(seen: int, most: int) -> str:
    return f"the formula has {seen} characters, need at most {most}: split it into several metrics"


def formula_too_deep(most: int) -> str:
    return f"the formula is nested more than {most} deep: split it into several metrics"


def wrong_arguments(function: str, need: str, seen: int) -> str:
    return f"{function} takes {need} arguments, found {seen}"


def not_counted(name: str) -> str:
    return f"{name} was not counted"


def division_by_zero(text: str) -> str:
    return f"division by zero: {_short(text)} is 0"


def not_finite() -> str:
    return "the result is too large for a number"


# --- What this host can count -----------------------------------------------------------------------------------


def unknown_processor(cpu_id: str) -> str:
    return (
        f"the catalogue has no events for this processor ({cpu_id}): perf's generic names stand in; what they count is vendor-defined,"
        f" so never compare them between vendors. To add its events, see {PAGE}"
    )


def perf_missing() -> str:
    return "perf not found, so nothing can be counted: install the package linux-perf (Ubuntu: linux-tools-generic)"


def perf_silent(words: str) -> str:
    return f"perf stat counted nothing, not even task-clock: {words or 'it printed nothing'}"


def perf_too_old(version: str, seen: str) -> str:
    return f"{version} prints counts in a form that vsprof can't read ({_short(seen)}): it is too old, 6.1 is known to work"


def perf_hangs(seconds: float) -> str:
    return f"perf stat of the program `true` had not ended after {seconds:g} s: nothing more was tried"


def perf_refused(level: str) -> str:
    remedy = "run as root, or `sudo sysctl kernel.perf_event_paranoid=0`"
    return f"the kernel refuses perf to this user (perf_event_paranoid is {level}): {remedy}"


def own_programs_only(level: str) -> str:
    return (
        f"perf_event_paranoid is {level}, and this user is not root: perf counts this user's own programs alone, in user mode alone"
        " where the level is above 1; a switch is counted per CPU, which needs root or `sudo sysctl kernel.perf_event_paranoid=0`"
    )


def no_pmu(events: int, name: str) -> str:
    return (
        f"this machine has no PMU that perf can use (cycles and instructions are <not supported>): none of the {events} hardware events of"
        f" {name} can be counted here. A virtual machine needs one from its host; the lab's processor model needs none"
    )


def pmu_refused() -> str:
    return "no PMU here"


def time_is_up(seconds: float) -> str:
    return f"not tried: probing had taken {seconds:.0f} s already"


def other_processor() -> str:
    return "not probed: this is not the processor of this machine"


def needs_uncountable(names: Iterable[str]) -> str:
    return f"can't be counted here: {', '.join(names)}"


def missing_on(name: str, word: str, why: str) -> str:
    return f"{name} has no {word}: {why}"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"
