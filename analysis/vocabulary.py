# SPDX-License-Identifier: GPL-2.0-or-later
"""The words, places and colours of switches and traffics, and what numbers are: as the manifests say of the results that were loaded.

Names of plug-ins mean the same in every result, so what one manifest says holds for all.
"""

import fnmatch
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from vsprof.analysis import read
from vsprof.terms.vocabulary import CollectorWords, Headline, NumberWords, SwitchWords, TrafficWords, Vocabulary

LOADS = {"saturation": "saturation", "ndr": "no-drop rate", "pdr": "partial-drop rate", "equal": "equal rate", "paced": "", "none": ""}
"""Their names in reports, in the order in which traffics are shown, before their own ranks."""
_READ = read(__file__)
_BEFORE = Vocabulary.from_json(_READ)
"""Of results whose manifests have no vocabulary."""
_switches: dict[str, SwitchWords] = dict(_BEFORE.switches)
_traffics: dict[str, TrafficWords] = dict(_BEFORE.traffics)
_collectors: dict[str, CollectorWords] = {}
_ENDING = re.compile(r"(_per_(kilo_instructions|empty_poll|[a-z]+))?(_(user|kernel|guest))?(_with_polling)?$")
"""Of metrics that analysis makes of a collector's numbers."""


def learn(manifest: Mapping[str, Any]) -> None:
    """Take in what a result's manifest says."""
    if (given := manifest.get("vocabulary")) is not None:
        said = Vocabulary.from_json(_completed(given))
        _switches.update(said.switches)
        _traffics.update(said.traffics)
        _collectors.update(said.collectors)
        number.cache_clear()


def _completed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an earlier vsprof's manifest says, with what its plug-ins did not say yet."""
    kinds = {kind: {name: {**_READ[kind].get(name, {}), **one} for name, one in given[kind].items()} for kind in _READ}
    for name, one in kinds["traffics"].items():
        known = {(line["metric"], line["words"]): line for line in _READ["traffics"].get(name, {}).get("headlines", ())}
        one["headlines"] = [{**known.get((line["metric"], line["words"]), {}), **line} for line in one["headlines"]]
    return {**given, **kinds}


def switch(name: str) -> SwitchWords:
    return _switches.get(name) or SwitchWords(name)


def is_switch(name: str) -> bool:
    return name in _switches


def colour_slot(name: str, slots: int) -> int:
    """Its slot in a palette of so many colours; a switch that asks for none gets the first that no other has asked for."""
    if (asked := switch(name).colour) is not None:
        return asked % slots
    taken = {one.colour for one in _switches.values()}
    free = [slot for slot in range(slots) if slot not in taken] or list(range(slots))
    homeless = sorted(one for one, words in {name: switch(name), **_switches}.items() if words.colour is None)
    return free[homeless.index(name) % len(free)]


def traffic(name: str) -> TrafficWords:
    return _traffics.get(name) or TrafficWords(name)


def collector(name: str) -> str:
    """Its name in reports."""
    return _collectors.get(name, CollectorWords()).words or traffic(name).words


def collectors() -> tuple[str, ...]:
    """Those that said anything of their numbers."""
    return tuple(_collectors)


@functools.cache
def number(name: str, of: tuple[str, ...]) -> NumberWords | None:
    """What a number, or a metric that is made of it (`x_per_packet`), is by the words of its collector, one of ``of``; None if they don't
    say so. Two collectors may call different things by one name: a PMU's cycles are counted, the model's estimated."""
    known = [_collectors[one].numbers for one in of if one in _collectors]
    counted = _ENDING.sub("", name)
    # What is named outright, or without an ending, comes before a pattern: `cycles_per_packet` is `cycles`, and no `cycles_*`.
    # The event catalogue's `x_per_packet` is `x_per_megabit` where a traffic is divided by that.
    exactly = [(one, str.__eq__) for one in (name, counted, f"{counted}_per_packet")]
    for one, matches in (*exactly, (counted, fnmatch.fnmatchcase), (name, fnmatch.fnmatchcase)):
        for numbers in known:
            if (found := next((words for pattern, words in numbers.items() if matches(one, pattern)), None)) is not None:
                return found
    return None


def better(traffic_name: str, metric: str, of: tuple[str, ...]) -> str:
    """Whether `more` or `less` of a metric is better, by the traffic or by the collectors ``of``; empty where nobody says so."""
    said = [line.better for line in traffic(traffic_name).headlines if line.metric == metric]
    known = number(metric, of)
    return said[0] if said else known.better if known else ""


def drawn_by(figure: str) -> list[str]:
    """The numbers, or patterns of names, that ask for this figure."""
    asked = {name: words.figure for one in _collectors.values() for name, words in one.numbers.items() if words.figure}
    return [name for name, wanted in asked.items() if wanted == figure]


def judged_by(name: str) -> Headline | None:
    """A traffic's first headline; None where it has none."""
    return next(iter(traffic(name).headlines), None)


def per_data() -> dict[str, str]:
    """The word for it in metrics, by traffic."""
    return {name: words.data.per for name, words in _traffics.items() if words.data}


def place(pair: tuple[str, str]) -> tuple[int, int, str]:
    """What to sort (traffic, load) pairs by."""
    name, load = pair
    return [*LOADS, load].index(load), traffic(name).rank, name


def of_kind(kind: str) -> list[str]:
    """The traffics that say they are of it."""
    return [name for name, words in _traffics.items() if words.kind == kind]


def called(name: str) -> str:
    """As sentences call a traffic."""
    return traffic(name).called or traffic(name).words


def things(name: str) -> str:
    """What a traffic is judged by the number of, in a sentence."""
    said, data = judged_by(name), traffic(name).data
    return said.things if said and said.things else f"{data.per}s of {called(name)}" if data else ""


def at_saturation(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of (traffic, load) pairs those in which the switch is the limit, or near it; first those whose packets can be counted one by one."""
    found = sorted({pair for pair in pairs if pair[1] == "saturation" and traffic(pair[0]).saturates}, key=place)
    return sorted(found, key=lambda pair: traffic(pair[0]).kind == "stream")


def headlines(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str, str, str]]:
    """(traffic, load, metric, words) of what a reader asks for first, of these (traffic, load) pairs."""
    return [
        (name, load, one.metric, one.words) for name, load in pairs for one in traffic(name).headlines if not one.loads or load in one.loads
    ]
