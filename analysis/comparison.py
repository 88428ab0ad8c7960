# SPDX-License-Identifier: GPL-2.0-or-later
"""Two cases set side by side, in words: what all explanations are made of.

The rule: a claim that two cases differ needs a ratio whose interval excludes 1. Otherwise the difference is called not significant. A
reason names a mechanism only where a counter of the result shows it at work.

Most findings have one form: a ratio, whether it decides anything, the numbers it rests on, and a reason. Such a finding is a `Comparison`,
and `find` makes it. A finding of another form is a function from a `Pair` to a `Finding`, or None where the result has nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from analysis import stats, vocabulary
from analysis.load import SIZES, Result, worded
from analysis.metrics import SEARCHED, SOFTWARE
from analysis.source import Source
from terms import units

TCP = {"traffic": "tcp_stream", "load": "saturation"}
FLOOD = {"traffic": "udp_flood", "load": "saturation"}
FORWARD = {"traffic": "forward", "load": "saturation"}
EQUAL = {"traffic": "udp_flood", "load": "equal"}
NDR, PDR = ({"traffic": "udp_flood", "load": load} for load in SEARCHED)
PING = {"traffic": "ping_paced", "load": "paced"}


@dataclass(frozen=True)
class Finding:
    """One thing the numbers say: the claim, the numbers it rests on, and the reason (empty if they show none)."""

    claim: str
    evidence: tuple[str, ...]
    reason: str = ""

    def markdown(self) -> str:
        parts = [f"**{self.claim}**", *([f"{sentence('; '.join(self.evidence))}."] if self.evidence else [])]
        return " ".join([*parts, f"*Why:* {self.reason}"] if self.reason else parts)


@dataclass(frozen=True)
class Pair:
    """Two cases of a result to be compared, by the numbers of one source."""

    result: Result
    base: str
    other: str
    source: Source = SOFTWARE

    def by(self, source: Source) -> Pair:
        return replace(self, source=source)

    def names(self) -> tuple[str, str]:
        """How the text calls the two: by switch, or by access where a switch is reached in several ways; and by what else differs."""
        return self._name(self.base), self._name(self.other)

    def _name(self, case: str) -> str:
        result, apart = self.result, self.result.differences(self.base, self.other)
        telling = apart | (result.told[case].keys() - self._common)
        own = worded({name: value for name, value in result.varied[case].items() if name in telling})
        if "arm" not in apart:
            return own
        cases = result.cases
        column = "access" if cases.groupby("switch")["access"].nunique().max() > 1 else "switch"
        name = vocabulary.switch(cases.loc[case, column]).words
        return f"{name} ({own})" if own else name

    @property
    def setting(self) -> str:
        """The varied values that both share, as far as they are told."""
        return worded({name: value for name, value in self.result.told[self.other].items() if name in self._common})

    @property
    def _common(self) -> set[str]:
        base, other = self.result.varied[self.base], self.result.varied[self.other]
        return {name for name, value in other.items() if base.get(name) == value}

    def ratio(self, **where: object) -> stats.Estimate:
        return self.source.ratio(self.result, self.other, self.base, **where)

    def both(self, **where: object) -> tuple[stats.Estimate, stats.Estimate]:
        return self.of(self.base, **where), self.of(self.other, **where)

    def of(self, case: str, **where: object) -> stats.Estimate:
        return self.source.estimate(self.result, case_id=case, **where)

    def text(self, unit: str = "", **where: object) -> str:
        """The two values: `kernel OVS 383 kpps, OVS-DPDK 998 kpps`."""
        show = share if unit == "fraction" else lambda one: units.si(one.median, unit)
        return ", ".join(f"{name} {show(one)}" for name, one in zip(self.names(), self.both(**where), strict=True))

    def line(self, words: str, unit: str = "", **where: object) -> list[str]:
        """The two values and their ratio, as evidence; nothing where one was not counted."""
        ratio = self.ratio(**where)
        return [f"{words}: {self.text(unit, **where)}: {times(ratio)}"] if measured(ratio) else []


@dataclass(frozen=True)
class Comparison:
    """One metric of two cases, and what is said of it.

    ``claim`` has the places {other}, {base} and {way}, which ``ways`` fills: above 1, below. ``topic`` names what is not significant where
    the ratio decides nothing. ``shown``: how evidence calls the two values, in ``unit``. ``evidence`` and ``reason`` add to that.
    """

    where: Mapping[str, str]
    metric: str
    unit: str
    topic: str
    claim: str
    ways: tuple[str, str]
    shown: str
    evidence: Callable[[Pair], Iterable[str]] = lambda _: ()
    reason: Callable[[Pair, stats.Estimate], str] = lambda _, __: ""
    source: Source = SOFTWARE


def find(pair: Pair, one: Comparison) -> Finding | None:
    """What a comparison finds; None where one of the two was not measured."""
    pair = pair.by(one.source)
    ratio = pair.ratio(**one.where, metric=one.metric)
    if not measured(ratio):
        return None
    base, other = pair.names()
    evidence = (*pair.line(one.shown, one.unit, **one.where, metric=one.metric), *one.evidence(pair))
    if why := undecided(ratio):
        return Finding(not_significant(one.topic, base, other, why), evidence, one.reason(pair, ratio))
    claim = one.claim.format(base=base, other=other, way=one.ways[0] if ratio.median > 1 else one.ways[1])
    return Finding(claim, evidence, one.reason(pair, ratio))


def first(pair: Pair, ones: Sequence[Comparison]) -> Finding | None:
    """What the first comparison finds that can be made."""
    return next(filter(None, (find(pair, one) for one in ones)), None)


def findings(result: Result, looks: Sequence[Callable[[Pair], Finding | Iterable[Finding] | None]]) -> list[Finding]:
    """What each look finds in each pair, in order, with the setting that a pair's cases share in front; none twice."""
    found = []
    for pair in pairs(result):
        setting = f"{pair.setting}: " if pair.setting else ""
        for look in looks:
            seen = look(pair)
            for one in [seen] if isinstance(seen, Finding) else seen or ():
                found.append(replace(one, claim=setting + one.claim))
    return list(dict.fromkeys(found))


