# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof compare A B --fail-on RULE`: is B worse than A by more than is allowed? Judged by intervals, for scripts and CI.

A rule names a metric and a ratio, B over A, that must not be: ``throughput<0.95`` fails where the whole 95 % interval of the ratio is below
0.95, and holds where none of it is. Where the interval lies on both sides nobody can tell, and more repetitions would.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from xml.etree import ElementTree as xml

import numpy as np
import pandas as pd
import yaml

from vsprof.analysis import compare, messages, style, vocabulary
from vsprof.analysis.compare import Comparison
from vsprof.analysis.source import select
from vsprof.terms import units
from vsprof.terms.errors import BadInput

FAILS, HOLDS, UNTOLD = "fails", "holds", "can't tell"
STATUS = {FAILS: 1, UNTOLD: 3, HOLDS: 0}
"""The exit status of each outcome, the gravest first."""
THROUGHPUT = "throughput"
"""In a rule: what each traffic at saturation is judged by, be it packets or bits a second."""
NUMBER = ("source", "traffic", "load", "metric", "role", "unit")
"""What names a number of a comparison."""
_SUBJECT = re.compile(r"\s*(?:(?P<traffic>\w+)(?:/(?P<load>\w+))?:)?\s*(?P<metric>\w+)(?:@(?P<role>[\w -]+?))?\s*")
_SIGN = re.compile(r"[<>=!~≤≥]+")
_BOUND = re.compile(r"\s*(?P<bound>\d+(?:\.\d+)?)\s*")
FAIL_ON = "--fail-on"


@dataclass(frozen=True)
class Rule:
    """What must not be: a ratio of `metric` below (``<``) or above (``>``) `bound`; of any traffic and load where none is named."""

    text: str
    metric: str
    sign: str
    bound: float
    traffic: str | None = None
    load: str | None = None
    role: str | None = None
    place: str = field(default=FAIL_ON, compare=False)
    """Where it stands: the option, or a file and the rule's number in it."""

    @classmethod
    def read(cls, text: str, place: str = FAIL_ON) -> Self:
        """Raises ``BadInput``, which says what of the text is wrong."""
        if not (sign := _SIGN.search(text)):
            raise messages.no_rule(place, text, messages.NO_OPERATOR if text.strip() else messages.NO_RULE)
        if sign[0] not in ("<", ">"):
            raise messages.no_rule(place, text, messages.wrong_operator(sign[0]))
        before, after = text[: sign.start()], text[sign.end() :]
        if not (subject := _SUBJECT.fullmatch(before)):
            raise messages.no_rule(place, text, messages.wrong_subject(before.strip()))
        if not (bound := _BOUND.fullmatch(after)) or not float(bound["bound"]):
            raise messages.no_rule(place, text, messages.wrong_bound(after.strip()))
        return cls(text.strip(), sign=sign[0], bound=float(bound["bound"]), place=place, **subject.groupdict())

    def of(self, table: pd.DataFrame, every: pd.DataFrame | None = None) -> pd.DataFrame:
        """The rows of a comparison that it is about: of the whole path, or of the switch's own, unless it names a role. ``every``: with
        which other rows, where these are a part of them."""
        found = compare.of_path(table, table if every is None else every) if self.role is None else table[table["role"] == self.role]
        wanted, load = self.metric, self.load
        if self.metric == THROUGHPUT:
            judged = {name: one.metric for name in found["traffic"].unique() if (one := vocabulary.judged_by(name))}
            wanted, load = found["traffic"].map(judged), load or "saturation"
        asked = {name: value for name, value in (("traffic", self.traffic), ("load", load)) if value is not None}
        return select(found[found["metric"] == wanted], **asked)

    def outcome(self, low: float | None, high: float | None) -> str:
        """Of a ratio with that interval; without one nobody can tell."""
        if low is None or high is None or np.isnan(low) or np.isnan(high):
            return UNTOLD
        beyond, within = (high < self.bound, low >= self.bound) if self.sign == "<" else (low > self.bound, high <= self.bound)
        return FAILS if beyond else HOLDS if within else UNTOLD


