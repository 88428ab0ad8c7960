# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof compare A B`: every metric of two cases as a ratio, what their cycles differ by, and a verdict that says no more than the data.

A and B are two switches (or accesses, or labels of cases) of one result, or two results, whose like cases are then compared.
"""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from vsprof.analysis import decompose, everything, messages, metrics, model, stats, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.source import SERIES, by_series, ratio_between
from vsprof.analysis.sources import PROCESSORS, SOURCES, speakers
from vsprof.terms import units

SPOKEN = ["traffic", "load", "metric", "role", "unit"]
WHOSE = ["source", *SPOKEN]
COLUMNS = [*WHOSE, "a", "b", "ratio", "low", "high", "effect", "detectable", "n", "verdict", "better"]
OF_CASE = [name for name in SERIES if name != "case_id"]
FORTH = {"packet_rate_sent", "packet_rate_into_switch", "offered_rate", "request_rate"}
"""What the experiment itself sets or pushes: no result of a case."""
Series = Mapping[tuple, dict[int, np.ndarray]]
"""A case's windows by what OF_CASE says of them, and by repetition, as source.by_series gives them."""
LARGEST = 3
"""Parts of a difference of cycles that are named."""


@dataclass(frozen=True)
class Side:
    """One of the two: a case of a result."""

    result: Result
    case: str

    @property
    def name(self) -> str:
        return str(self.result.cases.loc[self.case, "label"])


@dataclass(frozen=True)
class Comparison:
    """Two like cases. A ratio above 1 means: more with `b`."""

    a: Side
    b: Side
    table: pd.DataFrame
    """One row a metric, in COLUMNS, the surest and largest differences first."""
    lost: pd.DataFrame
    """One row a metric that `a` has and `b` has not, in WHOSE."""
    parts: pd.DataFrame
    """Every decomposition of cycles that both have: decompose.COLUMNS with `source`, `traffic`, `load`; the largest parts first."""

    @property
    def title(self) -> str:
        names = [self.a.name, self.b.name]
        if self.a.result is not self.b.result:
            names = [f"{side.name} of {side.result.path.name}" for side in (self.a, self.b)]
        return f"{names[1]} against {names[0]}"

    @property
    def verdict(self) -> str:
        """In words: how many metrics differ, and what makes the difference of cycles, where that is known."""
        told = self.table["verdict"].isin(["more", "less"]).sum()
        text = messages.compared(len(self.table), int(told), int((self.table["verdict"] == messages.NOT_SIGNIFICANT).sum()))
        return " ".join([text, *self._causes(), *([] if self.a.result is self.b.result else [messages.OTHER_CAMPAIGNS])])

    def _causes(self) -> Iterator[str]:
        for (source, traffic, load_), parts in self.parts.groupby(["source", "traffic", "load"], sort=False):
            whole = parts[parts["split"] == "whole"].iloc[0]
            name = f"{style.traffic_name(traffic, load_)} ({source})"
            if not decided(whole):
                yield messages.cycles_not_told(name)
                continue
            # Instructions, and CPI's causes: `instructions × 0.41`, by how much a part alone multiplies the cycles.
            own = parts[(parts["split"] == "cause") | ((parts["split"] == "factor") & (parts["cause"] == "instructions"))]
            words = [
                f"{PROCESSORS[source].causes.get(part.cause, part.cause)} × {units.significant(float(np.exp(part.part)))}"
                for _, part in own.iterrows()
                if decided(part)
            ]
            yield messages.cycles_differ(name, float(np.exp(whole.part)), words[:LARGEST])


def of_results(a: Result, b: Result) -> list[Comparison]:
    """The like cases of two results. BadInput where there are none, or where the two were measured on different testbeds."""
    if a.testbed != b.testbed or a.emulated != b.emulated:
        raise messages.other_testbeds(a.testbed, b.testbed)
    both = [case for case in a.cases.index if case in b.cases.index]
    if not both:
        raise messages.no_like_cases(list(a.cases["label"]), list(b.cases["label"]))
    return [compared(Side(a, case), Side(b, case)) for case in both]


def of_cases(result: Result, a: str, b: str) -> list[Comparison]:
    """Two switches, accesses or labels of cases: each case of `a` with that of `b` that has the same other values; BadInput without any."""
    found = [named(result, word) for word in (a, b)]
    alike = {case: (result.varied[case], topology) for case, topology in result.cases["topology"].items()}
    pairs = [(one, other) for one in found[0] for other in found[1] if one != other and alike[one] == alike[other]]
    if not pairs:
        raise messages.no_like_cases(*(list(result.cases.loc[cases, "label"]) for cases in found))
    return [compared(Side(result, one), Side(result, other)) for one, other in pairs]


def lost(a: Result, b: Result) -> dict[str, str]:
    """What cases of `a` have no finished run in `b`, and their labels: a switch that dies has no number that could be worse."""
    return {str(case): str(label) for case, label in a.cases["label"].items() if case not in b.cases.index}


