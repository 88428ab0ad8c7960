# SPDX-License-Identifier: GPL-2.0-or-later
"""A source of numbers (software, the model, a PMU), and how its metrics are asked for: the same for each.

A source's table has one row per run, window, metric and role, in COLUMNS; the value is part / per, and both sides are kept apart until
windows are summed. Two sources are never mixed in one number.
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from vsprof.analysis import stats, vocabulary
from vsprof.analysis.load import Result
from vsprof.terms import schema

WINDOW = ["case_id", "run_id", "repetition", "traffic", "load", "window"]
COLUMNS = [*WINDOW, "metric", "role", "cpu", "part", "per", "unit"]
SERIES = ["case_id", "traffic", "load", "metric", "role", "cpu", "unit"]
WITH_POLLING = "_with_polling"
"""The ending of metrics of a processor with all of a poll-mode thread's polls in them, those that found nothing among them."""
Table = Callable[[Result], pd.DataFrame]


@dataclass(frozen=True)
class Source:
    """Whose numbers, and what is made of them.

    ``of``: every metric of a result, in COLUMNS. ``usual``: what completes the words by which one series is asked for, such as its role.
    ``present``: whether it counted anything that is to be trusted. ``label``: what stands beside its numbers. ``missing``: why the raw
    numbers of these names can't be shown. ``limits``: what a reader must know before trusting it. ``account``: of one case, by
    repetition, what `decompose.Account` holds; ``causes``: what it tells apart there, and the words for it.
    """

    name: str
    of: Table
    usual: Callable[[dict[str, object]], dict[str, object]]
    missing: Callable[[Result, Sequence[str]], list[str]]
    prefix: str = ""
    present: Callable[[Result], bool] = lambda _: True
    label: Callable[[Result], str] = lambda _: "software counters"
    limits: Callable[[Result], list[str]] = lambda _: []
    account: Callable[..., dict[int, np.ndarray]] | None = None
    causes: Mapping[str, str] = field(default_factory=dict, hash=False)
    collector: str = ""
    """The one that counts for it; empty: several do."""

    def rows(self, result: Result, **where: object) -> pd.DataFrame:
        """The table's rows whose SERIES columns equal the values asked for (a list means: any of these), in its order.

        A report asks for hundreds of series, and a long campaign's table has millions of rows: they are looked up, not looked for.
        """
        series, places, ends = _places(self.of, result)
        found = [places[ends[one] : ends[one + 1]] for one in select(series, **where).index]
        return self.of(result).iloc[np.sort(np.concatenate(found)) if found else []]

    def of_roles(self, result: Result, names: Iterable[str], **where: object) -> pd.DataFrame:
        """The rows of the named metrics by those of schema.ROLES that are of the path: what accounts are made of."""
        table = self.rows(result, metric=list(names), **where)
        return table[table["role"].isin(schema.ROLES) & on_path(result, table)]

    def facts(self, result: Result) -> dict[str, Any]:
        """What the manifest says of the source's collector; empty if it says nothing."""
        return ((result.manifest.get("facts") or {}).get("collectors") or {}).get(self.collector) or {}

    def estimate(self, result: Result, **where: object) -> stats.Estimate:
        """Median and interval of one metric of one case: estimate(result, case_id=…, traffic=…, load=…, metric=…)."""
        return stats.estimate(samples(self.rows(result, **self.usual(where))))

    def ratio(self, result: Result, case_id: str, base: str, *, without: str = "", **where: object) -> stats.Estimate:
        """How many times the metric of case `base` that of `case_id` is: in pairs where they ran interleaved.

        `without` a role: of the whole path less that; in each window what the path has, less what the role has.
        """
        cases = ({"case_id": case, **where} for case in (case_id, base))
        rows = (self._less(result, without, **one) if without else self.rows(result, **self.usual(one)) for one in cases)
        return ratio_between(*map(by_repetition, rows), paired=bool(result.order))

    def _less(self, result: Result, role: str, **where: object) -> pd.DataFrame:
        path, its = (self.rows(result, role=one, cpu=-1, **where) for one in ("path", role))
        both = path.merge(its[[*WINDOW, "part"]].rename(columns={"part": "its"}), on=WINDOW, how="left")
        # Where the role has no row there is no such thread. One that could not be counted leaves the path uncounted, too.
        return both.assign(part=both["part"] - both["its"].fillna(0.0))

    def summary(self, result: Result, names: Iterable[str], **where: object) -> pd.DataFrame:
        """Median, low, high and n of each series of the named metrics, in SERIES order, with the case's own columns.

        Cases come in the result's order. A series that could not be counted in any run is left out (see `missing`).
        """
        return summarised(result, self.rows(result, metric=list(names), **where))

    def per_data(self, *counters: str) -> list[str]:
        """The names of `counters` per unit of data, for every traffic."""
        return [f"{self.prefix}{counter}_per_{word}" for counter in counters for word in vocabulary.per_data().values()]

    def unit(self, result: Result, **where: object) -> str:
        """The unit of a metric; empty where nobody counted it."""
        found = self.rows(result, **where)["unit"]
        return "" if found.empty else str(found.iloc[0])