@dataclass(frozen=True)
class Judged:
    """A rule, what it was asked of, and what came out."""

    rule: Rule
    title: str
    case_id: Mapping[str, str | None]
    """Of both sides, by their names `a` and `b`; None for the side that has no such case."""
    number: Mapping[str, str | None]
    """Which number was judged, by NUMBER; of a case that was lost what the rule says of it."""
    outcome: str
    ratio: float
    low: float | None
    high: float | None
    detectable: float | None
    n: int
    verdict: str
    """Of the comparison, which knows nothing of the rule: "more", "less", "not significant", …"""

    @property
    def where(self) -> str:
        """Traffic, metric and role, in words; of a case that was lost, that it was."""
        if self.case_id["b"] is None:
            return messages.LOST
        role = "" if self.number["role"] in ("all", "path") else f" ({self.number['role']})"
        return f"{style.traffic_name(self.number['traffic'], self.number['load'])}: {self.number['metric']}{role}"

    @property
    def reason(self) -> str:
        """The ratio and its interval; where nobody can tell, what the data could have shown."""
        if self.n == 0:
            return messages.LOST_NUMBER if self.verdict == messages.LOST_NUMBER else "no ratio"
        if self.low is None or np.isnan(self.low):
            return f"ratio {units.significant(self.ratio)}, no interval (n={self.n})"
        told = f"ratio {units.significant(self.ratio)} [{units.significant(self.low)}, {units.significant(self.high)}], n={self.n}"
        if self.outcome != UNTOLD or self.detectable is None:
            return told
        return f"{told}; {self.n} repetitions show a difference of {units.significant(100 * self.detectable, 2)} % or more"

    def to_json(self) -> dict[str, Any]:
        """As docs/gating.md lists it; scripts rely on the names. Those of NUMBER and `verdict` are as in the comparison's metrics."""
        told = {"rule": self.rule.text, "title": self.title, "case_id": dict(self.case_id), **self.number, "where": self.where}
        rest = {name: getattr(self, name) for name in ("ratio", "low", "high", "detectable", "n", "verdict", "outcome")}
        return {name: units.finite(value) for name, value in {**told, **rest}.items()}


def rules(given: Iterable[str], file: Path | None, asked: Sequence[Path] = ()) -> list[Rule]:
    """Those of the command line, then those of a YAML file, which is a list of them. Raises ``BadInput``, also where there is none and
    somebody `asked` for files about them: a gate without rules would always hold."""
    found = [Rule.read(one) for one in given]
    if asked and not found and file is None:
        raise messages.no_rules_asked(asked[0])
    return found if file is None else [*found, *_in_file(file)]


def _in_file(path: Path) -> list[Rule]:
    try:
        listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise messages.bad_yaml(path, error) from error
    except (OSError, UnicodeDecodeError) as error:
        raise messages.unreadable_rules(path, getattr(error, "strerror", None) or error) from error
    if not isinstance(listed, list) or not listed:
        raise messages.no_list_of_rules(path, listed)
    places = {f"{path}, rule {number}:": one for number, one in enumerate(listed, 1)}
    for place, one in places.items():
        if not isinstance(one, str):
            raise messages.rule_is_no_text(place.rstrip(":"), one)
    return [Rule.read(one, place) for place, one in places.items()]


def judge(found: Sequence[Comparison], asked: Iterable[Rule], lost: Mapping[str, str] = MappingProxyType({})) -> list[Judged]:
    """Each rule for each pair of like cases; for `lost` cases and numbers, which the second result does not have, the outcome is UNTOLD.
    Raises ``BadInput`` for a rule about nothing that was counted."""
    asked = list(asked)
    judged = [_lost(rule, case, label) for rule in asked for case, label in lost.items()]
    for rule in asked:
        about = [(one, row) for one in found for row in rule.of(one.table).itertuples()]
        # Two switches of one result have different counters by nature.
        pairs = [one for one in found if one.a.result is not one.b.result]
        gone = [(one, row) for one in pairs for row in rule.of(one.lost, pd.concat([one.table, one.lost])).itertuples()]
        if not about and not gone:
            raise _about_nothing(rule, pd.concat([one.table for one in found], ignore_index=True))
        judged += [_judged(rule, one, row) for one, row in about]
        judged += [_gone(rule, one, row) for one, row in gone]
    return judged