def of_path(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Those rows of a comparison's table that are of the whole path; of the switch, where they are of nothing else."""
    alone = ~rows["metric"].isin(table.loc[table["role"].isin(["all", "path"]), "metric"])
    return rows[_whole(rows, table) | alone]


def names(rows: pd.DataFrame) -> pd.Series:
    """Each row's metric, and its role behind it where it is not of the whole path."""
    return rows["metric"] + (" (" + rows["role"] + ")").mask(_whole(rows, rows), "")


def _whole(rows: pd.DataFrame, table: pd.DataFrame) -> pd.Series:
    """Which rows are of the whole path: of role "path"; where the metric has no such row, of role "all"."""
    path = table.loc[table["role"] == "path", "metric"]
    return (rows["role"] == "path") | ((rows["role"] == "all") & ~rows["metric"].isin(path))


def named(result: Result, word: str) -> list[str]:
    """The cases that a word means: one by its id or label, those of a switch or an access. BadInput where there is none."""
    cases = result.cases
    for named in (cases.index == word, cases["label"] == word, cases["switch"] == word, cases["access"] == word):
        if named.any():
            return [str(case) for case in cases.index[named]]
    raise messages.no_such_case(word, result.path, sorted({*cases["switch"], *cases["access"].dropna(), *cases["label"]}))


def compared(a: Side, b: Side) -> Comparison:
    rows, lost = [], []
    for source in SOURCES.values():
        both = tuple(by_series(source.rows(side.result, case_id=side.case), OF_CASE) for side in (a, b))
        rows += _rows(a, b, source.name, speakers(source), *both)
        lost += _missing(source.name, *both)
    known = {(row["traffic"], row["load"], row["metric"]) for row in [*rows, *lost]}
    for collector, source, *both in _counted(a, b, known):
        rows += _rows(a, b, source, (collector,), *both)
        lost += _missing(source, *both)
    table = pd.DataFrame(rows, columns=COLUMNS)
    strength = np.abs(np.log(table["ratio"].where(table["ratio"] > 0))).fillna(0.0)
    sure = table["verdict"].isin(["more", "less"])
    order = table.assign(sure=~sure, strength=-strength).sort_values(["sure", "strength"], kind="stable")
    return Comparison(a, b, table.loc[order.index].reset_index(drop=True), pd.DataFrame(lost, columns=WHOSE), _parts(a, b))


def _counted(a: Side, b: Side, known: Collection[tuple[str, str, str]]) -> Iterator[tuple[str, str, Series, Series]]:
    """Whatever else a collector or a traffic wrote, as the last section of reports has it, by collector and source: not what is among the
    metrics already, be it under the name that the model's or a PMU's have there, nor counts that were zero in both cases."""
    of_a, of_b = (everything.of(side.result, side.case) for side in (a, b))
    for whose in of_a:
        both = [by_series(one[whose], OF_CASE) if whose in one else {} for one in (of_a, of_b)]
        left = {key for key in {*both[0], *both[1]} if not _known(key, known) and not _zero(key, both)}
        kept = [{key: sample for key, sample in one.items() if key in left} for one in both]
        yield *whose, kept[0], kept[1]


def _known(key: tuple, known: Collection[tuple[str, str, str]]) -> bool:
    where = dict(zip(OF_CASE, key, strict=True))
    return any((where["traffic"], where["load"], f"{one.prefix}{where['metric']}") in known for one in SOURCES.values())


def _zero(key: tuple, both: Iterable[Series]) -> bool:
    """Whether it is a count that was always zero, where it was counted."""
    samples = [run for one in both for run in one.get(key, {}).values()]
    return dict(zip(OF_CASE, key, strict=True))["unit"] in units.COUNTS and not any(run[:, 0].any() for run in samples)


def _told(key: tuple) -> bool:
    where = dict(zip(OF_CASE, key, strict=True))
    return where["cpu"] == -1 and where["metric"] not in FORTH and not where["metric"].endswith(model.WITH_POLLING)


def _missing(source: str, of_a: Series, of_b: Series) -> Iterator[dict[str, object]]:
    for key in (key for key in of_a if key not in of_b and _told(key)):
        where = dict(zip(OF_CASE, key, strict=True))
        yield {"source": source, **{name: where[name] for name in SPOKEN}}


def _rows(
    a: Side,
    b: Side,
    source: str,
    collectors: tuple[str, ...],
    of_a: Series,
    of_b: Series,
) -> Iterator[dict[str, object]]:
    for key in (key for key in of_a if key in of_b and _told(key)):
        where = dict(zip(OF_CASE, key, strict=True))
        bare = where["metric"].removeprefix(SOURCES[source].prefix)
        samples = of_a[key], of_b[key]
        ratio = ratio_between(*reversed(samples), paired=a.result is b.result and bool(a.result.order))
        lists = [list(sample.values()) for sample in samples]
        values = [stats.median(one) for one in lists]
        yield {
            "source": source, **{name: where[name] for name in SPOKEN},
            "a": values[0], "b": values[1], "ratio": ratio.median, "low": ratio.low, "high": ratio.high,
            "effect": stats.effect(lists[1], lists[0]), "detectable": ratio.detectable, "n": ratio.n, "verdict": _verdict(ratio, values),
            "better": vocabulary.better(where["traffic"], bare, collectors),
        }  # fmt: skip


def _verdict(ratio: stats.Estimate, values: list[float]) -> str:
    if values[0] == values[1] == 0:
        return messages.BOTH_ZERO
    if np.isnan(ratio.median):
        return messages.NO_RATIO
    if ratio.low is None:
        return messages.NO_INTERVAL
    if not ratio.decided:
        return messages.NOT_SIGNIFICANT
    return "more" if ratio.median > 1 else "less"


def _parts(a: Side, b: Side) -> pd.DataFrame:
    found = []
    for source, (traffic, load_) in itertools.product(PROCESSORS, metrics.carrying(a.result)):
        parts = decompose.between((b.result, b.case), (a.result, a.case), source=source, traffic=traffic, load=load_)
        parts = parts.assign(source=source, traffic=traffic, load=load_)
        found.append(parts.sort_values("part", key=lambda part: -part.abs(), kind="stable"))
    nothing = pd.DataFrame(columns=[*decompose.COLUMNS, "source", "traffic", "load"])
    return pd.concat(found or [nothing], ignore_index=True)


def decided(part: Any) -> bool:
    """Whether a part of a decomposition is not 0."""
    return bool(part.low > 0 or part.high < 0)
