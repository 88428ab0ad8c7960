# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of uarch_model: the value seen, and the next move. One function a message."""

from collections.abc import Iterable
from pathlib import Path

from vsprof.terms.errors import BadInput, RunFailed

# --- General ---------------------------------------------------------------------------------------------------------


def counts_in_modelled_time() -> str:
    return "the model counts in modelled time alone, and here it is the emulator's: leave out --clock emulated"


def bad_quantum(seen: object, least: float, most: float) -> BadInput:
    return BadInput(f"quantum_us: {seen!r}: give a number of microseconds from {least:g} to {most:g}")


def bad_seed(seen: object, most: int) -> BadInput:
    return BadInput(f"seed: {seen!r}: give a whole number from 0 to {most}")


def bad_changes(seen: object) -> BadInput:
    return BadInput(f"uarch_model: changes is {seen!r}: give values by their names, such as {{l2.latency: 20, llc.sets: x2}}")


def plugin_gone(why: str) -> RunFailed:
    return RunFailed(f"the processor model (a plug-in of the lab's emulator) does not answer: {why}")


def clock_stands_still(seconds: float, cpus: Iterable[str]) -> RunFailed:
    return RunFailed(f"modelled time has not moved for {seconds:.0f} s: {'; '.join(cpus)}")


def plugin_refused(command: str, why: str) -> RunFailed:
    return RunFailed(f"the processor model refused {command!r}: {why}")


def not_built(words: str) -> BadInput:
    return BadInput(
        f"the processor model, which is compiled on this machine, was not: {words.strip()[-800:]}. It takes make, gcc and libc6-dev"
    )


def bad_timeline(seen: object, most: float) -> BadInput:
    return BadInput(f"timeline_ms: {seen!r}: give the milliseconds of each window to write down, up to {most:g}; 0 for none")


def timeline_full(events: int) -> str:
    return f"after {events} events its list was full"


# --- CPU profiles ----------------------------------------------------------------------------------------------------


def unknown_profile(name: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"no CPU profile {name!r}: use one of {', '.join(known)}, or the path of a YAML file")


def unknown_base(path: Path, name: str, known: Iterable[str]) -> BadInput:
    return BadInput(f"{path}: base: no CPU profile {name!r}: use one of {', '.join(known)}, or the path of a YAML file from here")


def base_cycle(path: Path, names: list[str]) -> BadInput:
    return BadInput(f"{path}: base: {' -> '.join(names)} leads back to itself")


def bad_profile(path: Path, reasons: list[str]) -> BadInput:
    return BadInput("\n".join(f"{path}: {reason}" for reason in reasons))


def bad_parts(profile: str, reasons: list[str]) -> BadInput:
    return BadInput("\n".join(f"CPU profile {profile}: {reason}" for reason in reasons))


def not_yaml(why: str) -> str:
    return f"is not YAML: {why}"


def no_mapping(seen: str) -> str:
    return f"is no CPU profile: found {seen}, need keys and values; docs/adding-a-cpu-profile.md shows one"


def missing_key(key: str) -> str:
    return f"{key}: missing"


def unknown_key(key: str, value: str, near: list[str]) -> str:
    return f"{key}: no such key (found {value}){'; did you mean ' + ' or '.join(near) + '?' if near else ''}"


def wrong_value(key: str, what: str, value: str) -> str:
    return f"{key}: {what} (found {value})"


def need_source(key: str, value: str) -> str:
    return f"{key}: need {{value: …, source: …}} (found {value})"


def need_keys(key: str, value: str) -> str:
    return f"{key}: need keys and values (found {value})"


def no_source(key: str) -> str:
    return f"{key}: has no source: name one of `sources:`, or `assumed` and say `why`"


def unknown_source(key: str, source: str, known: Iterable[str]) -> str:
    return f"{key}: no source {source!r}: use one of {', '.join(known)}, or add it to `sources:`"


def no_why(key: str, value: str) -> str:
    return f"{key}: {value} is assumed: say `why`"


def not_fitted(key: str, value: str, fitted: Iterable[str]) -> str:
    return f"{key}: {value} can't be `fitted`: only {', '.join(fitted)} are"


def reserved_source(name: str) -> str:
    return f"sources.{name}: this name is taken: it stands for a value that has no reference"


def source_changed(name: str, base: str) -> str:
    return f"sources.{name}: stands for another reference in the base {base}: give yours another name"


def unknown_counter(name: str) -> str:
    return f"events.{name}: no such counter: collectors/uarch_model/counters.h lists them"


def no_switch(part: str, known: Iterable[str]) -> str:
    return f"{part!r} can't be switched off: use one of {', '.join(known)}"
