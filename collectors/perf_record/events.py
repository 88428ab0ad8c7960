# SPDX-License-Identifier: GPL-2.0-or-later
"""The option ``events``: what is sampled in place of cycles, by the names of the event catalogue.

A name is an event's, or a metric's that is a sum of events, such as ``l1d_misses``. Each is sampled as precisely as the machine can: with
PEBS on Intel's processors, with IBS where AMD's kernel offers it for the event, both by perf's modifier ``p``.
"""

import functools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vsprof.collectors import messages
from vsprof.collectors.events import probe
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.events.entries import Event
from vsprof.collectors.perf_stat import messages as stat_messages
from vsprof.collectors.perf_stat import perf
from vsprof.collectors.perf_stat.perf import STAT, Seen
from vsprof.testbeds.base import Testbed

BOTH = "GH"
"""perf's modifier for the host, and its guests."""
PRECISE = ("pp", "p", "")
"""perf's modifiers for how far an event's place may be off, the most precise first; an event may know none (perf-list(1))."""
TRY = "perf record -q -N -a -o /dev/null -e {} -- true"


@dataclass(frozen=True)
class Sampled:
    """An event as perf is asked for it."""

    printed: str
    """What perf script calls it, without modifiers."""
    perf: str
    hardware: bool

    @property
    def precise(self) -> bool:
        modifier = self.perf.rpartition("/" if "/" in self.perf else ":")[2]
        return self.hardware and modifier.endswith("p")


@dataclass(frozen=True)
class Chosen:
    """events: by the name asked for, what is sampled for it. left_out: by name, why nothing is."""

    events: Mapping[str, tuple[Sampled, ...]]
    left_out: Mapping[str, str]

    @property
    def sampled(self) -> list[Sampled]:
        """Each event once."""
        return list(dict.fromkeys(one for found in self.events.values() for one in found))

    def printed(self) -> dict[str, list[str]]:
        """By perf's word for an event the names that it stands for."""
        names: dict[str, list[str]] = {}
        for name, found in self.events.items():
            for one in found:
                names.setdefault(one.printed, []).append(name)
        return names


def names_of(given: object) -> list[str] | None:
    """The names in an option's value: a list, or words with commas between; None where it is neither."""
    words = given.replace(",", " ").split() if isinstance(given, str) else given
    return words if isinstance(words, list) and words and all(isinstance(one, str) and one for one in words) else None


def wanted(known: Catalogue, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The catalogue's events that each name stands for. Raises ``BadInput`` where it stands for nothing that can be sampled."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        if why := known.missing(name):
            raise messages.not_of_processor(name, why)
        needs = known.needs(name)
        if not needs or known.needs_data(name) or not _is_sum(known, name, needs):
            raise messages.no_sum(name, needs)
        if outside := [one for one in needs if known.events[one].unit]:
            raise messages.outside_the_cores(name, outside)
        found[known.find(name).name] = needs
    kinds = {known.events[event].hardware for needs in found.values() for event in needs}
    if len(kinds) > 1:
        raise messages.two_sources(found)
    return found


def _is_sum(known: Catalogue, name: str, needs: Sequence[str]) -> bool:
    """Whether each event counts once: then so does each sample."""
    values = [known.evaluate(name, {event: float(event == one) for event in needs}).value for one in needs]
    return known.evaluate(name, dict.fromkeys(needs, 0.0)).value == 0.0 and set(values) == {1.0}


def choose(host: Testbed, seen: Seen, known: Catalogue, names: Sequence[str]) -> Chosen:
    """Try each event by itself, first whether it counts, then how precisely it can be sampled. Raises ``BadInput``."""
    found = wanted(known, names)
    events = {event: known.events[event] for needs in found.values() for event in needs}
    commands = {}
    for name, event in events.items():
        commands[name, "count"] = f"{STAT} -a -e {shlex.quote(_perf(event, known.pmu))} true"
        commands |= {(name, how): TRY.format(shlex.quote(_perf(event, known.pmu, how))) for how in _precise(event)}
    ran = perf.ask(host, commands)
    sampled, why = {}, {}
    for name, event in events.items():
        counted = probe.judge(ran[name, "count"], perf.EACH_S, seen.level)
        how = next((how for how in _precise(event) if ran[name, how].status == 0), None)
        if not counted.counted:
            why[name] = counted.why or stat_messages.not_counted(counted.state)
        elif how is None:
            why[name] = messages.not_sampled(" ".join(ran[name, ""].text.split()))
        else:
            sampled[name] = Sampled(_printed(event), _perf(event, known.pmu, how), event.hardware)
    lacking = {name: next((why[event] for event in needs if event in why), "") for name, needs in found.items()}
    kept = {name: tuple(sampled[event] for event in needs) for name, needs in found.items() if not lacking[name]}
    return Chosen(kept, {name: reason for name, reason in lacking.items() if reason})


def _precise(event: Event) -> tuple[str, ...]:
    return PRECISE if event.hardware else ("",)


def _perf(event: Event, pmu: str, precise: str = "") -> str:
    return event.perf(BOTH + precise if event.hardware else "", pmu)


def _printed(event: Event) -> str:
    """A raw event is called by the name that it is given, any other as it was asked for."""
    return event.perf_event or event.name


@functools.lru_cache(maxsize=8)
def _candidates(text: str) -> tuple[str, ...]:
    parts = text.split(":")
    return tuple(":".join(parts[:end]) for end in range(len(parts), 0, -1))


def names_in(printed: Mapping[str, Any], text: str) -> list[str]:
    """The names that perf script's word for an event stands for: it has the modifiers behind it, or not."""
    return next((list(printed[one]) for one in _candidates(text) if one in printed), [])
