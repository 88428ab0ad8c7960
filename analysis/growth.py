# SPDX-License-Identifier: GPL-2.0-or-later
"""A result whose experiment changes how much there is of something (flows, rules, CPUs, pairs of guests): how each switch grows with it.

A curve is made of the changes that name the same things. What all of these changes set alike is held, such as `rules: 1000` while `masks`
grows; the rest grows together, and the first of it is the axis.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from vsprof.analysis import messages, metrics, stats, vocabulary
from vsprof.analysis.comparison import as_many, doubt, of
from vsprof.analysis.load import Result, worded
from vsprof.analysis.model import MODEL
from vsprof.analysis.what_if import setting_of, traffics
from vsprof.terms import units

COSTS = {"instructions": "instructions", "cpi": "CPI", "llc_hits_modified": "lines of other cores"}
"""What of a packet's cost is told, by the model's counter."""
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
    """What all its cases have alike, and the unchanged case does not."""
    setting: str
    """What else varies, in words."""
    cases: tuple[tuple[float, str], ...]
    """The axis' value of each case, and the case."""
    known: Collection[str] = ()
    """All that its switch has of what is changed anywhere."""

    @property
    def title(self) -> str:
        """What it shows: `rules, flows`; `masks (1,000 flows, rules=1000)`."""
        return f"{self.named} ({self.more})" if self.more else self.named

    @property
    def named(self) -> str:
        """What there is more of."""
        return ", ".join((self.axis, *self.along))

    @property
    def more(self) -> str:
        """What is alike in all cases."""
        return ", ".join(filter(None, (self.setting, worded(self.held))))


def curves(result: Result) -> list[Curve]:
    """Of each set of changes, and of each switch and setting, those with two cases or more; in the experiment's order."""
    alike: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for change in result.changes:
        # A word is no place on an axis: changes with other words are no more of the same.
        alike.setdefault(tuple((name, "" if _number(value) else str(value)) for name, value in change.items()), []).append(change)
    settings = dict.fromkeys(setting_of(result, str(case)) for case in result.cases.index)
    made = [_curve(result, setting, changes) for changes in alike.values() for setting in settings]
    return [one for one in made if one is not None and len(one.cases) > 1]


def _curve(result: Result, setting: tuple[str, str], changes: list[dict[str, Any]]) -> Curve | None:
    cases = [str(case) for case in result.cases.index if setting_of(result, str(case)) == setting]
    unchanged = next((result.values[case] for case in cases if not result.changed[case]), None)
    held = {name: value for name, value in changes[0].items() if not _number(value) or _all_alike(changes, name)}
    growing = [name for name in changes[0] if name not in held]
    # What a switch does not have makes no case of its own; without an unchanged one nobody knows what the others were.
    if unchanged is None or not growing or not all(name in unchanged for name in growing):
        return None
    named = set().union(*result.changes) & unchanged.keys()
    found = {}
    for wanted in ({**unchanged, **change} for change in (held, *changes)):
        here = [case for case in cases if all(str(result.values[case].get(name)) == str(wanted[name]) for name in named)]
        found.update({float(wanted[growing[0]]): case for case in here if _number(wanted[growing[0]])})
    switch = str(result.cases.loc[cases[0], "switch"])
    return Curve(switch, growing[0], tuple(growing[1:]), held, setting[1], tuple(sorted(found.items())), unchanged.keys())


def _all_alike(changes: list[dict[str, Any]], name: str) -> bool:
    return len(changes) > 1 and len({str(change[name]) for change in changes}) == 1


def _number(value: Any) -> bool:
    """Whether it can be a place on an axis of multiples."""
    try:
        return float(value) > 0
    except (TypeError, ValueError):
        return False


def missing(result: Result) -> list[str]:
    """What a figure of curves lacks, in words."""
    return [] if curves(result) and traffics(result) else [messages.NOTHING_GROWS]


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
    alike = ", ".join(filter(None, (curve.setting, worded({name: value for name, value in curve.held.items() if name in curve.known}))))
    held = f" with {alike}" if alike else ""
    return f"{curve.named} {low:,.12g} → {high:,.12g}{held}: {gained}{doubt(ratio)}{f', for {costs}' if costs else ''}"


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
