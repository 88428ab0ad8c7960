# SPDX-License-Identifier: GPL-2.0-or-later
"""Differential profiles: in which functions the instructions and misses of a packet changed from one case to the next, where both differ
in one thing alone: the switch and its access, or the Debian release of the switch's programs or of the kernel.

A library's file has another version in each release, and the functions of a stripped program have places instead of names: so between two
releases the version is left out of the first, and what has no name is one sum a file. A compiler may cut a function in parts, or make a
variant of it, in one version and not in another: they count as the function.
"""

import html
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vsprof.analysis import flamegraph, functions, messages, model, profiles, stats, style, vocabulary
from vsprof.analysis.comparison import Pair
from vsprof.analysis.describe import Table, number
from vsprof.analysis.load import Result

RELEASE, KERNEL, SWITCH = "release", "kernel", "arm"
"""What the cases of a pair differ in, by the words of `Result.differences`."""
VERSION = re.compile(r"(\.so)(\.\d+)+$")
PLACED = re.compile(r"\+0x[0-9a-f]+$")
PARTS = re.compile(r"(\.(isra|part|constprop|cold|llvm)(\.\d+)?)+$")
COUNTERS = ("instructions", "l1d_misses", "llc_misses", "branch_misses")
DRAWN = ("instructions", "l1d_misses", "l1i_misses", "l2_misses", "llc_misses", "dtlb_walks", "itlb_walks", "branch_misses")
"""Those of which there is a picture."""
SHOWN = 6
"""Functions of each counter: those that changed most."""
LEAST = 0.01
"""Of all that was counted: what changed by less is left out."""
SIGNIFICANT = {True: "", False: "not significant", None: "no interval"}
CAPTION = "A box is as wide as the mean of both. Blue fell, red grew."
FLAT = "No calls are shown: roles are at the bottom, then what has the functions, then the functions. "
CALLS = "A box stands on its caller; roles and threads are at the bottom. "


@dataclass(frozen=True)
class Picture:
    """What changed of one counter. counter: in words."""

    counter: str
    svg: str
    caption: str


@dataclass(frozen=True)
class Graph:
    """The pictures of one pair, in a notebook: the first to see, the others to unfold."""

    pictures: list[Picture]

    def _repr_html_(self) -> str:
        first, *others = self.pictures
        folded = [f"<details><summary>The same by {one.counter}</summary>{_figure(one)}</details>" for one in others]
        return "".join([_figure(first), *folded])


def _figure(one: Picture) -> str:
    return f"<figure>{one.svg}<figcaption>{html.escape(one.caption)}</figcaption></figure>"


def pairs(result: Result, what: str = RELEASE) -> list[Pair]:
    """Each case with the next one in the experiment's order that differs in this alone."""
    found: dict[str, Pair] = {}
    for base, other in itertools.combinations(result.cases.index, 2):
        if result.differences(base, other) == {what}:
            found.setdefault(base, Pair(result, base, other))
    return list(found.values())


def changes(result: Result, base: str, other: str, counter: str, *, traffic: str, load: str) -> pd.DataFrame:
    """One row a role, file and function: `before` and `after` per unit of data (medians over repetitions), `change`, and whether it is
    `significant`: their 95 % intervals do not meet; None where there is none. Those that changed most come first."""
    sides = [_by_function(result, case, counter, traffic, load) for case in (base, other)]
    none = stats.Estimate(0.0, 0.0, 0.0, 0)
    rows = []
    for key in dict.fromkeys(itertools.chain(*sides)):
        before, after = (side.get(key, none) for side in sides)
        known = None not in (before.low, after.low)
        apart = (before.high < after.low or after.high < before.low) if known else None
        values = {"before": before.median, "after": after.median, "change": after.median - before.median, "significant": apart}
        rows.append({**dict(zip(functions.KEY, key, strict=True)), **values})
    table = pd.DataFrame(rows, columns=[*functions.KEY, "before", "after", "change", "significant"])
    return table.sort_values("change", key=abs, ascending=False, kind="stable", ignore_index=True)


def table(result: Result, what: str = RELEASE) -> Table | str:
    """For each pair and counter the functions that changed most, below the sum over all."""
    where = functions.profiled(result)
    found = [row for pair in pairs(result, what) for row in _rows(pair, where)] if where else []
    if not found:
        return f"*{messages.not_shown('what changed by function', functions.missing(result) or [messages.no_neighbours(what)])}*"
    return Table(pd.DataFrame(found))


