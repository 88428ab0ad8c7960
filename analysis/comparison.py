# SPDX-License-Identifier: GPL-2.0-or-later
"""Two cases set side by side, and their ratios in words: what all explanations are made of."""

import functools
from collections.abc import Iterable
from dataclasses import dataclass

from vsprof.analysis import metrics, read, stats, vocabulary
from vsprof.analysis.load import SIZES, Result, worded
from vsprof.analysis.source import by_repetition, ratio_between
from vsprof.analysis.sources import source_of
from vsprof.terms import units

TRAFFICS: dict[str, dict[str, str]] = read(__file__)
NOT_SENT = "-"
"""No traffic's name."""
SAME = (0.8, 1.25)
"""An interval of a ratio that lies within is called "about the same"."""


@functools.cache
def sent(result: Result, name: str) -> dict[str, str]:
    """The traffic and load of a result that TRAFFICS calls so; of several of one kind the first. NOT_SENT where there is none."""
    wanted = TRAFFICS[name]
    found = [pair for pair in metrics.sent(result) if pair[1] == wanted["load"] and vocabulary.traffic(pair[0]).kind == wanted["kind"]]
    return {"traffic": found[0][0] if found else NOT_SENT, "load": wanted["load"]}


@dataclass(frozen=True)
class Pair:
    """Two cases of a result to be compared."""

    result: Result
    base: str
    other: str

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
        return source_of(str(where["metric"])).ratio(self.result, self.other, self.base, **where)

    def both(self, **where: object) -> tuple[stats.Estimate, stats.Estimate]:
        return self.of(self.base, **where), self.of(self.other, **where)

    def of(self, case: str, **where: object) -> stats.Estimate:
        return source_of(str(where["metric"])).estimate(self.result, case_id=case, **where)

    def quotient(self, case: str, over: dict[str, object], under: dict[str, object]) -> stats.Estimate:
        """How many times one metric of a case another one of the same windows is; the whole path's, unless they name a role."""
        of_path = {"case_id": case, "role": "path", "cpu": -1}
        rows = (source_of(str(one["metric"])).rows(self.result, **{**of_path, **one}) for one in (over, under))
        return ratio_between(*map(by_repetition, rows), paired=True)

    def cpu(self, case: str, *roles: str) -> int | None:
        """The first CPU that is for one of these roles in a case; without any, the one that moves packets, whatever the switch."""
        wanted = roles or ("vhost", "switch", "softirq")
        return next((cpu for cpu, role in self.result.cpu_roles(case).items() if role in wanted), None)


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
    return f"{units.significant(ratio.median)}x ({part}{ratio.interval()})"


def as_many(ratio: stats.Estimate, things: str, than: str = "", note: str = "") -> str:
    """In a sentence: `2.20 times as many packets as kernel OVS (95 % interval 2.12 to 2.27, n=3)`; below one `30 % fewer packets than …`;
    below a half `1/40.5 as many packets as …`, each with the ratio itself. ``note`` stands in the brackets, too."""
    value = ratio.median
    told = "; ".join(filter(None, [note, ratio.interval() if value >= 1 else f"ratio {units.significant(value)}, {ratio.interval()}"]))
    if 0.5 <= value < 1:
        return f"{units.significant(100 * (1 - value), 2)} % fewer {things}{f' than {than}' if than else ''} ({told})"
    many = f"{units.significant(value)} times" if value >= 1 else f"1/{units.significant(1 / value)}" if value > 0 else "0 times"
    return f"{many} as many {things}{f' as {than}' if than else ''} ({told})"


def of(ratio: stats.Estimate, what: str) -> str:
    """In a sentence: `2.20 times the goodput of kernel OVS (95 % interval …)`; below a half `1/8.2 of the goodput of …`."""
    part = 0 < ratio.median < 0.5
    told = f"1/{units.significant(1 / ratio.median)} of" if part else f"{units.significant(ratio.median)} times"
    return f"{told} {what} ({f'ratio {units.significant(ratio.median)}, ' if part else ''}{ratio.interval()})"


def share(value: stats.Estimate) -> str:
    """A fraction as percent: `24.1 %`."""
    return "–" if value.n == 0 else f"{units.significant(100 * value.median)} %"


def doubt(ratio: stats.Estimate, words: str = ", which is not significant") -> str:
    """Behind a ratio in a sentence: nothing where it is significant, or where no interval could have shown that."""
    return words if ratio.low is not None and not ratio.decided else ""


def measured(*values: stats.Estimate) -> bool:
    return all(value.n > 0 for value in values)


def alike(ratio: stats.Estimate) -> bool:
    """Whether two are about the same; False without an interval."""
    return ratio.low is not None and ratio.high is not None and SAME[0] < ratio.low and ratio.high < SAME[1]


def plain(value: stats.Estimate) -> str:
    """A count without a unit: `12.3 k`."""
    return units.si(value.median, "")


def arrow(values: Iterable[stats.Estimate]) -> str:
    """Two values, without a unit, before and after: `12.3 → 45.6`."""
    return " → ".join(units.significant(one.median) for one in values)


def sentence(text: str) -> str:
    """With a capital letter in front, but for a name that has none: ovs-dpdk is a word of our own."""
    return text if vocabulary.is_switch(text.split(" ", 1)[0]) else f"{text[:1].upper()}{text[1:]}"
