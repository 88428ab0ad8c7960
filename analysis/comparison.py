# SPDX-License-Identifier: GPL-2.0-or-later
"""Two cases set side by side, in words: what all explanations are made of.

The rule: a claim that two cases differ needs a ratio whose interval excludes 1. Otherwise the difference is called not significant. A
reason names a mechanism only where a counter of the result shows it at work.

Most findings have one form: a ratio, whether it decides anything, the numbers it rests on, and a reason. Such a finding is made by a
`Comparison`. What finds anything is called a look: called with a `Pair`, it gives a `Finding`, several, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from vsprof.analysis import stats, vocabulary
from vsprof.analysis.load import SIZES, Result, worded
from vsprof.analysis.metrics import SEARCHED, SOFTWARE
from vsprof.analysis.source import Source
from vsprof.terms import units

TCP = {"traffic": "tcp_stream", "load": "saturation"}
FLOOD = {"traffic": "udp_flood", "load": "saturation"}
FORWARD = {"traffic": "forward", "load": "saturation"}
EQUAL = {"traffic": "udp_flood", "load": "equal"}
NDR, PDR = ({"traffic": "udp_flood", "load": load} for load in SEARCHED)
PING = {"traffic": "ping_paced", "load": "paced"}
NEAR_ALL, NEAR_NONE = 0.95, 0.05
"""Shares of a CPU or of packets above and below which words like "never sleeps" or "is the limit" are allowed."""
SAME = (0.8, 1.25)
"""An interval of a ratio that lies within is called "about the same"."""


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

    @property
    def named(self) -> Iterable[tuple[str, str]]:
        """Each case with its name."""
        return zip((self.base, self.other), self.names(), strict=True)

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
        return ", ".join(f"{name} {show(self.of(case, **where))}" for case, name in self.named)

    def values(self, words: str, unit: str = "", **where: object) -> list[str]:
        """The two values as evidence; nothing where one was not counted."""
        return [f"{words}: {self.text(unit, **where)}"] if measured(*self.both(**where)) else []

    def line(self, words: str, unit: str = "", **where: object) -> list[str]:
        """The same with their ratio."""
        ratio = self.ratio(**where)
        return [f"{words}: {self.text(unit, **where)}: {times(ratio)}"] if measured(ratio) else []

    def cpu(self, case: str, *roles: str) -> int | None:
        """The first CPU that is for one of these roles in a case; without any, the one that moves packets, whatever the switch."""
        wanted = roles or ("vhost", "switch", "softirq")
        return next((cpu for cpu, role in self.result.cpu_roles(case).items() if role in wanted), None)


Look = Callable[[Pair], Finding | Iterable[Finding] | None]


@dataclass(frozen=True)
class Comparison:
    """One metric of two cases, which ``where`` names, and what is said of it. Called with a pair, it is a look.

    ``topic`` names what is not significant where the ratio decides nothing. ``claim`` has the places {other}, {base} and {way}, which
    ``ways`` fills: above 1, below. ``shown``: how evidence calls the two values, in ``unit``. ``evidence`` and ``reason`` add to that.
    ``doubt``: why nothing can be said though the ratio would decide.
    """

    where: Mapping[str, str]
    topic: str
    claim: str
    shown: str
    ways: tuple[str, str] = ("more", "fewer")
    unit: str = ""
    evidence: Callable[[Pair], Iterable[str]] = lambda _: ()
    reason: Callable[[Pair, stats.Estimate], str] = lambda _, __: ""
    doubt: Callable[[Pair], str] = lambda _: ""

    def __call__(self, pair: Pair, ratio: stats.Estimate | None = None) -> Finding | None:
        """What it finds, by another ``ratio`` than that of medians where one is given; None where one of the two was not measured."""
        ratio = pair.ratio(**self.where) if ratio is None else ratio
        if not measured(ratio):
            return None
        base, other = pair.names()
        claim = self.claim.format(base=base, other=other, way=self.ways[0] if ratio.median > 1 else self.ways[1])
        if why := self.doubt(pair) or ("" if ratio.decided else times(ratio)):
            claim = f"{self.topic}: the difference between {other} and {base} is not significant, {why}."
        evidence = (f"{self.shown}: {pair.text(self.unit, **self.where)}: {times(ratio)}", *self.evidence(pair))
        return Finding(claim, evidence, self.reason(pair, ratio))


def first(*looks: Look) -> Look:
    """A look that finds what the first of these finds that finds anything."""
    return lambda pair: next(filter(None, (look(pair) for look in looks)), None)


def findings(result: Result, looks: Iterable[Look], source: Source = SOFTWARE) -> list[Finding]:
    """What each look finds in each pair, in order, with the setting that a pair's cases share in front; none twice."""
    found = []
    for pair in pairs(result):
        setting = f"{pair.setting}: " if pair.setting else ""
        for look in looks:
            seen = look(pair.by(source))
            found += [replace(one, claim=setting + one.claim) for one in ([seen] if isinstance(seen, Finding) else seen or ())]
    return list(dict.fromkeys(found))


def notes(result: Result, own: Iterable[str] = ()) -> list[str]:
    """What stands below an answer: that it was emulated, its ``own`` sentences, and what was left out."""
    emulated = ["Measured in the emulated lab: the rates are the emulator's, no result about hardware."] if result.emulated else []
    return [f"*{text}*" for text in (*emulated, *own, *(f"{sentence(left)}." for left in result.manifest.get("left_out", [])))]


NO_FINDING = "No finding: this result has no two cases with a common number."


def explained(result: Result, looks: Iterable[Look], source: Source = SOFTWARE, none: str = NO_FINDING) -> str:
    """What `findings` finds, as `numbered`."""
    return numbered(findings(result, looks, source), none)


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


def alike(ratio: stats.Estimate) -> bool:
    """Whether two are about the same; False without an interval."""
    return ratio.low is not None and ratio.high is not None and SAME[0] < ratio.low and ratio.high < SAME[1]


def told(text: str, *values: stats.Estimate, show: Callable[[stats.Estimate], str] = share) -> Iterator[str]:
    """A text with values in its places, if all of them were measured; it may have no places."""
    if measured(*values):
        yield text.format(*map(show, values))


def plain(value: stats.Estimate) -> str:
    """A count without a unit: `12.3 k`."""
    return units.si(value.median, "")


def arrow(values: Iterable[stats.Estimate]) -> str:
    """Two values, without a unit, before and after: `12.3 → 45.6`."""
    return " → ".join(units.significant(one.median) for one in values)


def sentence(text: str) -> str:
    """With a capital letter in front, but for a name that has none: ovs-dpdk is a word of our own."""
    return text if vocabulary.is_switch(text.split(" ", 1)[0]) else f"{text[:1].upper()}{text[1:]}"
