# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers that their collectors, or events of one's own, ask to be drawn. A count is per unit of data, over all roles and CPUs; a metric of
events is of the path; anything else is as it was written."""

import fnmatch

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import everything, hardware, style, vocabulary
from vsprof.analysis.load import Result

TAKES = "*"


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic and number (`metric`)."""
    asked = names(result)
    # What the catalogue calls `x_per_packet` is `x_per_megabit` elsewhere.
    asked |= {name.removesuffix(hardware.PER_PACKET) for name in asked & metrics(result)}
    found = everything.summary(result)
    drawn = found["number"].isin(asked) | found["number"].str.rpartition("_per_")[0].isin(asked)
    return found[drawn].rename(columns={"number": "metric"})


def plot(table: pd.DataFrame) -> Figure:
    groups = list(table.groupby(["metric", "traffic", "load", "role"], sort=False))
    figure, axes = style.panels([style.bar_height(len(part)) for _, part in groups])
    for ((metric, traffic, load, role), part), one in zip(groups, axes[:, 0], strict=True):
        style.bars(one, part, part["unit"].iloc[0], metric.replace("_", " "))
        one.set_title(style.traffic_name(traffic, load) + ("" if role == "all" else f", {role}"))
    return figure


def names(result: Result) -> set[str]:
    """Of the result's numbers and metrics of events those that ask to be drawn here: most results have none."""
    patterns, known = vocabulary.drawn_by("counts"), {*result.frame["name"].unique(), *metrics(result)}
    return {name for name in known if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)}


def metrics(result: Result) -> set[str]:
    """Those of the event catalogue."""
    return set(hardware.HARDWARE.facts(result).get("metrics") or {})
