# SPDX-License-Identifier: GPL-2.0-or-later
"""A differential profile: in which functions the instructions and misses of a packet changed from one case to the next, where both
differ in the Debian release of the switch's programs alone. It is flat, as `functions` is.

A library's file has another version in each release, and the functions of a stripped program have places instead of names: so the version
is left out of the first, and what has no name is one sum a file.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from vsprof.analysis import flamegraph, functions, messages, stats, style, vocabulary
from vsprof.analysis.comparison import Pair
from vsprof.analysis.describe import Table, Text, number
from vsprof.analysis.load import Result

OPTION = "release"
VERSION = re.compile(r"(\.so)(\.\d+)+$")
PLACED = re.compile(r"\+0x[0-9a-f]+$")
COUNTERS = {
    "instructions": "instructions", "l1d_misses": "L1D misses", "llc_misses": "LLC misses", "branch_misses": "branch misses",
}  # fmt: skip
SHOWN = 6
"""Functions of each counter: those that changed most."""
LEAST = 0.01
"""Of all that was counted: what changed by less is left out."""
SIGNIFICANT = {True: "", False: "not significant", None: "no interval"}
CAPTION = (
    "Two profiles in one picture, each as shares of its own instructions: roles at the bottom, then files, then their functions. No calls "
    "are shown. Blue fell, red grew."
)


@dataclass(frozen=True)
class Graph:
    """The picture of one pair, in a notebook."""

    svg: str
    title: str

    def _repr_html_(self) -> str:
        return f"<figure>{self.svg}<figcaption>{html.escape(self.title)}. {CAPTION}</figcaption></figure>"


def pairs(result: Result) -> list[tuple[str, str]]:
    """Each release with the next one in the experiment's order, all else being the same."""
    cases = list(result.cases.index)
    found = []
    for place, base in enumerate(cases):
        other = next((one for one in cases[place + 1 :] if result.differences(base, one) == {OPTION}), None)
        if other is not None:
            found.append((base, other))
    return found


def changes(result: Result, base: str, other: str, counter: str, *, traffic: str, load: str) -> pd.DataFrame:
    """One row a role, file and function: `before` and `after` per unit of data (medians over repetitions), `change`, and whether it is
    `significant`: their 95 % intervals do not meet; None where there is none. Those that changed most come first."""
    sides = [_by_function(result, case, counter, traffic, load) for case in (base, other)]
    keys = list(dict.fromkeys(itertools.chain(*sides)))
    none = stats.Estimate(0.0, 0.0, 0.0, 0)
    rows = []
    for key in keys:
        before, after = (side.get(key, none) for side in sides)
        known = None not in (before.low, after.low)
        apart = (before.high < after.low or after.high < before.low) if known else None
        values = {"before": before.median, "after": after.median, "change": after.median - before.median, "significant": apart}
        rows.append({**dict(zip(functions.KEY, key, strict=True)), **values})
    table = pd.DataFrame(rows, columns=[*functions.KEY, "before", "after", "change", "significant"])
    return table.sort_values("change", key=abs, ascending=False, kind="stable", ignore_index=True)


def table(result: Result) -> Table | Text:
    """For each pair and counter the functions that changed most, below the sum over all."""
    where = functions.profiled(result)
    found = [row for pair in pairs(result) for row in _rows(result, *pair, where)] if where else []
    if not found:
        return Text(f"*{messages.not_shown('what changed by function', functions.missing(result) or [messages.no_releases()])}*")
    return Table(pd.DataFrame(found))


def graphs(result: Result) -> list[Graph]:
    """One picture a pair; none where there are no profiles."""
    where = functions.profiled(result)
    return [graph for pair in pairs(result) if where and (graph := _graph(result, *pair, where)) is not None]


def _rows(result: Result, base: str, other: str, where: Mapping[str, str]) -> list[dict[str, str]]:
    pair = _titled(result, base, other)
    rows = []
    for counter, words in COUNTERS.items():
        changed = changes(result, base, other, counter, **where)
        if changed.empty:
            continue
        whole = changed[["before", "after", "change"]].sum()
        rows.append({"cases": pair, "per packet": words, "in": "all functions", **_values(whole), "": ""})
        told = changed[changed["change"].abs() > LEAST * max(whole["before"], whole["after"])]
        for row in told.head(SHOWN).itertuples():
            named = f"{functions.named(row.object, row.function)}, {row.role}"
            one = pd.Series({"before": row.before, "after": row.after, "change": row.change})
            rows.append({"cases": "", "per packet": "", "in": named, **_values(one), "": SIGNIFICANT[row.significant]})
    return rows


def _values(row: pd.Series) -> dict[str, str]:
    sign = "+" if row["change"] > 0 else ""
    return {"before": number(row["before"], ""), "after": number(row["after"], ""), "change": sign + number(row["change"], "")}


def _graph(result: Result, base: str, other: str, where: Mapping[str, str]) -> Graph | None:
    folded = []
    for case in (base, other):
        found = _by_function(result, case, "instructions", **where)
        stacks = {f"{role};{file};{functions.named(file, name)}": one.median for (role, file, name), one in found.items() if one.median > 0}
        folded.append(stacks)
    if not all(folded):
        return None
    title = f"{_titled(result, base, other)}: instructions per packet, {style.traffic_name(where['traffic'], where['load'])}"
    return Graph(flamegraph.differ(*folded, title, Pair(result, base, other).names(), interactive=False), title)


def _titled(result: Result, base: str, other: str) -> str:
    """The switch, and what differs: the rest of a case is the same in both."""
    words = vocabulary.switch(result.cases.loc[other, "switch"]).words
    return f"{words}, {' → '.join(Pair(result, base, other).names())}"


def _by_function(result: Result, case: str, counter: str, traffic: str, load: str) -> dict[tuple[str, str, str], stats.Estimate]:
    """Estimates per unit of data by role, file and function, as releases can be compared."""
    counts, data = functions.per_window(result, case, counter, traffic, load)
    if counts.empty:
        return {}
    comparable = pd.MultiIndex.from_tuples([_comparable(*key) for key in counts.columns], names=functions.KEY)
    merged = counts.set_axis(comparable, axis=1).T.groupby(level=functions.KEY, sort=False).sum().T
    found = {}
    for key in merged:
        both = pd.DataFrame({"part": merged[key], "per": data})
        found[key] = stats.estimate([run.to_numpy(float) for _, run in both.groupby("run_id")])
    return found


def _comparable(role: str, file: str, function: str) -> tuple[str, str, str]:
    return role, VERSION.sub(r"\1", file), functions.UNNAMED if PLACED.search(function) else function
