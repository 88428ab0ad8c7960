# SPDX-License-Identifier: GPL-2.0-or-later
"""Every number that a collector or a traffic wrote, by whoever wrote it, whether a figure shows it or not: so what a new collector
counts, or an event or metric of one's own, is in the report without a line here.

`vsprof compare` has these rows, too, but for single CPUs and for what the experiment itself sets; beyond them it has the metrics that
analysis makes of counts, by role and mode, of which reports draw figures.

A count is told per unit of data where the traffic carries any, else per second; over all roles and CPUs. Anything else (a latency, a
rate, a gauge) is told as it was written, by role. A metric of the event catalogue is told of the path.
"""

import functools
import html
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from vsprof.analysis import describe, hardware, metrics, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.source import COLUMNS, WINDOW, summarised
from vsprof.terms import units

NOT_SHOWN = ("window_seconds",)
"""Only what others are divided by."""


@dataclass(frozen=True)
class Everything:
    """The tables of a report's last section, one a collector, folded away until they are asked for."""

    tables: dict[str, pd.DataFrame]
    """By the collector's name in reports; a row a number, a column a case."""
    never: dict[str, list[str]]
    """By collector, the counts that were zero in every window."""

    def _repr_html_(self) -> str:
        return "\n".join(self._part(name) for name in sorted({*self.tables, *self.never}))

    def _part(self, name: str) -> str:
        table, never = self.tables.get(name), self.never.get(name, [])
        shown = table.to_html(index=False, border=0, na_rep="–", escape=True) if table is not None else ""
        rest = f"<p>Never: {html.escape(', '.join(never))}.</p>" if never else ""
        count = 0 if table is None else table["number"].nunique()
        return f"<details><summary>{html.escape(name)} ({count} {'number' if count == 1 else 'numbers'})</summary>{shown}{rest}</details>"


def show(result: Result) -> Everything:
    """All of it, with 95 % intervals over repetitions."""
    found, never = {}, {}
    for collector, source, rows in _numbers(result):
        name = vocabulary.collector(collector) + ("" if source == "software" else f" ({source})")
        if not (part := _summary(result, collector, source, rows)).empty:
            found[name] = _worded(result, part, collector)
        if zero := _never(rows):
            never[name] = zero
    return Everything(found, never)


def summary(result: Result) -> pd.DataFrame:
    """One row a collector, source, number, role, traffic, load and case: median, low, high, n and unit; without counts that were always
    zero."""
    found = [_summary(result, *one).assign(collector=one[0], source=one[1]) for one in _numbers(result)]
    return pd.concat(found, ignore_index=True)


def of(result: Result, case_id: str) -> dict[tuple[str, str], pd.DataFrame]:
    """The same of one case as raw quotients, in COLUMNS, by collector and source, with counts that were always zero: what `compare` makes
    ratios of. What is zero in one case may be what matters in another."""
    tables = {one[:2]: _quotients(result, *one, zeros=True) for one in _numbers(result, case_id)}
    return {whose: table[table["case_id"] == case_id] for whose, table in tables.items()}


def _numbers(result: Result, case_id: str | None = None) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Collector, source, and its rows of this source (of one case where it is named), one after the other: a long campaign has millions of
    rows, of which no second copy is to be made."""
    frame = result.frame
    wanted = (frame["testbed"] == result.testbed) & (frame["traffic"] != "") & ~frame["name"].isin(NOT_SHOWN)
    wanted = wanted if case_id is None else wanted & (frame["case_id"] == case_id)
    groups = frame.loc[wanted, ["collector", "source"]].groupby(["collector", "source"], observed=True).groups
    for (collector, source), places in groups.items():
        yield str(collector), str(source), frame.loc[places, [*WINDOW, "name", "role", "cpu", "unit", "value", "enabled_s"]]


def _summary(result: Result, collector: str, source: str, rows: pd.DataFrame) -> pd.DataFrame:
    return summarised(result, _quotients(result, collector, source, rows)).rename(columns={"metric": "number"})


def _quotients(result: Result, collector: str, source: str, rows: pd.DataFrame, *, zeros: bool = False) -> pd.DataFrame:
    if (collector, source) == (hardware.COLLECTOR, hardware.HARDWARE.name):
        made, counted = hardware.catalogued(result), _of_rows(result, rows, zeros)
        # The same name would be two numbers: of all roles as it was counted, and of the path without idle polling.
        names, keys = (pd.MultiIndex.from_frame(one[["traffic", "load", "metric"]]) for one in (made, counted))
        return pd.concat([counted[~keys.isin(names)], made[COLUMNS]], ignore_index=True)
    return _of_rows(result, rows, zeros)


def _of_rows(result: Result, rows: pd.DataFrame, zeros: bool) -> pd.DataFrame:
    counts = rows["unit"].isin(units.COUNTS)
    others = rows[~counts].replace({"role": {"": "all"}})
    as_written = metrics.quotient(others, others["name"], others["value"], 1.0, others["unit"])
    return pd.concat([_counts(result, rows[counts], zeros), as_written], ignore_index=True)[COLUMNS]


def _counts(result: Result, rows: pd.DataFrame, zeros: bool) -> pd.DataFrame:
    sums = metrics.summed(rows, [*WINDOW, "name", "unit"], sort=False)
    shown = sums if zeros else sums[sums.groupby("name")["value"].transform("max") != 0]
    sums = shown.merge(_data_rates(result), on=WINDOW, how="left")
    span = sums["enabled_s"].astype(float).fillna(sums["window_seconds"])
    word = sums["traffic"].map(vocabulary.per_data())
    carried = word.notna() & (sums["data_rate"] > 0)
    per = span.where(~carried, sums["data_rate"] * span)
    # What was counted over a whole flood has no length of its own: it is told as it is.
    per, ending = per.fillna(1.0), ("_per_" + word.where(carried, "second")).where(per.notna(), "")
    return metrics.quotient(sums, sums["name"] + ending, sums["value"], per, sums["unit"])


@functools.cache
def _data_rates(result: Result) -> pd.DataFrame:
    return metrics.data_rates(result.frame)


def _never(rows: pd.DataFrame) -> list[str]:
    most = rows[rows["unit"].isin(units.COUNTS)].groupby("name")["value"].max()
    return sorted(most[most == 0].index)


def _worded(result: Result, part: pd.DataFrame, collector: str) -> pd.DataFrame:
    """A column a case."""
    who = part["role"].where(part["cpu"] < 0, "CPU " + part["cpu"].astype(str)).replace("all", "")
    shown = part.assign(
        traffic=[style.traffic_name(*pair) for pair in zip(part["traffic"], part["load"], strict=True)],
        place=[vocabulary.place(pair) for pair in zip(part["traffic"], part["load"], strict=True)],
        who=who,
        text=[describe.with_interval(row, row.unit) for row in part.itertuples()],
    )
    keys = ["place", "traffic", "number", "who"]
    wide = shown.pivot_table(index=keys, columns="label", values="text", aggfunc="first").sort_index()
    labels = [label for label in result.cases["label"] if label in wide.columns]
    table = wide[labels].reset_index().drop(columns="place").rename_axis(columns=None)
    meanings = [words.words if (words := vocabulary.number(number, (collector,))) else "" for number in table["number"]]
    table = table.assign(meaning=meanings) if any(meanings) else table
    return table if table["who"].any() else table.drop(columns="who")