def numbered(found: Iterable[Finding], none: str) -> str:
    """Findings as a numbered list, or, without any, the words ``none``."""
    return "\n".join(f"{place}. {finding.markdown()}" for place, finding in enumerate(found, 1)) or none


def pairs(result: Result) -> list[Pair]:
    """Cases that differ in one thing that is compared. Each switch and access is explained against the one before it in the order of
    cases, each value of an option against the first."""
    cases, found = list(result.cases.index), []
    for place, other in enumerate(cases):
        before: dict[str, list[str]] = {}
        for base in cases[:place]:
            differences = result.differences(base, other)
            if len(differences) == 1 and not differences & set(SIZES):
                before.setdefault(differences.pop(), []).append(base)
        found += [Pair(result, bases[-1] if what == "arm" else bases[0], other) for what, bases in before.items()]
    # One question after the other: sizes, then shared options.
    settings = list(dict.fromkeys(result.cases["setting"]))
    return sorted(found, key=lambda pair: settings.index(result.cases.loc[pair.other, "setting"]))


# -- words ------------------------------------------------------------------------------------------------------


def times(ratio: stats.Estimate) -> str:
    """In evidence: `2.20x (95 % interval 2.12 to 2.27, n=3)`; small ones also as a part: `0.0247x (1/40.5; 95 % interval …)`."""
    part = f"1/{units.significant(1 / ratio.median)}; " if 0 < ratio.median < 0.5 else ""
    return f"{units.significant(ratio.median)}x ({part}{interval(ratio)})"


def as_many(ratio: stats.Estimate, things: str, than: str = "", note: str = "") -> str:
    """In a sentence: `2.20 times as many packets as kernel OVS (95 % interval 2.12 to 2.27, n=3)`; below one `30 % fewer packets than …`;
    below a half `1/40.5 as many packets as …`, each with the ratio itself. ``note`` stands in the brackets, too."""
    value = ratio.median
    told = "; ".join(filter(None, [note, interval(ratio) if value >= 1 else f"ratio {units.significant(value)}, {interval(ratio)}"]))
    if 0.5 <= value < 1:
        return f"{units.significant(100 * (1 - value), 2)} % fewer {things}{f' than {than}' if than else ''} ({told})"
    many = f"{units.significant(value)} times" if value >= 1 else f"1/{units.significant(1 / value)}" if value > 0 else "0 times"
    return f"{many} as many {things}{f' as {than}' if than else ''} ({told})"


def of(ratio: stats.Estimate, what: str) -> str:
    """In a sentence: `2.20 times the goodput of kernel OVS (95 % interval …)`; below a half `1/8.2 of the goodput of …`."""
    part = 0 < ratio.median < 0.5
    told = f"1/{units.significant(1 / ratio.median)} of" if part else f"{units.significant(ratio.median)} times"
    return f"{told} {what} ({f'ratio {units.significant(ratio.median)}, ' if part else ''}{interval(ratio)})"


def interval(ratio: stats.Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"n={ratio.n}: no interval"
    return f"95 % interval {units.significant(ratio.low)} to {units.significant(ratio.high)}, n={ratio.n}"


def share(value: stats.Estimate) -> str:
    """A fraction as percent: `24.1 %`."""
    return "–" if value.n == 0 else f"{units.significant(100 * value.median)} %"


def measured(*values: stats.Estimate) -> bool:
    return all(value.n > 0 for value in values)


def undecided(ratio: stats.Estimate) -> str:
    """Why a ratio decides nothing; empty if it does decide."""
    return "" if ratio.decided else times(ratio)


def not_significant(topic: str, base: str, other: str, why: str) -> str:
    return f"{topic}: the difference between {other} and {base} is not significant, {why}."


def sentence(text: str) -> str:
    """With a capital letter in front, but for a name that has none: ovs-dpdk is a word of our own."""
    return text if vocabulary.is_switch(text.split(" ", 1)[0]) else f"{text[:1].upper()}{text[1:]}"
