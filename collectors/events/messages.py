# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of events: the value seen, and the next move. One function a message."""

from collections.abc import Iterable
from pathlib import Path

from vsprof.terms.errors import BadInput

# --- The event catalogue ---------------------------------------------------------------------------------------------

PAGE = "docs/adding-a-pmu-event.md"


def no_events_file(path: Path) -> BadInput:
    return BadInput(f"no events in {path}: give the path of a JSON file, or of a folder that has some; {PAGE} shows one")


def unknown_microarchitecture(name: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"no events for a processor {name!r}: use one of {', '.join(known)}")


def unknown_metric(name: str, near: list[str]) -> BadInput:
    return BadInput(f"no metric or event {name!r}{_meant(near)}: `make events` lists them")


def at(path: Path | str, entry: str, reason: str) -> str:
    return f"{path}: {entry}: {reason}" if entry else f"{path}: {reason}"


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
    return f"the name {name} stands for the amount of traffic in a window: choose another"


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


def perf_refused(level: str) -> str:
    remedy = "run as root, or `sudo sysctl kernel.perf_event_paranoid=0`"
    return f"the kernel refuses perf to this user (perf_event_paranoid is {level}): {remedy}"


def own_programs_only(level: str) -> str:
    return (
        f"perf_event_paranoid is {level}, and this user is not root: perf counts this user's own programs alone, in user mode alone"
        " where the level is above 1; a switch is counted per CPU, which needs root or `sudo sysctl kernel.perf_event_paranoid=0`"
    )


def pmu_refused() -> str:
    return "no PMU here"


def time_is_up(seconds: float) -> str:
    return f"not tried: probing had taken {seconds:.0f} s already"


def missing_on(name: str, word: str, why: str) -> str:
    return f"{name} has no {word}: {why}"


def no_uncore(microarchitecture: str) -> str:
    return f"the catalogue has no event outside the cores of {microarchitecture}"


def by_core(name: str, events: Iterable[str]) -> BadInput:
    return BadInput(f"uncore: {name} needs {', '.join(events)}, which is counted by core: name it under perf_stat")


# --- Importing vendors' lists ----------------------------------------------------------------------------------------

IMPORT_PAGE = f"{PAGE}#import-events"


def no_known_form(path: Path, seen: str) -> BadInput:
    return BadInput(
        f"{path}: found {seen}, which is none of the known forms of event lists (perf, intel/perfmon, Arm's telemetry specification,"
        f" ARM-software/data): {IMPORT_PAGE} has an example of each"
    )


def no_processor(paths: Iterable[Path], known: Iterable[str], here: str) -> BadInput:
    return BadInput(
        f"{_listed(paths)}: neither the file nor its path says which processor's events these are: add --microarchitecture with one of"
        f" {', '.join(known)} (this host's: {here})"
    )


def two_processors(found: Iterable[str]) -> BadInput:
    return BadInput(
        f"these files are of several processors ({', '.join(found)}): import them one after another, or add --microarchitecture"
    )


def file_exists(path: Path) -> BadInput:
    return BadInput(f"{path} is there already: add --force to replace it, or --to with another folder")


def not_writable(path: Path, why: str) -> BadInput:
    return BadInput(f"{path} can't be written ({why}): give another folder with --to")


def same_file_name(one: Path, other: Path) -> BadInput:
    return BadInput(f"{one} and {other} would both become {one.stem}.json: import them one after another, with --to or renamed")


def nothing_matches(pattern: str, near: list[str]) -> BadInput:
    return BadInput(f"--only {pattern}: no event or metric of these files has such a name{_meant(near)}")


def nothing_to_import(paths: Iterable[Path], reasons: Iterable[str]) -> BadInput:
    because = "; ".join(reasons)
    return BadInput(f"{_listed(paths)}: nothing can be imported: {because or 'there is no event and no metric'}")


def not_readable_entry() -> str:
    return "can't be read"


def free_running() -> str:
    return "have a counter that nothing starts or stops, which perf's own list names otherwise: import that one"


def needs_filter() -> str:
    return "count only what matches a filter (an address, an opcode), for which perf has no word"


def of_events_outside() -> str:
    return "have a formula of events outside the cores, which perf_stat does not count: write a metric of such events alone, or name them"


def hybrid(unit: str) -> str:
    return f"belong to one kind of core of a processor that has two ({unit}), which the catalogue does not have"


def precise_only() -> str:
    return "count only while the PMU samples precisely (PEBS), and perf_stat does not sample"


def strange_register(number: int) -> str:
    return f"need register {number:#x} of the processor, for which perf has no word"


def deprecated() -> str:
    return "are deprecated by the vendor, who has the same under another name"


def no_standard(name: str, table: str) -> str:
    return f"the file has no code for ArchStdEvent {name}: give perf's {table} as another FILE"


def in_catalogue() -> str:
    return "are in the catalogue already, with the same code"


def name_taken(first: str) -> str:
    return f"have a name that is taken in {first}"


def lacks() -> str:
    return "have a formula that uses what is not among the events (give the file that has it, too)"


def _listed(paths: Iterable[Path]) -> str:
    return ", ".join(map(str, paths))


# --- What a key of an entry must be ----------------------------------------------------------------------------------


def need_number() -> str:
    return "need a number such as 0x45"


def need_register() -> str:
    return "need a number from 0 to 2^64 - 1"


def need_name() -> str:
    return "need letters, digits and _ . : -, a letter first"


def need_perf_name() -> str:
    return "need one name that perf knows, without blanks, commas and braces"


def need_filter() -> str:
    return "need perf's words, such as config1=0x4033"
