# SPDX-License-Identifier: GPL-2.0-or-later
"""A result whose experiment changes the modelled processor, one thing at a time: what each change does to each switch's rate."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from vsprof.analysis import metrics, movers, stats, vocabulary
from vsprof.analysis.comparison import as_many, of
from vsprof.analysis.load import Result, worded
from vsprof.terms import units

PROCESSOR = "cpu."
"""How the names of the processor's values begin among those of a case."""
TOLD = 3
"""How many changes an answer names for each switch."""


@dataclass(frozen=True)
class Effect:
    """One case beside the case of the same switch in which nothing is changed."""

    case: str
    switch: str
    setting: str
    """What else varies, in words: `64 B`; empty where nothing does."""
    words: str
    """The change: `l2.latency 12 → 6`."""
    ratio: stats.Estimate
    """Of what the traffic is judged by."""
    speed: stats.Estimate
    """Of the instructions that the switch's processors end in a second, by the model; without a value where it counted none. Unlike the
    rate it does not depend on the endpoints, nor on how many packets are dropped half-way."""
    elasticity: stats.Estimate | None
    """By how many percent the rate grows for one percent more of the value; None where several values change, or one that is no number."""

    @property
    def size(self) -> float:
        """By how much it matters, either way: to the speed where that is known, for chance is in the rate."""
        return abs(math.log((self.speed if self.speed.n else self.ratio).median))


def traffics(result: Result) -> list[tuple[str, str]]:
    """The (traffic, load) pairs in which the switch is the limit, first those that are divided by packets."""
    return [pair for pair in vocabulary.at_saturation(metrics.sent(result)) if vocabulary.judged_by(pair[0])]


def effects(result: Result, traffic: str, load: str) -> list[Effect]:
    """Of every case with a change, in the result's order; those of a switch without an unchanged case are left out."""
    judged = vocabulary.judged_by(traffic)
    assert judged is not None
    found, where = [], {"traffic": traffic, "load": load, "metric": judged.metric}
    unchanged = {setting_of(result, case): case for case in result.cases.index if not result.changed[case]}
    for case, switch in zip(result.cases.index.astype(str), result.cases["switch"], strict=True):
        base = unchanged.get(setting_of(result, case), case)
        ratio = metrics.SOFTWARE.ratio(result, case, base, **where)
        # Where nothing came, there is no ratio, or it is 0.
        if base != case and 0 < ratio.median < math.inf:
            setting, speed = setting_of(result, case)[1], _speed(result, case, base, traffic=traffic, load=load)
            words, elastic = _words(result, base, case), _elasticity(result, base, case, ratio)
            found.append(Effect(case, switch, setting, words, ratio, speed, elastic))
    return found


def setting_of(result: Result, case: str) -> tuple[str, str]:
    """What a case has in common with those that differ from it in a change alone: its switch, and of what else varies among that one's
    cases its own values."""
    changed, arm = set().union(*result.changes), result.cases.loc[case, "arm"]
    own = [result.varied[str(other)] for other in result.cases.index[result.cases["arm"] == arm]]
    varied = {name: value for name, value in result.varied[case].items() if len({str(one.get(name)) for one in own}) > 1}
    return arm, worded({name: value for name, value in varied.items() if name not in changed})


def named(switch: str, setting: str, mark: str = "") -> str:
    """`kernel OVS, 64 B`; `mark` stands around the switch."""
    return ", ".join(filter(None, [f"{mark}{vocabulary.switch(switch).words}{mark}", setting]))


def answer(result: Result) -> str:
    """For each switch, and whatever else varies, the changes that gain it most, as far as their intervals exclude 1."""
    lines, sent = [], traffics(result)[:1]
    found = [one for pair in sent for one in effects(result, *pair)]
    for switch, setting in dict.fromkeys((effect.switch, effect.setting) for effect in found):
        decided = [one for one in found if (one.switch, one.setting) == (switch, setting) and one.ratio.decided]
        best = sorted(decided, key=lambda one: -abs(math.log(one.ratio.median)))[:TOLD]
        said = "; ".join(f"{one.words}: {_told(one, sent[0][0])}" for one in best)
        lines.append(f"- {named(switch, setting, '**')}: {said or 'no change makes a difference that these repetitions can show'}.")
    return "What changes each switch's rate most:\n\n" + "\n".join(lines) if lines else ""


