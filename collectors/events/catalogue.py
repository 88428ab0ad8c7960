# SPDX-License-Identifier: GPL-2.0-or-later
"""All that is known of one processor's events and metrics: the shipped files, and the user's own merged over them.

``load()`` reads for this host's processor, and checks everything: what is wrong with a file is said with its name, the entry
and the key. ``Catalogue.evaluate`` makes a metric out of counts.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.events import entries, messages, processor
from vsprof.collectors.events.entries import Entry, Event, Metric
from vsprof.collectors.events.processor import Processor
from vsprof.terms import expression, places
from vsprof.terms.expression import Formula, Value
from vsprof.terms.vocabulary import NumberWords

HERE = Path(__file__).resolve().parent
COMMON, SOFTWARE, GENERIC = "common", "software", "generic"
SHARED = (COMMON, SOFTWARE)
"""The folders that every processor has beside its own."""
DATA = ("packets", "seconds")
"""What a formula may use beside events and metrics: packets received in the window, and its length in seconds."""


@dataclass(frozen=True)
class Catalogue:
    """One processor's events and metrics. Names are found whether written large or small, as in perf."""

    processor: Processor
    microarchitecture: str
    """The folder: ``zen4``; ``generic`` for a processor that is not known."""
    events: Mapping[str, Event]
    metrics: Mapping[str, Metric]
    pmu: str = "cpu"
    _formulas: Mapping[str, Formula] = field(default_factory=dict)
    """By casefolded name of the metric."""

    def says(self) -> dict[str, NumberWords]:
        """What its events and metrics are, by name."""
        entries = [*self.events.values(), *self.metrics.values()]
        return {one.name: NumberWords(one.description, one.better, one.figure) for one in entries if one.description or one.figure}

    @property
    def vendor_defined(self) -> bool:
        """True if perf's generic names stand in: what they count differs by vendor, so that no two vendors may be compared."""
        return self.microarchitecture == GENERIC

    @cached_property
    def _spelling(self) -> dict[str, str]:
        return {name.casefold(): name for name in (*self.events, *self.metrics, *DATA)}

    def find(self, name: str) -> Event | Metric:
        """An event or metric by its name. Raises ``BadInput`` that has the names most like it."""
        spelt = self._spelling.get(name.casefold())
        if spelt is None or spelt in DATA:
            raise messages.unknown_metric(name, near(name, self._spelling))
        return self.events.get(spelt) or self.metrics[spelt]

    def needs(self, name: str) -> tuple[str, ...]:
        """The events that must be counted for a metric (or event), those of other metrics in it among them. Raises ``BadInput``."""
        return tuple(dict.fromkeys(leaf for leaf in self._leaves(self.find(name).name) if leaf in self.events))

    def needs_data(self, name: str) -> tuple[str, ...]:
        """Which of DATA a metric uses. Raises ``BadInput``."""
        return tuple(dict.fromkeys(leaf for leaf in self._leaves(self.find(name).name) if leaf in DATA))

    def missing(self, name: str) -> str | None:
        """Why this processor can't have a metric, or None: its own reason, or that of a metric in its formula. Raises ``BadInput``."""
        for leaf in self._leaves(self.find(name).name):
            metric = self.metrics.get(leaf)
            if metric is not None and metric.missing:
                return messages.missing_on(self.microarchitecture, leaf, metric.missing)
        return None

    def evaluate(self, name: str, counts: Mapping[str, float | None], notes: Mapping[str, str] | None = None) -> Value:
        """A metric, in its unit, out of ``counts`` by name of event, and of DATA. Raises ``BadInput`` for an unknown name.

        Give it sums over windows: a ratio is sum / sum, not a mean of ratios. An event that is None or not in ``counts`` gives no
        value, with the reason from ``notes`` where it has one; so does a division by zero.
        """
        found = self.find(name)
        lower = {key.casefold(): value for key, value in counts.items()}
        why = {key.casefold(): note for key, note in (notes or {}).items()}
        for key, metric in self.metrics.items():
            if metric.missing:
                why[key.casefold()] = messages.missing_on(self.microarchitecture, key, metric.missing)
        return expression.compute(found.name, self._formulas, lower, why)

    def _leaves(self, name: str) -> Iterator[str]:
        """What a name comes down to, in order: events, DATA, and metrics that are missing."""
        return (self._spelling[leaf] for leaf in expression.leaves(name, self._formulas))


def names() -> list[str]:
    """The microarchitectures that the catalogue knows, ``generic`` among them."""
    return sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name not in SHARED and any(path.glob("*.json")))


