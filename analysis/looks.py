# SPDX-License-Identifier: GPL-2.0-or-later
"""What explanations find in each two cases, in words. looks.yaml says what they look for, and how a row of it is read.

The rule: a claim that two cases differ needs a ratio whose interval excludes 1. Otherwise the difference is called not significant, or, of
one repetition, not shown. A reason names a mechanism only where a counter of the result shows it at work.

What finds anything is called a look: called with a `Pair`, it gives a `Finding`, several, or None. It is a row, or a function.
"""

import contextlib
import functools
import itertools
import math
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from vsprof.analysis import describe, metrics, read, stats, style, vocabulary
from vsprof.analysis.comparison import NOT_SENT, TRAFFICS, Pair, alike, as_many, pairs, plain, sent, sentence, share, times
from vsprof.analysis.load import Result
from vsprof.analysis.sources import source_of
from vsprof.terms import expression, units

SHORT = {
    "both": "{{base}} {{base.{0}}}, {{other}} {{other.{0}}}",
    "line": "{{both.{0}}}: {{ratio.{0}}}",
    "arrow": "{{base.{0}:bare}} → {{other.{0}:bare}}",
}
"""Names that stand for several."""
OF_RATIOS: Mapping[str, Callable[[stats.Estimate], float]] = {
    "decided": lambda ratio: ratio.decided,
    "alike": alike,
    "low": lambda ratio: math.nan if ratio.low is None else ratio.low,
    "high": lambda ratio: math.nan if ratio.high is None else ratio.high,
}
"""What conditions can ask of a ratio."""
FORMS: Mapping[str, Callable[[stats.Estimate], str]] = {
    "plain": plain,
    "bare": lambda one: units.significant(one.median),
    "interval": stats.Estimate.shown,
    "percent": share,
}


