# SPDX-License-Identifier: GPL-2.0-or-later
"""A result whose experiment changes how much there is of something (flows, rules, CPUs, pairs of guests): how each switch grows with it.

A curve is made of the changes that name the same things. What all of these changes set alike is held, such as `rules: 1000` while `masks`
grows; the rest grows together, and the first of it is the axis.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vsprof.analysis import metrics, stats, vocabulary
from vsprof.analysis.comparison import as_many, doubt, of
from vsprof.analysis.load import Result, worded
from vsprof.analysis.model import MODEL
from vsprof.analysis.what_if import traffics
from vsprof.terms import units

COSTS = {"instructions": "instructions", "llc_hits_modified": "lines out of another core's cache", "llc_misses": "LLC misses"}
"""What of a packet's cost a sentence names, by the model's counter."""
WORTH_TELLING = 1.1
"""A cost that grows by less is not named."""


@dataclass(frozen=True)
class Curve:
    """How a switch grows: its cases in the order of ``axis``, the name of what there is more and more of."""

    switch: str
    axis: str
    along: tuple[str, ...]
    """What grows with it."""
    held: Mapping[str, Any]
    cases: tuple[tuple[float, str], ...]
    """The axis' value of each case, and the case."""

    @property
    def title(self) -> str:
        """What it shows: `rules, flows`; `masks (rules=1000, 1,000 flows)`."""
        named = ", ".join((self.axis, *self.along))
        return f"{named} ({worded(self.held)})" if self.held else named


def curves(result: Result) -> list[Curve]:
    """Of each set of changes and each switch, those with two cases or more; in the experiment's order."""
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for change in result.changes:
        alike.setdefault(tuple(change), []).append(change)
    made = [_curve(result, str(switch), changes) for changes in alike.values() for switch in dict.fromkeys(result.cases["switch"])]
    return [one for one in made if len(one.cases) > 1]


def _curve(result: Result, switch: str, changes: list[dict[str, Any]]) -> Curve:
    names = list(changes[0])
    held = {name: changes[0][name] for name in names if len(changes) > 1 and len({str(change[name]) for change in changes}) == 1}
    growing = [name for name in names if name not in held]
    cases = {
        float(values[growing[0]]): case for case, values in _cases(result, switch, held, growing, changes) if _number(values[growing[0]])
    }
    return Curve(switch, growing[0], tuple(growing[1:]), held, tuple(sorted(cases.items())))


def _cases(
    result: Result, switch: str, held: Mapping[str, Any], growing: list[str], changes: list[dict[str, Any]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The switch's cases with one of these changes, or with what they hold alone."""
    named = set().union(*result.changes)
    unchanged = next(
        values for case, values in result.values.items() if result.cases.loc[case, "switch"] == switch and not result.changed[case]
    )
    for case in result.cases.index[result.cases["switch"] == switch]:
        values = result.values[str(case)]
        # What a switch does not have makes no case of its own.
        if not all(name in values for name in growing):
            continue
        for change in ({**held, **{name: unchanged[name] for name in growing}}, *changes):
            if all(str(values[name]) == str(change.get(name, unchanged[name])) for name in named & values.keys()):
                yield str(case), values


def _number(value: Any) -> bool:
    """Whether it can be a place on an axis of multiples."""
    try:
        return float(value) > 0
    except (TypeError, ValueError):
        return False


def answer(result: Result) -> str:
    """Of each switch, what each curve comes to from its first case to its last, and what a packet then costs more of."""
    pairs = traffics(result)[:1]
    lines = []
    for switch in dict.fromkeys(one.switch for one in curves(result)):
        told = [_told(result, one, *pair) for pair in pairs for one in curves(result) if one.switch == switch]
        lines.append(f"- **{vocabulary.switch(switch).words}**: {'; '.join(told)}.")
    return "From the least to the most of each:\n\n" + "\n".join(lines) if pairs and lines else ""


def _told(result: Result, curve: Curve, traffic: str, load: str) -> str:
    judged, data = vocabulary.judged_by(traffic), vocabulary.traffic(traffic).data
    assert judged is not None
    (low, first), *_, (high, last) = curve.cases
    where = {"traffic": traffic, "load": load}
    ratio = metrics.SOFTWARE.ratio(result, last, first, metric=judged.metric, **where)
    counted = data and data.number == judged.metric
    gained = as_many(ratio, f"{data.per}s") if data and counted else of(ratio, "the rate")
    costs = _costs(result, first, last, **where)
    held = f" with {worded(curve.held)}" if curve.held else ""
    named = ", ".join((curve.axis, *curve.along))
    return f"{named} {low:,g} → {high:,g}{held}: {gained}{doubt(ratio)}{f', for {costs}' if costs else ''}"


def _costs(result: Result, first: str, last: str, **where: str) -> str:
    """What of COSTS a packet costs more or less of, in words: `2.6 times the instructions`."""
    said = []
    for counter, words in COSTS.items():
        grown = MODEL.ratio(result, last, first, metric=metric_of(counter, where["traffic"]), role="path", **where)
        if _worth_telling(grown):
            said.append(f"{units.significant(grown.median, 2)} times the {words}")
    return " and ".join(said)


def metric_of(counter: str, traffic: str) -> str:
    """The model's metric of a counter for each unit of what a traffic carries; `cpi` is one by itself."""
    return "model_cpi" if counter == "cpi" else f"model_{counter}_per_{vocabulary.per_data()[traffic]}"


def _worth_telling(grown: stats.Estimate) -> bool:
    return grown.n > 0 and grown.median > 0 and not 1 / WORTH_TELLING < grown.median < WORTH_TELLING