def of_path(where: dict[str, object]) -> dict[str, object]:
    """The whole path's, unless another role is asked for."""
    return {"role": "path", **where}


def on_path(result: Result, rows: pd.DataFrame) -> pd.Series:
    """Which rows are of the path from endpoint to endpoint: all but those of `host-other`, unless the host is an endpoint itself."""
    hosts = result.cases.index[result.cases["topology"] == "vm2host"]
    return (rows["role"] != "host-other") | rows["case_id"].isin(hosts)


def samples(table: pd.DataFrame, **where: object) -> stats.Sample:
    """One array (windows, 2) per repetition, from a table in COLUMNS."""
    return list(_split(select(table, **where), "run_id").values())


def by_repetition(table: pd.DataFrame, **where: object) -> dict[int, np.ndarray]:
    """The same by the number of the repetition."""
    return {int(repetition): run for repetition, run in _split(select(table, **where), "repetition").items()}


def by_series(table: pd.DataFrame, keys: list[str], run: str = "repetition") -> dict[tuple, dict[Any, np.ndarray]]:
    """`by_repetition` of each series, that is, of all rows with the same values of ``keys``, in the order of their first rows; by another
    column if asked for. At once: there are thousands of series, and to take them out one by one takes longer than all that is made of them.
    """
    series = table.groupby(keys, sort=False).ngroup().to_numpy()
    codes, runs = pd.factorize(table[run], sort=True)
    order = np.lexsort((codes, series))
    # As groupby itself does with rows without a name.
    order = order[series[order] >= 0]
    series, codes = series[order], codes[order]
    numbers = np.column_stack([table["part"].to_numpy(float), table["per"].to_numpy(float)])[order]
    ends = np.flatnonzero((np.diff(series) != 0) | (np.diff(codes) != 0)) + 1
    starts = np.append(0, ends)[: len(series)]
    names = table[keys].iloc[order[starts]].itertuples(index=False, name=None)
    found: dict[tuple, dict[Any, np.ndarray]] = {}
    for name, code, part in zip(names, codes[starts], np.split(numbers, ends), strict=False):
        found.setdefault(name, {})[runs[code]] = part
    return found


def ratio_between(over: dict[int, np.ndarray], under: dict[int, np.ndarray], *, paired: bool) -> stats.Estimate:
    """The ratio of two samples by repetition; `paired` as in stats.ratio."""
    if not paired:
        return stats.ratio(list(over.values()), list(under.values()))
    both = sorted(over.keys() & under.keys())
    return stats.ratio([over[one] for one in both], [under[one] for one in both], paired=True)


def summarised(result: Result, table: pd.DataFrame) -> pd.DataFrame:
    """`Source.summary` of all metrics of a table in COLUMNS."""
    rows = []
    for key, runs in by_series(table, SERIES, "run_id").items():
        if (found := stats.estimate(list(runs.values()))).n:
            rows.append({**dict(zip(SERIES, key, strict=True)), **asdict(found)})
    columns = [*SERIES, "median", "low", "high", "n"]
    table = pd.DataFrame(rows, columns=columns).astype({"median": float, "low": float, "high": float})
    order = {case: place for place, case in enumerate(result.cases.index)}
    table = table.merge(result.cases.reset_index(), on="case_id", how="left")
    return table.sort_values("case_id", key=lambda ids: ids.map(order), kind="stable").reset_index(drop=True)


def select(table: pd.DataFrame, **where: object) -> pd.DataFrame:
    """The rows whose columns equal the values asked for (a list means: any of these)."""
    wanted = np.ones(len(table), dtype=bool)
    for column, value in where.items():
        wanted &= (table[column].isin(value) if isinstance(value, list) else table[column] == value).to_numpy(bool)
    # One copy, not one for each column: large results are asked for hundreds of series.
    return table[wanted]


@functools.cache
def _places(table_of: Table, result: Result) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Each series of the table, the table's row numbers from series to series, and where each series' begin among them, with their end."""
    table = table_of(result)
    numbers = table.groupby(SERIES, sort=False, dropna=False).ngroup().to_numpy()
    _, firsts, counts = np.unique(numbers, return_index=True, return_counts=True)
    return table[SERIES].iloc[firsts].reset_index(drop=True), np.argsort(numbers, kind="stable"), np.append(0, np.cumsum(counts))


def _split(table: pd.DataFrame, key: str) -> dict[object, np.ndarray]:
    """By each value of `key`, in its order: part and per, shape (rows, 2). As groupby, which takes ten times as long for small groups."""
    codes, keys = pd.factorize(table[key], sort=True)
    order = np.argsort(codes, kind="stable")
    numbers = np.column_stack([table["part"].to_numpy(float), table["per"].to_numpy(float)])[order]
    return dict(zip(keys, np.split(numbers, np.flatnonzero(np.diff(codes[order])) + 1), strict=True)) if len(keys) else {}