def _about_nothing(rule: Rule, table: pd.DataFrame) -> BadInput:
    """The first of its words that the numbers of `table` have not, each looked for among those that have the words before it."""
    told = table
    for what in ("traffic", "load", "metric", "role"):
        seen = getattr(rule, what)
        if seen is None or (what, seen) == ("metric", THROUGHPUT):
            continue
        among = told
        told = told[told[what] == seen]
        if told.empty:
            known = [*among[what].unique(), *([THROUGHPUT] if what == "metric" else [])]
            return messages.nothing_to_judge(rule.place, rule.text, what, seen, sorted(known))
    # Its words are all there, as far as it has some: then it is about the whole path, and the metric is of single roles.
    return messages.nothing_to_judge(rule.place, rule.text, "metric", rule.metric, [])


def _judged(rule: Rule, pair: Comparison, row: Any) -> Judged:
    equal = row.a == row.b == 0
    outcome = HOLDS if equal else rule.outcome(row.low, row.high)
    cases = {"a": pair.a.case, "b": pair.b.case}
    number = {name: getattr(row, name) for name in NUMBER}
    ratio, low, high = (1.0, 1.0, 1.0) if equal else (row.ratio, row.low, row.high)
    return Judged(rule, pair.title, cases, number, outcome, ratio, low, high, row.detectable, int(row.n), row.verdict)


def _gone(rule: Rule, pair: Comparison, row: Any) -> Judged:
    cases, number = {"a": pair.a.case, "b": pair.b.case}, {name: getattr(row, name) for name in NUMBER}
    return Judged(rule, pair.title, cases, number, UNTOLD, np.nan, None, None, None, 0, messages.LOST_NUMBER)


def _lost(rule: Rule, case: str, label: str) -> Judged:
    number = {name: getattr(rule, name, None) for name in NUMBER}
    return Judged(rule, label, {"a": case, "b": None}, number, UNTOLD, np.nan, None, None, None, 0, messages.LOST)


def worst(judged: Iterable[Judged]) -> str:
    """The gravest outcome; that all rules hold, if there is none."""
    return next((outcome for outcome in STATUS if outcome in {one.outcome for one in judged}), HOLDS)


def text(judged: Sequence[Judged]) -> str:
    """A line a rule and pair of cases, the gravest first, and the outcome of all."""
    lines = [f"{one.outcome:10}  {one.rule.text}  {one.title}, {one.where}: {one.reason}" for one in _sorted(judged)]
    return "\n".join([*lines, f"gate: {worst(judged)}"])


def markdown(judged: Sequence[Judged]) -> str:
    """The same as a summary for a pull request."""
    heads = ["outcome", "rule", "compared", "number", "ratio, 95 % interval"]
    rows = [[f"**{one.outcome}**", f"`{one.rule.text}`", one.title, one.where, one.reason] for one in _sorted(judged)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))
    return f"### vsprof: {worst(judged)}\n\n{table}\n"


def junit(judged: Sequence[Judged]) -> str:
    """The same as JUnit's XML, as CI systems read it: a rule that fails is a failure, one that nobody can tell an error."""
    counts = {FAILS: sum(one.outcome == FAILS for one in judged), UNTOLD: sum(one.outcome == UNTOLD for one in judged)}
    suite = xml.Element(
        "testsuite", name="vsprof compare", tests=str(len(judged)), failures=str(counts[FAILS]), errors=str(counts[UNTOLD]), skipped="0"
    )
    for one in judged:
        case = xml.SubElement(suite, "testcase", classname=one.title, name=f"{one.rule.text}: {one.where}")
        if one.outcome != HOLDS:
            told = xml.SubElement(case, "failure" if one.outcome == FAILS else "error", message=one.reason)
            told.text = f"{one.rule.text}: {one.outcome}: {one.reason}"
        else:
            xml.SubElement(case, "system-out").text = one.reason
    xml.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml.tostring(suite, encoding="unicode")}\n'


def _sorted(judged: Sequence[Judged]) -> list[Judged]:
    return sorted(judged, key=lambda one: list(STATUS).index(one.outcome))
