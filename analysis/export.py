# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof stacks`: profiles of a result as files that other programs read, and as flame graphs.

Folded stacks are Brendan Gregg's: one line a stack, its frames from the outermost in joined by `;`, a blank, a whole number; two numbers
for a difference. speedscope's is the JSON of its file-format-schema, with one profile a case and event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from rich.console import Console
from rich.table import Table

from vsprof.analysis import compare, compare_text, flamegraph, messages, profiles, style
from vsprof.analysis.load import Result
from vsprof.analysis.profiles import Profile
from vsprof.terms import units

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
PER = 1_000_000
"""Units of data that a difference's whole numbers are of: with one alone, rare misses would be zero."""
BY = {True: "call stack", False: "function"}


@dataclass(frozen=True)
class Part:
    """A profile of a result."""

    result: Result
    profile: Profile

    @property
    def name(self) -> str:
        case = f"{self.result.cases.loc[self.profile.case, 'label']}, {style.traffic_name(self.profile.traffic, self.profile.load)}"
        return f"{case}: {self.profile.event}"

    def folded(self) -> dict[str, float]:
        return profiles.folded(self.result, self.profile)


@dataclass(frozen=True)
class Difference:
    """Two profiles of one event. unit: of what both are numbers, where both windows' packets (…) were counted; else empty, and the second
    is scaled to the first's total."""

    parts: tuple[Part, Part]
    stacks: tuple[dict[str, float], dict[str, float]]
    unit: str

    @property
    def names(self) -> tuple[str, str]:
        one, other = self.parts
        labels = [str(part.result.cases.loc[part.profile.case, "label"]) for part in self.parts]
        if one.result is not other.result:
            labels = [f"{label} of {part.result.path.name}" for label, part in zip(labels, self.parts, strict=True)]
        return labels[0], labels[1]

    @property
    def title(self) -> str:
        first = self.parts[0].profile
        per = f" per {self.unit}" if self.unit else ""
        return f"{' → '.join(self.names)}: {first.event}{per}, {style.traffic_name(first.traffic, first.load)}"


def chosen(result: Result, switch: str | None = None, event: str | None = None, traffic: str | None = None) -> list[Part]:
    """The profiles that the words name, all those of one traffic; all events where none is named. BadInput where there are none."""
    found = profiles.stored(result)
    if not found:
        raise messages.no_profile(result.path.name)
    if switch is not None:
        cases = compare.named(result, switch)
        found = [one for one in found if one.case in cases]
        if not found:
            raise messages.no_profile(f"{switch} in {result.path.name}")
    for word, known in ((traffic, "traffic"), (event, "event")):
        if word is not None:
            there = dict.fromkeys(getattr(one, known) for one in found)
            found = [one for one in found if getattr(one, known) == word]
            if not found:
                raise messages.not_profiled(known, word, there)
    return [Part(result, one) for one in profiles.usual(found)]


def single(parts: Sequence[Part]) -> Part:
    """Of the first event, the only case; BadInput where there are several."""
    first = parts[0]
    same = [part for part in parts if part.profile.event == first.profile.event and part.profile.collector == first.profile.collector]
    if len(same) > 1:
        raise messages.several_profiles([str(part.result.cases.loc[part.profile.case, "label"]) for part in same])
    return first


def difference(one: Part, others: Sequence[Part]) -> Difference:
    """Between `one` and that of `others` that is of the same event, collector and traffic, and of a like case. BadInput without such."""
    alike = [other for other in others if _key(other) == _key(one)]
    if one.result is not (alike or [one])[0].result:
        alike = [other for other in alike if other.profile.case == one.profile.case] or alike
    if not alike or alike[0] == one:
        raise messages.nothing_against(one.name)
    other = single(alike)
    stacks = (one.folded(), other.folded())
    per = [profiles.data(part.result, part.profile) for part in (one, other)]
    if None not in per:
        unit, (first, second) = profiles.unit(one.profile), per
    else:
        unit, (first, second) = "", (1.0, sum(stacks[1].values()) / sum(stacks[0].values()))
    scaled = tuple({stack: value / by for stack, value in part.items()} for part, by in zip(stacks, (first, second), strict=True))
    return Difference((one, other), scaled, unit)


