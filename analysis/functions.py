# SPDX-License-Identifier: GPL-2.0-or-later
"""In which functions the modelled processor's instructions and misses fell, per unit of data: a flat profile, for no stacks are recorded.

Divided by the model's own data of the same windows, over the roles of `path`, as in `model`. The model leaves a poll-mode thread's empty
polls out; an early one left them in.
"""

import functools
from dataclasses import asdict

import pandas as pd

from vsprof.analysis import messages, model, stats, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.source import on_path, samples, select
from vsprof.analysis.sources import MODEL

KEY = ["role", "object", "function"]
PLACE = ["run_id", "window"]
UNNAMED = "(unknown)"
COLUMNS = ["case_id", "traffic", "load", "metric", *KEY, "unit", "median", "low", "high", "n", "share_of_all"]


def hottest(result: Result, case_id: str, counter: str, count: int, *, traffic: str, load: str) -> pd.DataFrame:
    """The `count` functions of a case with most of `counter` (`instructions`, `l1d_misses`, …) per unit of data, the first on top.

    One row a role and function, in COLUMNS: median over repetitions, low and high of its 95 % interval, n, and `share_of_all` that
    the model counted [fraction]. Empty if nothing was counted.
    """
    left, data = per_window(result, case_id, counter, traffic, load)
    word = vocabulary.per_data()[traffic]
    where = {"case_id": case_id, "traffic": traffic, "load": load, "metric": f"model_{counter}_per_{word}"}
    whole = MODEL.estimate(result, **where).median
    medians = left.groupby("run_id").sum().div(data.groupby("run_id").sum(), axis=0).median()
    rows = []
    for key in medians[medians > 0].sort_values(ascending=False, kind="stable").index[:count]:
        found = estimate(left[key], data)
        row = {**where, **dict(zip(KEY, key, strict=True)), "unit": model.unit(counter, word)}
        rows.append({**row, **asdict(found), "share_of_all": found.median / whole})
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(("median", "low", "high", "share_of_all"), float))


def profiled(result: Result) -> dict[str, str]:
    """The traffic and load whose profile is shown: one at saturation, whose packets can be counted; empty where the model saw none."""
    found = vocabulary.at_saturation(style.traffics(model.windows(result))) if MODEL.present(result) else []
    return dict(zip(("traffic", "load"), found[0], strict=True)) if found else {}


def missing(result: Result) -> list[str]:
    """Why there is no profile of a traffic at saturation; nothing if there is one."""
    if not MODEL.present(result):
        return MODEL.missing(result, ("cycles",))
    if not result.functions.rows:
        return [messages.no_functions(result.path.name)]
    # The load is a varied value: a table of which no row has one has no column for it.
    known = {name: value for name, value in profiled(result).items() if name in result.functions.names}
    return [messages.NOTHING_SATURATED] if not known or _rows(result, most=1, **known).empty else []


def named(where: str, function: str) -> str:
    """A function as figures and texts call it: `fdget (kernel)`; without a name, by the place in its file, or by the file alone."""
    if function == UNNAMED:
        return f"{where}, unnamed"
    return function if function.startswith(f"{where}+") else f"{function} ({where})"


def _rows(result: Result, **where: object) -> pd.DataFrame:
    columns = [*PLACE, "case_id", "traffic", "load", *KEY, "cpu", "mode", "value"]
    known = [name for name in columns if name in result.functions.names]
    return result.functions.select(known, source="model", testbed=result.testbed, **where)


@functools.cache
def per_window(result: Result, case_id: str, counter: str, traffic: str, load: str) -> tuple[pd.DataFrame, pd.Series]:
    """One row a window, one column a function (KEY): its count. And each window's data."""
    rows = _rows(result, case_id=case_id, name=counter, traffic=traffic)
    rows = select(rows[on_path(result, rows)], traffic=traffic, load=load)
    windows = select(model.windows(result), case_id=case_id, traffic=traffic, load=load).dropna(subset=["data"]).set_index(PLACE)
    # A function that a window does not name has zero there; a window that names none was recorded without functions, and is left out.
    counts = rows.pivot_table(index=PLACE, columns=KEY, values="value", aggfunc="sum", fill_value=0.0)
    counts = counts.loc[counts.index.intersection(windows.index)]
    return counts, windows.loc[counts.index, "data"]


def estimate(counts: pd.Series, data: pd.Series) -> stats.Estimate:
    """Of one function per unit of data, from its counts and the data of the same windows."""
    return stats.estimate(samples(pd.DataFrame({"part": counts, "per": data}).reset_index()))