def beside(result: Result, cell: Callable[[Effect], str]) -> pd.DataFrame:
    """A row for each change, first those that matter most to any switch, and a column for each switch and setting: what ``cell``
    says of an effect. Changes of which it says nothing anywhere are left out."""
    found = [one for pair in traffics(result)[:1] for one in effects(result, *pair)]
    most = {one.words: max(other.size for other in found if other.words == one.words) for one in found}
    heads = {one.case: named(one.switch, one.setting) for one in found}
    said = {(words, head): "" for words in sorted(most, key=lambda words: -most[words]) for head in dict.fromkeys(heads.values())}
    said.update({(one.words, heads[one.case]): cell(one) for one in found})
    table = pd.Series(said, dtype=str).unstack(sort=False)
    return table[(table != "").any(axis=1)]


def in_percent(one: stats.Estimate) -> str:
    """`+27.0 % [25.1, 29.2]`: by how much what it is a ratio of grows; empty where it has no value."""
    if not one.n:
        return ""
    said = f"{100 * (one.median - 1):+.1f} %"
    return said if one.low is None or one.high is None else f"{said} [{100 * (one.low - 1):.1f}, {100 * (one.high - 1):.1f}]"


def elasticity(effect: Effect) -> str:
    """`0.93 [0.91, 0.95]`; empty where the change has none."""
    if (one := effect.elasticity) is None:
        return ""
    return f"{one.median:.2f}" + ("" if one.low is None or one.high is None else f" [{one.low:.2f}, {one.high:.2f}]")


def _told(effect: Effect, traffic: str) -> str:
    data, judged = vocabulary.traffic(traffic).data, vocabulary.judged_by(traffic)
    counted = data and judged and data.number == judged.metric and vocabulary.traffic(traffic).kind != "stream"
    return as_many(effect.ratio, f"{data.per}s") if data and counted else of(effect.ratio, "the rate")


def _words(result: Result, base: str, case: str) -> str:
    """What is changed: `l2.latency 12 → 6`."""
    before, others = result.values[base], {}
    said = []
    for name, value in result.changed[case].items():
        if name.startswith(PROCESSOR):
            said.append(f"{name.removeprefix(PROCESSOR)} {_shown(name, before[name])} → {_shown(name, value)}")
        else:
            others[name] = value
    return ", ".join(filter(None, [*said, worded(others)]))


def _shown(name: str, value: object) -> str:
    return units.si(float(str(value)), "hertz") if name.endswith("_hz") else str(value)


def _speed(result: Result, case: str, base: str, **where: object) -> stats.Estimate:
    """f / CPI of one case over that of the other."""
    hertz = [movers.processor(result, one).get("frequency_hz") for one in (case, base)]
    counted = [movers.cpi(result, case_id=one, **where) for one in (case, base)]
    if not all([*hertz, *counted]):
        return stats.NOTHING
    return stats.over(float(hertz[0]) / float(hertz[1]), stats.ratio(*counted))


def _elasticity(result: Result, base: str, case: str, ratio: stats.Estimate) -> stats.Estimate | None:
    """log(ratio) / log(after / before): the mean over the change, so that twice a value and half of it are told alike."""
    try:
        [(before, after)] = [(float(str(result.values[base][name])), float(str(value))) for name, value in result.changed[case].items()]
        grown = math.log(after / before)
        median, *ends = (None if one is None else math.log(one) / grown for one in (ratio.median, ratio.low, ratio.high))
    except (ValueError, ZeroDivisionError):
        # Several values, or words; and of nothing there is no logarithm.
        return None
    # Less of a value that a rate falls with: the interval's ends change places.
    low, high = ends if grown > 0 else reversed(ends)
    assert median is not None
    return stats.Estimate(median, low, high, ratio.n)
