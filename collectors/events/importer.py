# SPDX-License-Identifier: GPL-2.0-or-later
"""Vendors' lists of events as files of the user's own, so that perf_stat can be asked for any of them; `vsprof events import`.

Written is only what loads beside all that the catalogue has: what can't be programmed, what has a taken name and what lacks
another event is left out, each with its reason. forms.py reads the vendors' files.
"""

import contextlib
import fnmatch
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.collectors.events import catalogue, entries, forms, messages, outside, processor
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.events.entries import Event, Metric
from vsprof.collectors.events.forms import Vendors
from vsprof.terms import places

PLATFORMS = {
    **{"haswellx": "haswell-ep", "HSX": "haswell-ep", "skylakex": "skylake-sp", "SKX": "skylake-sp"},
    **{"cascadelakex": "cascadelake-sp", "CLX": "cascadelake-sp", "icelakex": "icelake-sp", "ICX": "icelake-sp"},
    **{"sapphirerapids": "sapphire-rapids", "SPR": "sapphire-rapids", "emeraldrapids": "emerald-rapids", "EMR": "emerald-rapids"},
    **{"graniterapids": "granite-rapids", "GNR": "granite-rapids"},
    **{"amdzen2": "zen2", "amdzen3": "zen3", "amdzen4": "zen4", "amdzen5": "zen5"},
    **{"neoverse-n1": "neoverse-n1", "neoverse-v1": "neoverse-v1"},
}
"""The folder of the catalogue by perf's and Intel's names for a processor, which stand in the paths of their files."""
_HYBRID = "cpu_"
"""``cpu_core``, ``cpu_atom``: processors for desktops with two kinds of cores."""
SHOWN = 3
"""How many names a line of reasons has."""
_FREE_RUNNING = "FREERUN"
"""As a value of ``CounterType``."""
_PRECISE = "2"
"""As a value of ``PEBS``: it must be precise."""
_SAY_SOMETHING = (*entries.CODES, "EventName", "MetricName", "MetricExpr", "Missing")
"""Keys that are kept even with a value such as 0, which in any other says nothing:"""
_EMPTY = ("", "0", "0x0", "0x00", "null", "na", None)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One entry that is not imported."""

    path: Path
    name: str
    why: str
    """In words that are the same for all of its kind."""
    detail: str = ""
    """What it is of this one."""

    @property
    def reason(self) -> str:
        return f"{self.why}: {self.detail}" if self.detail else self.why


@dataclass(frozen=True, slots=True)
class Written:
    """What came of one vendor's file."""

    path: Path
    form: str
    to: Path
    entries: list[Event | Metric]
    keys: list[Mapping[str, Any]]

    def names(self, kind: type[Event] | type[Metric]) -> list[str]:
        return [entry.name for entry in self.entries if isinstance(entry, kind)]


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to."""

    microarchitecture: str
    files: list[Written]
    left_out: list[LeftOut]

    def to_json(self) -> dict[str, Any]:
        files = [
            {"from": str(one.path), "form": one.form, "to": str(one.to), "events": one.names(Event), "metrics": one.names(Metric)}
            for one in self.files
        ]
        left_out = [{"from": str(one.path), "name": one.name, "why": one.reason} for one in self.left_out]
        return {"microarchitecture": self.microarchitecture, "files": files, "left_out": left_out}


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry that was read, and is in order by itself."""

    file: Vendors
    entry: Event | Metric
    keys: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.entry.name.casefold()

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(name.casefold() for name in self._formula_names)

    def uses_beside(self, there: set[str]) -> list[str]:
        """The names in its formula that are not ``there``, as it writes them."""
        return [name for name in self._formula_names if name.casefold() not in there]

    @property
    def _formula_names(self) -> tuple[str, ...]:
        formula = self.entry.formula if isinstance(self.entry, Metric) else None
        return formula.names if formula else ()


def bring_in(
    paths: Sequence[Path],
    microarchitecture: str | None = None,
    only: Sequence[str] = (),
    to: Path | None = None,
    force: bool = False,
) -> Imported:
    """Read vendors' files, and write what can be counted of them. Raises ``BadInput``, and has written nothing then.

    ``only``: patterns of names; what the metrics among them need comes with them. ``to``: a folder with folders of
    microarchitectures in it, in place of the user's own.
    """
    files = _read(paths)
    folder = catalogue.named(microarchitecture) if microarchitecture else _folder_of(files)
    targets = _targets(files, (to or places.own_events()) / folder, force)
    # Without what is to be replaced, for its names will be free.
    others = [path for path in catalogue.files_of(folder) if path.resolve() not in {one.resolve() for one in targets.values()}]
    known = catalogue.read(others, processor.Processor(processor.UNKNOWN), folder)
    found, left_out = _choose(files, known, only)
    if not found:
        raise messages.nothing_to_import(paths, summed_up(left_out))
    written = [_written(file, targets[file.path], [one for one in found if one.file is file]) for file in files]
    written = [one for one in written if one.entries]
    _write(written)
    return Imported(folder, written, left_out)