def _key(part: Part) -> tuple[str, ...]:
    profile = part.profile
    return profile.event, profile.collector, profile.source, profile.traffic, profile.load, str(profile.calls)


Chosen = Sequence[Part] | Difference


def parts_of(found: Chosen) -> Sequence[Part]:
    return found.parts if isinstance(found, Difference) else found


def fold(found: Chosen) -> str:
    """Folded stacks: a line a stack, with its count; of a difference with both, of PER units of data where such were counted."""
    if not isinstance(found, Difference):
        return _lines({stack: (round(value),) for stack, value in single(found).folded().items()})
    first, second = found.stacks
    scale = PER if found.unit else 1
    return _lines({stack: tuple(round(scale * one.get(stack, 0.0)) for one in (first, second)) for stack in {**first, **second}})


def _lines(counts: Mapping[str, tuple[int, ...]]) -> str:
    # A name with a line break in it would make two lines of one.
    return "".join(f"{' '.join(stack.split())} {' '.join(map(str, found))}\n" for stack, found in sorted(counts.items()) if any(found))


def speedscope(found: Chosen) -> str:
    """speedscope's JSON, with all profiles as they were counted."""
    frames: dict[str, int] = {}
    parts = parts_of(found)
    made = [_sampled(part, frames) for part in parts]
    document = {
        "$schema": SCHEMA,
        "exporter": f"vsprof {metadata.version('vsprof')}",
        "name": parts[0].result.path.name,
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(text) for text in frames]},
        "profiles": made,
    }
    return json.dumps(document) + "\n"


def _sampled(part: Part, frames: dict[str, int]) -> dict[str, Any]:
    stacks = sorted(part.folded().items())
    samples = [[frames.setdefault(frame, len(frames)) for frame in stack.split(";")] for stack, _ in stacks]
    weights = [value for _, value in stacks]
    return {
        "type": "sampled", "name": part.name, "unit": "none", "startValue": 0, "endValue": sum(weights), "samples": samples,
        "weights": weights,
    }  # fmt: skip


def _frame(text: str) -> dict[str, str]:
    """speedscope colours by file."""
    function, _, where = text.rpartition(" (")
    return {"name": flamegraph.label(text), "file": where.removesuffix(")")} if function else {"name": text}


def flame(found: Chosen) -> str:
    """An SVG to zoom into."""
    if isinstance(found, Difference):
        return flamegraph.differ(*found.stacks, found.title, found.names, found.unit)
    part = single(found)
    return flamegraph.draw(part.folded(), part.name, part.profile.unit)


FORMATS: Mapping[str, Callable[[Chosen], str]] = {"folded": fold, "speedscope": speedscope, "svg": flame}


def to_json(part: Part) -> dict[str, Any]:
    profile = part.profile
    label = str(part.result.cases.loc[profile.case, "label"])
    data = profiles.data(part.result, profile)
    return {
        "case_id": profile.case, "label": label, "traffic": profile.traffic, "load": profile.load, "collector": profile.collector,
        "source": profile.source, "event": profile.event, "unit": profile.unit, "by": BY[profile.calls], "total": profile.total,
        "data": data, "data_unit": profiles.unit(profile) if data else None,
    }  # fmt: skip


def show(parts: Sequence[Part], console: Console | None = None) -> None:
    """What there is."""
    console = console or Console(width=max(Console().width, compare_text.WIDTH))
    table = Table("case", "traffic", "event", "counted by", "by", "total", "per unit of data")
    for part in parts:
        one, told = part.profile, to_json(part)
        per = f"{units.significant(one.total / told['data'])} per {told['data_unit']}" if told["data"] else "–"
        traffic = style.traffic_name(one.traffic, one.load)
        table.add_row(told["label"], traffic, one.event, f"{one.collector} ({one.source})", told["by"], f"{one.total:,.0f}", per)
    console.print(table)
