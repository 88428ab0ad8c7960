# SPDX-License-Identifier: GPL-2.0-or-later
"""The published figures (published.yaml) and which of our cases stand beside them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from analysis import stats
from analysis.load import Result, worded
from analysis.sources import MODEL, SOFTWARE

FILE = Path(__file__).with_name("published.yaml")


@dataclass(frozen=True)
class Published:
    """One published figure: a ratio of `case` over `base`, the range low..high that its words allow, or words alone."""

    id: str
    target: str
    what: str
    topology: str
    source: str
    machine: str
    compared: str
    figure: str
    case: dict[str, str]
    base: dict[str, str]
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    bound: str = ""
    needs: str = ""
    rates: dict[str, float] = field(default_factory=dict)
    latencies: dict[str, dict[str, float]] = field(default_factory=dict)
    """Seconds by metric of ours, of each set-up that was published."""
    ours: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """A published figure with what we measured for it: one ratio a setting and metric, none if we have no number."""

    published: Published
    traffic: str
    load: str
    metric: str
    label: str
    ratio: stats.Estimate
    role: str = ""
    """Whose work a number of the modelled processor is; empty: the whole path's."""

    @property
    def modelled(self) -> bool:
        """True if ours is the modelled processor's: it shares no axis with the others."""
        return self.metric.startswith(MODEL.prefix)


@functools.cache
def every() -> tuple[Published, ...]:
    return tuple(Published(**entry) for entry in yaml.safe_load(FILE.read_text(encoding="utf-8")))


def beside(result: Result) -> list[Comparison]:
    """Each published figure of this result's topology and cases, beside our own ratio.

    One that compares accesses alone (T3) is set beside a result only if the result varies accesses.
    """
    found = []
    for one in every():
        # What was published in words alone stands in its notebook.
        for base, case in pairs(result, one.base, one.case) if one.ours or one.needs else []:
            if one.topology != result.cases.loc[case, "topology"] or not _asked(result, one):
                continue
            label = worded({name: value for name, value in result.told[case].items() if name not in {**one.case, **one.base}})
            for ours in one.ours or [{"traffic": "", "load": "", "metric": ""}]:
                ratio = _ratio(result, case, base, ours) if one.ours else stats.NOTHING
                found.append(Comparison(one, label=label, ratio=ratio, **ours))
    return found


def _ratio(result: Result, case: str, base: str, ours: dict[str, str]) -> stats.Estimate:
    counted = MODEL if ours["metric"].startswith(MODEL.prefix) else SOFTWARE
    return counted.ratio(result, case, base, **ours)


def pairs(result: Result, base: dict[str, str], case: dict[str, str]) -> list[tuple[str, str]]:
    """(base, case) ids of the cases that match the two and agree in every other varied value.

    Where a switch is offered with several accesses, its fastest stands for it: vhost-net for kernel OVS.
    """
    groups: dict[str, dict[str, dict[str, str]]] = {}
    for id_, row in result.cases.iterrows():
        others = {name: value for name, value in result.told[id_].items() if name not in {**base, **case}}
        groups.setdefault(worded(others), {})[str(id_)] = {**result.values[id_], "switch": row["switch"], "access": row["access"]}
    found = []
    for alike in groups.values():
        below, above = (_match(alike, wanted) for wanted in (base, case))
        if below is not None and above is not None and below != above:
            found.append((below, above))
    return found


def _match(cases: dict[str, dict[str, str]], wanted: dict[str, str]) -> str | None:
    """The last of the cases that have the values wanted."""
    return next((id_ for id_, values in reversed(cases.items()) if wanted.items() <= values.items()), None)


def _asked(result: Result, one: Published) -> bool:
    """A figure that compares accesses alone, or switches alone, belongs to a result that does; any other one to every result."""
    if one.case.keys() not in ({"switch"}, {"access"}):
        return True
    return ("access" in one.case) == (result.cases.groupby("switch")["access"].nunique().max() > 1)
