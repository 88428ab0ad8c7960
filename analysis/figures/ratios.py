# SPDX-License-Identifier: GPL-2.0-or-later
"""How many times each metric of the packet path is that of the other case, and its 95 % interval. Filled: the interval excludes 1. The
metrics that differ most are on top, and those beyond the first forty are left out; of many metrics, one in twenty would seem to differ
by chance alone."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from vsprof.analysis import compare, comparison, style
from vsprof.analysis.load import Result
from vsprof.terms import units

MOST = 40
COLOURS = {"software": style.INK, "model": style.CAUSES["memory"]["color"], "hardware": style.STATES["kernel"]["color"]}


def table(result: Result) -> pd.DataFrame:
    """One row a metric of software counters and pair of cases; `median`, `low` and `high` are of the ratio."""
    found = []
    for pair in comparison.pairs(result):
        one = compare.compared(compare.Side(result, pair.base), compare.Side(result, pair.other))
        rows = one.table[(one.table["source"] == "software") & one.table["role"].isin(["all", "path", "switch"])]
        found.append(of_comparison(rows, one.title))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def of_comparison(rows: pd.DataFrame, title: str) -> pd.DataFrame:
    """The rows of a comparison as this figure draws them."""
    shown = rows.assign(what=compare.names(rows))[rows["ratio"] > 0].head(MOST)
    shown["what"] += [f", {style.traffic_name(traffic, load)}" for traffic, load in zip(shown["traffic"], shown["load"], strict=True)]
    told = shown["verdict"].isin(["more", "less"])
    drawn = shown.assign(label=title, median=shown["ratio"], unit="ratio", sure=told)
    return drawn[["label", "what", "source", "median", "low", "high", "n", "unit", "sure"]]


def plot(table: pd.DataFrame) -> Figure:
    groups = list(table.groupby("label", sort=False))
    figure, axes = style.panels([0.9 + 0.22 * len(rows) for _, rows in groups])
    for (label, rows), axis in zip(groups, axes[:, 0], strict=True):
        for place, row in enumerate(rows.itertuples()):
            colour = COLOURS[row.source]
            style.interval(axis, row, place, color=colour, capsize=2, lw=1.1, fmt="none")
            axis.plot(row.median, place, "o", ms=4.5, color=colour, mfc=colour if row.sure else "white")
        for source in rows["source"].unique():
            axis.plot([], [], "o", ms=4.5, color=COLOURS[source], label=source)
        style.labels(axis, rows["what"])
        axis.axvline(1, color="#888888", lw=1, zorder=0)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda value, _: f"{units.significant(value)}×")
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.tick_params(axis="y", labelsize=8)
        axis.set_title(label)
        axis.set_xlabel("ratio (logarithmic)")
    return style.legend_above(figure)
