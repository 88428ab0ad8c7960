# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof stacks`: profiles of a result as files that other programs read, and as flame graphs.

Folded stacks are Brendan Gregg's: one line a stack, its frames from the outermost in joined by `;`, a blank, a whole number; two numbers
for a difference. speedscope's is the JSON of its file-format-schema, with one profile a case and event.
"""

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
class Difference:
    """Two profiles of one event. unit: of what both are numbers, where both windows' packets (…) were counted; else empty, and the second
    is scaled to the first's total."""

    parts: tuple[Profile, Profile]
    stacks: tuple[dict[str, float], dict[str, float]]
    unit: str

    @property
    def names(self) -> tuple[str, str]:
        one, other = self.parts
        if one.result is other.result:
            return one.label, other.label
        return f"{one.label} of {one.result.path.name}", f"{other.label} of {other.result.path.name}"

    @property
    def title(self) -> str:
        first = self.parts[0]
        per = f" per {self.unit}" if self.unit else ""
        return f"{' → '.join(self.names)}: {first.event}{per}, {style.traffic_name(first.traffic, first.load)}"


def chosen(result: Result, switch: str | None = None, event: str | None = None, traffic: str | None = None) -> list[Profile]:
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
    return profiles.usual(found)


def single(parts: Sequence[Profile]) -> Profile:
    """Of the first event, the only case; BadInput where there are several."""
    first = parts[0]
    same = [part for part in parts if part.event == first.event and part.collector == first.collector]
    if len(same) > 1:
        raise messages.several_profiles([part.label for part in same])
    return first


def difference(one: Profile, others: Sequence[Profile]) -> Difference:
    """Between `one` and that of `others` that is of the same event, collector and traffic, and of a like case. BadInput without such."""
    alike = [other for other in others if _key(other) == _key(one)]
    if one.result is not (alike or [one])[0].result:
        alike = [other for other in alike if other.case == one.case] or alike
    if not alike or alike[0] == one:
        raise messages.nothing_against(one.name)
    other = single(alike)
    stacks = (one.folded(), other.folded())
    unit, per = one.per, (one.data, other.data)
    if None in per:
        unit, per = "", (1.0, sum(stacks[1].values()) / sum(stacks[0].values()))
    scaled = tuple({stack: value / by for stack, value in part.items()} for part, by in zip(stacks, per, strict=True))
    return Difference((one, other), scaled, unit)


def _key(one: Profile) -> tuple[str, ...]:
    return one.event, one.collector, one.source, one.traffic, one.load, str(one.calls)


Chosen = Sequence[Profile] | Difference


def parts_of(found: Chosen) -> Sequence[Profile]:
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


def _sampled(part: Profile, frames: dict[str, int]) -> dict[str, Any]:
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
    return flamegraph.draw(part.folded(), part.name, part.unit)


FORMATS: Mapping[str, Callable[[Chosen], str]] = {"folded": fold, "speedscope": speedscope, "svg": flame}


def to_json(one: Profile) -> dict[str, Any]:
    return {
        "case_id": one.case, "label": one.label, "traffic": one.traffic, "load": one.load, "collector": one.collector,
        "source": one.source, "event": one.event, "unit": one.unit, "by": BY[one.calls], "total": one.total,
        "data": one.data, "data_unit": one.per if one.data else None,
    }  # fmt: skip


def show(parts: Sequence[Profile], console: Console | None = None) -> None:
    """What there is."""
    console = console or Console(width=max(Console().width, compare_text.WIDTH))
    table = Table("case", "traffic", "event", "counted by", "by", "total", "per unit of data")
    for one in parts:
        per = f"{units.significant(one.total / one.data)} per {one.per}" if one.data else "–"
        traffic = style.traffic_name(one.traffic, one.load)
        table.add_row(one.label, traffic, one.event, f"{one.collector} ({one.source})", BY[one.calls], f"{one.total:,.0f}", per)
    console.print(table)
