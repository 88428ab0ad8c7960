# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of terms: the value seen, and the next move. One `Message` or function each."""

import difflib
from collections.abc import Iterable, Sequence

from vsprof.terms.errors import BadInput, Message

# --- General ---------------------------------------------------------------------------------------------------------

too_few_cpus = Message(
    "the testbed has {cpus} CPU, need 2: one moves frames, one does all else; use 2 or 4 (`vsprof run --cpus 4`)", BadInput
)
too_few_cpus_for = Message(
    "{movers} CPUs that move frames and {endpoints} endpoints need 1 + {movers} + {endpoints} CPUs, a core each on one "
    "NUMA node; there are {cpus}: use fewer `switch_cpus` or `pairs`, leave out --cpus, or use the lab (TESTBED=lab), which has up to 16",
    BadInput,
)
unknown_unit = Message(
    "{collector} has {names} in {unit!r}, which is no unit that vsprof knows: shown as written, neither per packet nor per second. Known "
    "are {known}. A count of anything else is in `events`, a quotient has a / (`bytes/flow`), and anything else is a `number`."
)
broken_plugin = Message("your plug-in {path} can't be imported: {error.__class__.__name__}: {error}; fix it, or take it away", BadInput)
no_lock_file = Message("{path} is no ordinary file, so it can't be the lock that it should be: remove it", BadInput)


def unknown_value(kind: str, value: object, known: Iterable[object]) -> BadInput:
    names = list(map(str, known))
    near = difflib.get_close_matches(str(value), names, n=2, cutoff=0.75)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return BadInput(f"unknown {kind} {str(value)!r}: use one of {', '.join(names)}{meant}")


def in_use(what: str, by: Sequence[str]) -> BadInput:
    return BadInput(f"{what} is in use by {', '.join(by) or 'another process'}: wait for its end, or stop it")


# --- The event catalogue ---------------------------------------------------------------------------------------------

NOT_FINITE = "the result is too large for a number"
literal_not_known = Message("{name} is a literal of perf that vsprof doesn't know: write the formula without it")
formula_too_long = Message("the formula has {seen} characters, need at most {most}: split it into several metrics")
formula_too_deep = Message("the formula is nested more than {most} deep: split it into several metrics")
wrong_arguments = Message("{function} takes {need} arguments, found {seen}")
not_counted = Message("{name} was not counted")


def unreadable_formula(text: str, place: int) -> str:
    return f"can't read {_short(text[place:])!r} at character {place + 1} of {_short(text)!r}"


def pmu_not_known(text: str) -> str:
    return f"{_short(text)!r} names an event by its PMU (@…@): give that event an entry of its own, and use its name"


def not_a_formula(text: str) -> str:
    return f"{_short(text)!r} is no formula: use names, numbers, + - * / ( ), comparisons, `a if b else c`, min, max and d_ratio"


def division_by_zero(text: str) -> str:
    return f"division by zero: {_short(text)} is 0"


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"
