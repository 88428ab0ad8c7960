# SPDX-License-Identifier: GPL-2.0-or-later
"""What is to be counted: by the option ``events``, or by default what the model counts, too."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import catalogue, entries
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.perf_stat import groups, messages

DEFAULT = (
    "cpi", "l1d_misses", "l2_misses", "llc_misses", "l1i_misses", "branch_misses", "dtlb_walks", "dtlb_misses", "itlb_walks",
    "itlb_misses", "walk_cycles",
)  # fmt: skip
"""What is wanted first comes first: with too few windows the rest is not counted."""
ANCHORS = ("cycles", "instructions")
MOST_COUNTERS = 64


@dataclass(frozen=True)
class Wanted:
    """What is to be counted on one processor."""

    names: tuple[str, ...]
    """Of events and metrics."""
    named: bool
    """They were asked for by name: one that can't be had is an error."""


def choose(known: Catalogue, events: Sequence[str] | None) -> Wanted:
    """What ``events`` asks for of this processor's catalogue. Raises ``BadInput`` for what it does not have."""
    if events is None:
        return Wanted(tuple(name for name in DEFAULT if not known.missing(name)), named=False)
    for name in events:
        if why := known.missing(name):
            raise messages.not_here(name, why)
    return Wanted(tuple(known.find(name).name for name in events), named=True)


def anchors(known: Catalogue) -> tuple[str, ...]:
    """The events of cycles and instructions."""
    return tuple(event for word in ANCHORS if not known.missing(word) for event in known.needs(word)[:1])


def check(given: Mapping[str, Any]) -> None:
    """Raise ``BadInput`` on options that no testbed could do with. What a processor has is known only once it is seen."""
    for option, test, what in (
        ("events", _is_names, "a list of names of metrics or events"),
        ("event_files", _is_names, "a list of paths"),
        ("modes", _is_modes, f"a list of {', '.join(groups.SPLIT)}, or all"),
        ("counters", _is_count, f"a whole number from 1 to {MOST_COUNTERS}"),
        ("cpus", _is_cpus, "a list of CPUs such as 0-3,8"),
    ):
        if given.get(option) is not None and not test(given[option]):
            raise messages.bad_option(option, what, given[option])
    own = _own_names(paths(given.get("event_files")))
    if events := given.get("events"):
        known = _all_names() | own
        for name in events:
            if name.casefold() not in known:
                raise messages.unknown_event(name, catalogue.near(name, known))


def paths(event_files: Iterable[str] | None) -> list[Path]:
    return [Path(name).expanduser() for name in event_files or ()]


def _own_names(given: Iterable[Path]) -> set[str]:
    read = [entries.read(path) for one in given for path in catalogue.given_files(one)]
    if reasons := [reason for _, wrong in read for reason in wrong]:
        raise collectors_messages.bad_catalogue(reasons)
    return {entry.name.casefold() for found, _ in read for entry in found}


def _all_names() -> set[str]:
    """Of every processor that the catalogue knows."""
    known = (catalogue.load(folder) for folder in catalogue.names())
    return {name.casefold() for one in known for name in (*one.events, *one.metrics)}


def _is_names(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(name, str) and name for name in given)


def _is_modes(given: Any) -> bool:
    known = isinstance(given, list) and bool(given) and all(isinstance(mode, str) and mode in groups.MODIFIERS for mode in given)
    return known and len(set(given)) == len(given) and ("all" not in given or len(given) == 1)


def _is_count(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 1 <= given <= MOST_COUNTERS


def _is_cpus(given: Any) -> bool:
    text = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
    return bool(re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", text, re.ASCII))