def _filled(part: Any, words: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Rows with what their `fill` says in its places."""
    match part:
        case str():
            return functools.reduce(lambda text, name: text.replace(f"<{name}>", words[name]), words, part)
        case list():
            return [_filled(one, words) for one in part]
        case dict():
            words = {**words, **part.get("fill", {})}
            return {name: _filled(one, words) for name, one in part.items() if name != "fill"}
    return part


ROWS = _filled(read(__file__))
NO_ANSWER = "This result can't answer the question: it has no two cases with a common number."
NO_FINDING = "No finding: this result has no two cases with a common number."
_FUNCTIONS: dict[str, Callable] = {}
"""By what rows call them."""


@dataclass(frozen=True)
class Finding:
    """One thing the numbers say: the claim, the numbers it rests on, and the reason (empty if they show none)."""

    claim: str
    evidence: tuple[str, ...]
    reason: str = ""

    def markdown(self) -> str:
        parts = [f"**{self.claim}**", *([f"{sentence('; '.join(self.evidence))}."] if self.evidence else [])]
        return " ".join([*parts, f"*Why:* {self.reason}"] if self.reason else parts)


Look = Callable[[Pair], Finding | Iterable[Finding] | None]


def in_rows(function: Callable) -> Callable:
    """Marks a function that rows call by its name: a look, or one that yields sentences."""
    return _FUNCTIONS.setdefault(f"={function.__name__}", function)


class NotMeasured(Exception):
    """A text or a condition needs a number that is not there."""


class Words(string.Formatter):
    """What the names in a row mean, of one pair of cases."""

    def __init__(self, pair: Pair, own: Mapping[str, object], ratio: stats.Estimate = stats.NOTHING, one: str = "base") -> None:
        """``own``: the traffic (and role) of names that have none. ``ratio``: that of the row's own metric. ``one``: of `each` side."""
        self.pair, self.own, self.ratio, self.one = pair, own, ratio, one
        rest = "other" if one == "base" else "base"
        self.cases = {"base": pair.base, "other": pair.other, "one": getattr(pair, one), "rest": getattr(pair, rest)}
        self.plain = dict(zip(("base", "other"), pair.names(), strict=True))
        self.plain |= {"one": self.plain[one], "rest": self.plain[rest]}
        for side, case in self.cases.items():
            self.plain |= {f"{side}.{name}": value for name, value in pair.result.cases.loc[case].items()}
            switch = vocabulary.switch(pair.result.cases.loc[case, "switch"])
            self.plain |= {f"{side}.words": switch.words, f"{side}.program": switch.program or switch.words}
        if own:
            self.plain["traffic"] = style.traffic_name(str(own["traffic"]), str(own["load"]))
            self.plain["load"] = vocabulary.LOADS.get(str(own["load"]), str(own["load"]))
            traffic = str(own["traffic"])
            said = {"called": vocabulary.called(traffic), "things": vocabulary.things(traffic)}
            self.plain |= {**said, **{name.capitalize(): sentence(words) for name, words in said.items()}}
            self.plain["data"] = vocabulary.per_data().get(traffic, "")

    def say(self, text: str) -> str:
        """The text with what stands in its places. Raises `NotMeasured`."""
        return self.vformat(text, (), {})

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[str, str]:
        return field_name, field_name

    def format_field(self, value: str, format_spec: str) -> str:
        if value in self.plain:
            return str(self.plain[value])
        if "|" in value:
            return value.split("|")[self.ratio.median <= 1]
        side, _, rest = value.partition(".")
        if rest == "called":
            return vocabulary.called(sent(self.pair.result, side)["traffic"])
        if side in SHORT:
            return self.say(SHORT[side].format(rest))
        if rest.split(".")[0] == "cpu":
            return str(self.pair.cpu(self.cases[side], *rest.split(".")[1:]))
        return self._shown(value, format_spec)

    def _shown(self, name: str, format_spec: str) -> str:
        found = self.number(name)
        if name.startswith("ratio.") and format_spec:
            return as_many(found, format_spec, self.plain["base"])
        if format_spec in FORMS:
            return FORMS[format_spec](found)
        if name.startswith("ratio.") or "/" in name:
            return times(found)
        return describe.number(found.median, unit(self.pair.result, self._named(name.partition(".")[2])["metric"]))

    def number(self, name: str) -> stats.Estimate:
        """Of the side, `base`, `other` or `ratio`, that the name begins with. Raises `NotMeasured`."""
        side, _, rest = name.partition(".")
        over, _, under = rest.replace(":", "/").partition("/")
        where = self._named(over)
        if where["metric"].startswith("cpu_"):
            where["cpu"] = self.pair.cpu(self.cases[side], *filter(None, [where.pop("role", None)]))
        if under:
            found = self.pair.quotient(self.cases[side], where, self._named(under))
        else:
            found = self.pair.ratio(**where) if side == "ratio" else self.pair.of(self.cases[side], **where)
        if not found.n:
            raise NotMeasured
        return found

    def _named(self, name: str) -> dict[str, Any]:
        return named(self.pair.result, name, self.own)

    def holds(self, conditions: str | Sequence[str]) -> bool:
        """Whether all of these hold; one that needs what was not measured does not."""
        parsed = map(expression.parse, [conditions] if isinstance(conditions, str) else conditions)
        try:
            return all(one.compute({name: self._asked(name) for name in one.names}.__getitem__) for one in parsed)
        except NotMeasured:
            return False

    def _asked(self, name: str) -> float:
        """What a name is in a condition."""
        side, _, rest = name.partition(".")
        if name == "emulated":
            return self.pair.result.emulated
        if side in OF_RATIOS:
            of_pair = rest.partition(".")[0] not in self.cases
            return OF_RATIOS[side](self.number(f"ratio.{rest}" if of_pair else rest) if rest else self.ratio)
        if side == "has":
            return self.holds(f"{rest} == {rest}")
        return self.number(name).median

    def sentences(self, entries: Iterable[Any]) -> Iterator[str]:
        """What can be said of a row's entries."""
        for entry in entries:
            match entry:
                case {"first": several}:
                    yield from itertools.islice(self.sentences(several), 1)
                case {"each": several}:
                    for one in ("base", "other"):
                        yield from Words(self.pair, self.own, self.ratio, one).sentences(several)
                case {"traffics": several, "say": said}:
                    for name in several:
                        yield from Words(self.pair, sent(self.pair.result, name), self.ratio, self.one).sentences(said)
                case {"largest": texts}:
                    with contextlib.suppress(NotMeasured):
                        found = {name: self.number(name).median for name in texts}
                        most = max(found, key=found.__getitem__)
                        yield from self.sentences([texts[most]] if found[most] > 0 else [])
                case {"when": conditions, "say": said}:
                    yield from self.sentences([said] if isinstance(said, str) else said) if self.holds(conditions) else ()
                case str() if entry in _FUNCTIONS:
                    yield from _FUNCTIONS[entry](self)
                case _:
                    with contextlib.suppress(NotMeasured):
                        yield self.say(entry)


@functools.cache
def unit(result: Result, metric: str) -> str:
    return source_of(metric).unit(result, metric=metric)


def named(result: Result, name: str, own: Mapping[str, object] = MappingProxyType({})) -> dict[str, Any]:
    """The series that a row's name is of: traffic (else that of ``own``), metric, and role where there is one."""
    words = name.split(".")
    found = sent(result, words.pop(0)) if words[0] in TRAFFICS else own
    if words[0].endswith("_per_data"):
        words[0] = words[0].removesuffix("data") + vocabulary.per_data().get(found["traffic"], "")
    if words[-1].startswith("without_"):
        return {**found, "metric": words[0], "without": words[-1].removeprefix("without_")}
    return {**found, **dict(zip(("metric", "role"), words, strict=False))}


@dataclass(frozen=True)
class Row:
    """A row of looks.yaml. Called with a pair, it is a look."""

    claim: str
    of: str = ""
    topic: str = ""
    shown: str = ""
    traffics: Sequence[str] = ("",)
    only: Mapping[str, str] = field(default_factory=dict)
    needs: Sequence[str] = ()
    when: str | Sequence[str] = ()
    instead: str = ""
    evidence: Sequence[Any] = ()
    reason: Sequence[Any] = ()
    unexplained: str = ""
    doubt: str = ""

    def __call__(self, pair: Pair) -> Finding | None:
        carrying = [{"traffic": traffic, "load": load} for traffic, load in metrics.carrying(pair.result)]
        named = [sent(pair.result, one) if one else {} for one in self.traffics if self.traffics != "any"]
        tried = carrying if self.traffics == "any" else [one for one in named if one.get("traffic") != NOT_SENT]
        return next(filter(None, (self.at(pair, own) for own in tried)), None)

    def at(self, pair: Pair, own: Mapping[str, object], ratio: stats.Estimate | None = None) -> Finding | None:
        """What it finds at this traffic, by another ``ratio`` than that of medians where one is given."""
        words = Words(pair, named(pair.result, self.of, own) if self.of else own)
        if any(words.plain[name] != words.plain.get(value, value) for name, value in self.only.items()):
            return None
        with contextlib.suppress(NotMeasured):
            for name in self.needs:
                words.number(name)
            if self.of:
                words.ratio = ratio or words.number(f"ratio.{self.of}")
            return self._found(words) if words.ratio.n or not self.of else None
        return None

    def _found(self, words: Words) -> Finding | None:
        evidence = list(words.sentences(self.evidence))
        if not (evidence or self.of or self.needs or self.when):
            return None
        if not words.holds(self.when):
            return Finding(words.say(self.instead), tuple(evidence))
        claim = words.say(self.claim)
        if self.of:
            evidence.insert(0, words.say(f"{self.shown}: {{both.{self.of}}}: {times(words.ratio)}"))
            doubt = _FUNCTIONS[self.doubt](words) if self.doubt else ""
            if not doubt and words.ratio.n == 1:
                claim = words.say(f"{self.topic}: whether {{other}} and {{base}} differ, one run does not show: {times(words.ratio)}.")
            elif why := doubt or ("" if words.ratio.decided else times(words.ratio)):
                claim = words.say(f"{self.topic}: the difference between {{other}} and {{base}} is not significant, {why}.")
        return Finding(claim, tuple(evidence), " ".join(dict.fromkeys(words.sentences(self.reason))) or self.unexplained)


def of(part: str) -> list[Look]:
    """Those of a part of looks.yaml."""
    return [_FUNCTIONS[entry] if isinstance(entry, str) else Row(**entry) for entry in ROWS[part]]


def findings(result: Result, looks: Iterable[Look]) -> list[Finding]:
    """What each look finds in each pair, in order, with the setting that a pair's cases share in front; none twice."""
    found = []
    for pair in pairs(result):
        setting = f"{pair.setting}: " if pair.setting else ""
        for look in looks:
            seen = look(pair)
            found += [replace(one, claim=setting + one.claim) for one in ([seen] if isinstance(seen, Finding) else seen or ())]
    return list(dict.fromkeys(found))


def notes(result: Result, own: Iterable[str] = ()) -> list[str]:
    """What stands below an answer: that it was emulated, its ``own`` sentences, and what was left out."""
    emulated = ["Measured in the emulated lab: the rates are the emulator's, no result about hardware."] if result.emulated else []
    return [f"*{text}*" for text in (*emulated, *own, *(f"{sentence(left)}." for left in result.manifest.get("left_out", [])))]


def explained(result: Result, looks: Iterable[Look], none: str = NO_FINDING) -> str:
    """What `findings` finds, as `numbered`."""
    return numbered(findings(result, looks), none)


def numbered(found: Iterable[Finding], none: str) -> str:
    """Findings as a numbered list, or, without any, the words ``none``."""
    return "\n".join(f"{place}. {finding.markdown()}" for place, finding in enumerate(found, 1)) or none