def load(
    microarchitecture: str | None = None,
    files: Iterable[Path] = (),
    shipped: Path = HERE,
    seen: Processor | None = None,
    pmu: str | None = None,
) -> Catalogue:
    """The catalogue for this host's processor, for one that was ``seen`` elsewhere, or for a ``microarchitecture`` by name.

    ``files`` and the user's own folder are merged over the shipped ones. ``pmu``: the kernel's name of the PMU of the cores, where
    that is not this host's. Raises ``BadInput``: one line for each file, entry and key that is wrong.
    """
    if microarchitecture is None:
        seen = seen or processor.this_host()
        folder = processor.folder_of(seen, shipped) or GENERIC
    else:
        seen, folder = Processor(processor.UNKNOWN), named(microarchitecture)
    paths = [*files_of(folder, shipped), *(path for given in files for path in given_files(given))]
    return read(paths, seen, folder, pmu or processor.core_pmu())


def named(microarchitecture: str) -> str:
    """The name itself. Raises ``BadInput`` if the catalogue does not have it."""
    if microarchitecture not in names():
        raise messages.unknown_microarchitecture(microarchitecture, names())
    return microarchitecture


def files_of(folder: str, shipped: Path = HERE) -> list[Path]:
    """All files of a microarchitecture: the shipped ones, and the user's own."""
    return [path for place in (shipped, places.own_events(), *places.own("events")) for path in _folders(place, folder)]


def read(paths: Iterable[Path], seen: Processor, folder: str, pmu: str | None = None) -> Catalogue:
    """The catalogue of the files ``paths``. Raises ``BadInput``: one line for each file, entry and key that is wrong."""
    origin: dict[str, Path] = {}
    known: dict[str, Event | Metric] = {}
    reasons: list[str] = []
    for path in paths:
        found, wrong = entries.read(path)
        reasons += wrong
        for entry in found:
            key = entry.name.casefold()
            if key in DATA:
                reasons.append(messages.at(path, entry.name, messages.reserved_name(entry.name)))
            elif key in known and not (origin[key] != path and same(entry, known[key])):
                reasons.append(messages.at(path, entry.name, messages.name_twice(entry.name, str(origin[key]))))
            elif key in known:
                known[key] = _filled(known[key], entry)
            else:
                known[key], origin[key] = entry, path
    if not reasons:  # names can be judged only when all entries are there
        reasons = list(_name_reasons(known, origin, folder))
    if reasons:
        raise collectors_messages.bad_catalogue(reasons)
    events = {entry.name: entry for entry in known.values() if isinstance(entry, Event)}
    metrics = {entry.name: entry for entry in known.values() if isinstance(entry, Metric)}
    formulas = {name.casefold(): Formula(read, metric.factor) for name, metric in metrics.items() if (read := metric.formula) is not None}
    return Catalogue(seen, folder, events, metrics, pmu or processor.core_pmu(), formulas)


def same(one: Event | Metric, other: Event | Metric) -> bool:
    """True if two files give the same event: so a vendor's whole file can lie beside the shipped one, which has some of its events."""
    return isinstance(one, Event) and isinstance(other, Event) and one.perf().casefold() == other.perf().casefold()


def _filled(one: Event | Metric, other: Event | Metric) -> Event | Metric:
    """With the other's text, direction and figure where it has none: so the user's own file can add them to a shipped event."""
    return one.model_copy(update={name: getattr(other, name) for name in Entry.model_fields if not getattr(one, name)})


def _folders(root: Path, folder: str) -> list[Path]:
    return [path for part in (folder, *SHARED) for path in sorted((root / part).glob("*.json"))]


def given_files(path: Path) -> list[Path]:
    """The files of a path that the user gave. Raises ``BadInput`` if there are none."""
    found = sorted(path.glob("*.json")) if path.is_dir() else [path] if path.exists() else []
    if not found:
        raise messages.no_events_file(path)
    return found


def _name_reasons(known: Mapping[str, Event | Metric], origin: Mapping[str, Path], folder: str) -> Iterator[str]:
    uses = {key: formula.names for key, entry in known.items() if isinstance(entry, Metric) and (formula := entry.formula)}
    told: set[str] = set()
    for key, used in uses.items():
        for name in used:
            word = name.casefold()
            if word in known or word in DATA:
                continue
            if origin[key].parent.name == COMMON:  # not this formula's fault: the processor's folder lacks a word
                if word not in told:
                    told.add(word)
                    yield messages.at(folder, "", messages.missing_word(name, known[key].name))
            else:
                yield messages.at(origin[key], known[key].name, messages.unknown_name(name, near(name, known)))
    yield from _circle_reasons(known, origin, uses)


def _circle_reasons(known: Mapping[str, Event | Metric], origin: Mapping[str, Path], uses: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    done: set[str] = set()
    for start in uses:
        trail: list[tuple[str, Iterator[str]]] = [(start, iter(uses[start]))] if start not in done else []
        while trail:
            word = next((name.casefold() for name in trail[-1][1]), None)
            path = [key for key, _ in trail]
            if word is None:
                done.add(trail.pop()[0])
            elif word in path:
                names_round = [known[key].name for key in (*path[path.index(word) :], word)]
                yield messages.at(origin[word], known[word].name, messages.goes_round(names_round))
            elif word in uses and word not in done:
                trail.append((word, iter(uses[word])))


def near(name: str, known: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(name.casefold(), list(known), n=2, cutoff=0.75)