# --- Which files, and where to ----------------------------------------------------------------------------------------------


def _read(paths: Sequence[Path]) -> list[Vendors]:
    given = [path for one in paths for path in catalogue.given_files(one)]
    standards = forms.standards(given)
    # A table of codes that others refer to is not itself asked for.
    asked = [path for path in given if not forms.is_standard(path)] or given
    return [forms.read(path, standards) for path in asked]


def _folder_of(files: Sequence[Vendors]) -> str:
    """Whose events they are, as the files or their paths say it. A guess, such as this host's, would count something else unseen."""
    said = list(dict.fromkeys(folder for file in files if (folder := _said_by(file))))
    if len(said) > 1:
        raise messages.two_processors(said)
    if not said:
        here = processor.folder_of(processor.this_host(), catalogue.HERE)
        raise messages.no_processor((file.path for file in files), catalogue.names(), here)
    return said[0]


def _said_by(file: Vendors) -> str:
    if file.processor is not None:
        found = processor.folder_of(file.processor, catalogue.HERE)
        return "" if found == catalogue.GENERIC else found
    words = [word for part in reversed(file.path.absolute().parts) for word in re.split(r"[_.]", part)]
    return next((PLATFORMS[word] for word in words if word in PLATFORMS), "")


def _targets(files: Iterable[Vendors], folder: Path, force: bool) -> dict[Path, Path]:
    targets: dict[Path, Path] = {}
    for file in files:
        target = folder / f"{file.path.stem}.json"
        if other := next((path for path, one in targets.items() if one == target), None):
            raise messages.same_file_name(file.path, other)
        if target.exists() and not force:
            raise messages.file_exists(target)
        targets[file.path] = target
    return targets


# --- Which entries ----------------------------------------------------------------------------------------------------------


def _choose(files: Sequence[Vendors], known: Catalogue, only: Sequence[str]) -> tuple[list[_Found], list[LeftOut]]:
    """The entries that can be used beside the catalogue's, and the rest."""
    found: list[_Found] = []
    left_out: list[LeftOut] = []
    for file in files:
        for item in file.items:
            entry, *why = _checked(item)
            if entry is None:
                left_out.append(LeftOut(file.path, *map(_printable, (item.name, *why))))
            else:
                found.append(_Found(file, entry, _tidy(item.keys, entry, file.source)))
    if only:
        found, left_out = _only(found, left_out, only)
    found, taken = _with_names_of_their_own(found, known)
    found, lacking = _with_all_they_need(found, known)
    return found, [*left_out, *taken, *lacking]


def _checked(item: forms.Item) -> tuple[Event | Metric | None, str, str]:
    """The entry, or why there is none: in general, and in particular."""
    if item.why:
        return None, messages.not_readable_entry(), item.why
    if why := _unprogrammable(item.keys):
        return None, why, ""
    entry, wrong = entries.checked(dict(item.keys))
    if entry and entry.name.casefold() in catalogue.DATA:
        return None, messages.not_readable_entry(), messages.reserved_name(entry.name)
    return entry, messages.not_readable_entry(), "; ".join(wrong)