def graphs(result: Result, what: str = RELEASE) -> list[Graph]:
    """The pictures of each pair, by each counter that both have; none where there are no profiles.

    Where the experiment changes one thing at a time, of unchanged cases alone: all of a hundred cases' would be 50 MB.
    """
    where, found = functions.profiled(result), []
    wanted = (where.get("traffic"), where.get("load"), "model")
    stored = {(one.case, one.event): one for one in profiles.stored(result) if (one.traffic, one.load, one.source) == wanted}
    for pair in pairs(result, what):
        if result.changed[pair.base]:
            continue
        both = {counter: [stored.get((case, counter)) for case in (pair.base, pair.other)] for counter in DRAWN}
        found.append(Graph([_picture(pair, *two) for two in both.values() if None not in two]))
    return [graph for graph in found if graph.pictures]


def _rows(pair: Pair, where: Mapping[str, str]) -> list[dict[str, str]]:
    rows = []
    for counter in COUNTERS:
        changed = changes(pair.result, pair.base, pair.other, counter, **where)
        if changed.empty:
            continue
        whole = changed[["before", "after", "change"]].sum()
        rows.append({"cases": _titled(pair), "per packet": model.WORDS[counter], "in": "all functions", **_values(whole), "": ""})
        told = changed[changed["change"].abs() > LEAST * max(whole["before"], whole["after"])]
        for row in told.head(SHOWN).itertuples():
            named = f"{functions.named(row.object, row.function)}, {row.role}"
            rows.append({"cases": "", "per packet": "", "in": named, **_values(row), "": SIGNIFICANT[row.significant]})
    return rows


def _values(row: Any) -> dict[str, str]:
    sign = "+" if row.change > 0 else ""
    return {"before": number(row.before, ""), "after": number(row.after, ""), "change": sign + number(row.change, "")}


def _picture(pair: Pair, base: profiles.Profile, other: profiles.Profile) -> Picture:
    what = f"{model.WORDS[base.event]} per {base.per}, {style.traffic_name(base.traffic, base.load)}"
    title = f"{_titled(pair)}: {what}"
    versions = bool({RELEASE, KERNEL} & pair.result.differences(pair.base, pair.other))
    first, second = (_per_data(one, versions=versions) for one in (base, other))
    svg = flamegraph.differ(first, second, title, pair.names(), base.per, interactive=False)
    return Picture(model.WORDS[base.event], svg, f"{title}. {CALLS if base.calls else FLAT}{CAPTION}")


def _per_data(profile: profiles.Profile, *, versions: bool) -> dict[str, float]:
    """Counts of the path per unit of data, by folded stack; as versions of a program can be compared, where they are compared."""
    data = profile.data or 1.0
    found: dict[str, float] = {}
    for stack, value in profile.on_path().items():
        alike = ";".join(map(_comparable_frame, stack.split(";"))) if versions else stack
        found[alike] = found.get(alike, 0.0) + value / data
    return found


def _comparable_frame(frame: str) -> str:
    function, _, where = frame.rpartition(" (")
    if not function:
        return VERSION.sub(r"\1", frame)
    _, file, name = _comparable("", where.removesuffix(")"), function)
    return f"{name} ({file})"


def _titled(pair: Pair) -> str:
    """What differs, behind the switch where it does not: the rest of a case is the same in both."""
    names = " → ".join(pair.names())
    if SWITCH in pair.result.differences(pair.base, pair.other):
        # What both share tells pairs apart where there are several.
        return ", ".join(filter(None, [names, pair.setting]))
    return f"{vocabulary.switch(pair.result.cases.loc[pair.other, 'switch']).words}, {names}"


def _by_function(result: Result, case: str, counter: str, traffic: str, load: str) -> dict[tuple[str, str, str], stats.Estimate]:
    """Estimates per unit of data by role, file and function, as releases can be compared."""
    counts, data = functions.per_window(result, case, counter, traffic, load)
    if counts.empty:
        return {}
    comparable = pd.MultiIndex.from_tuples([_comparable(*key) for key in counts.columns], names=functions.KEY)
    merged = counts.set_axis(comparable, axis=1).T.groupby(level=functions.KEY, sort=False).sum().T
    return {key: functions.estimate(merged[key], data) for key in merged}


def _comparable(role: str, file: str, function: str) -> tuple[str, str, str]:
    return role, VERSION.sub(r"\1", file), functions.UNNAMED if PLACED.search(function) else PARTS.sub("", function)