def _printable(text: str) -> str:
    """JSON can hold half of a character, which no terminal takes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _unprogrammable(keys: Mapping[str, Any]) -> str:
    """Why no collector can count it, or nothing."""
    checks = (
        (str(keys.get("Unit")).startswith(_HYBRID), messages.hybrid(str(keys.get("Unit")))),
        (str(keys.get("Deprecated", "0")) not in _EMPTY, messages.deprecated()),
        (str(keys.get("PEBS", "")) == _PRECISE, messages.precise_only()),
        (keys.get("CounterType") == _FREE_RUNNING, messages.free_running()),
        (outside.is_needed(str(keys.get("Filter"))), messages.needs_filter()),
    )
    if why := next((why for applies, why in checks if applies), ""):
        return why
    with contextlib.suppress(ValueError):  # what is no number is told by the check of all keys
        register, value = (entries.as_code(keys.get(key) or 0) for key in ("MSRIndex", "MSRValue"))
        if register and value and register not in entries.MSR_TERMS:
            return messages.strange_register(register)
    return ""


def _only(found: list[_Found], left_out: list[LeftOut], patterns: Sequence[str]) -> tuple[list[_Found], list[LeftOut]]:
    """Those that a pattern names, and what their formulas need."""
    names = {one.name for one in found} | {one.name.casefold() for one in left_out}
    for pattern in patterns:
        if not fnmatch.filter(names, pattern.casefold()):
            raise messages.nothing_matches(pattern, catalogue.near(pattern, names))
    wanted = {name for pattern in patterns for name in fnmatch.filter(names, pattern.casefold())}
    by_name = {one.name: one for one in found}
    todo = list(wanted)
    while todo:
        more = set(by_name[name].needs if (name := todo.pop()) in by_name else ()) - wanted
        wanted |= more
        todo += more
    return [one for one in found if one.name in wanted], [one for one in left_out if one.name.casefold() in wanted]


def _with_names_of_their_own(found: Sequence[_Found], known: Catalogue) -> tuple[list[_Found], list[LeftOut]]:
    """A name can stand for one thing only, or nothing loads at all."""
    taken: dict[str, tuple[Event | Metric, str]] = {}
    for entry in (*known.events.values(), *known.metrics.values()):
        taken[entry.name.casefold()] = (entry, f"the catalogue of {known.microarchitecture}")
    kept: list[_Found] = []
    left_out: list[LeftOut] = []
    for one in found:
        if one.name not in taken:
            taken[one.name] = (one.entry, str(one.file.path))
            kept.append(one)
            continue
        other, where = taken[one.name]
        why = messages.in_catalogue() if catalogue.same(one.entry, other) else messages.name_taken(where)
        left_out.append(LeftOut(one.file.path, one.entry.name, why))
    return kept, left_out


def _with_all_they_need(found: Sequence[_Found], known: Catalogue) -> tuple[list[_Found], list[LeftOut]]:
    """A metric is kept once all that its formula uses is there; so none is that leads back to itself."""
    # What is counted outside the cores is not counted in one window's groups with the rest.
    apart = {name.casefold() for name in (*known.events, *known.metrics) if any(known.events[event].unit for event in known.needs(name))}
    apart |= {one.name for one in found if isinstance(one.entry, Event) and one.entry.unit}
    there = {name.casefold() for name in (*known.events, *known.metrics, *catalogue.DATA)}
    there = (there | {one.name for one in found if isinstance(one.entry, Event)}) - apart
    waiting = [one for one in found if isinstance(one.entry, Metric)]
    while ready := [one for one in waiting if set(one.needs) <= there]:
        there |= {one.name for one in ready}
        waiting = [one for one in waiting if one.name not in there]
    lacking = [LeftOut(one.file.path, one.entry.name, *_lacks(one.uses_beside(there), apart)) for one in waiting]
    return [one for one in found if one.name in there or isinstance(one.entry, Event)], lacking


def _lacks(names: Sequence[str], apart: set[str]) -> tuple[str, str]:
    """Why a metric can't be had that uses these: in general, and in particular."""
    only_apart = {name.casefold() for name in names} <= apart
    return messages.of_events_outside() if only_apart else messages.lacks(), ", ".join(names)


def summed_up(left_out: Iterable[LeftOut]) -> list[str]:
    """One line for each kind of reason: how many, why, and some of their names."""
    kinds: dict[str, list[str]] = {}
    for one in left_out:
        kinds.setdefault(one.why, []).append(f"{one.name} ({one.detail})" if one.detail else one.name)
    return [f"{len(names)} {why}: {', '.join(names[:SHOWN])}{', …' if len(names) > SHOWN else ''}" for why, names in kinds.items()]


# --- Writing ----------------------------------------------------------------------------------------------------------------


def _tidy(keys: Mapping[str, Any], entry: Event | Metric, source: str) -> dict[str, Any]:
    """The keys that the catalogue has a use for."""
    known = [info.alias for info in type(entry).model_fields.values() if info.alias]
    kept = {key: keys[key] for key in known if key in keys and (key in _SAY_SOMETHING or keys[key] not in _EMPTY)}
    return {**kept, "Source": kept.get("Source") or source}


def _written(file: Vendors, to: Path, found: Sequence[_Found]) -> Written:
    return Written(file.path, file.form, to, [one.entry for one in found], [one.keys for one in found])


def _write(files: Iterable[Written]) -> None:
    """All or none: no file takes its place before each was written beside it."""
    beside: list[tuple[Path, Path]] = []
    try:
        for one in files:
            one.to.parent.mkdir(parents=True, exist_ok=True)
            new = one.to.with_name(f".{one.to.name}.new")
            beside.append((new, one.to))
            new.write_text(json.dumps(one.keys, indent=2) + "\n", encoding="utf-8")
        for new, to in beside:
            os.replace(new, to)
    except OSError as error:
        raise messages.not_writable(beside[-1][1] if beside else Path(), error.strerror or str(error)) from error
    finally:
        for new, _ in beside:
            new.unlink(missing_ok=True)
