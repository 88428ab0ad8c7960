# SPDX-License-Identifier: GPL-2.0-or-later
"""How many times each metric of the packet path is that of the other case, and its 95 % interval. Filled: the interval excludes 1. The
metrics that differ most are on top, and those beyond the first forty are left out; of many metrics, one in twenty would seem to differ
by chance alone."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis import compare, comparison, style
from analysis.load import Result
from terms import units

NEEDS = ()
WALL_CLOCK = True
MOST = 40
COLOURS = {"software": style.INK, "model": style.CAUSE_COLOURS["memory"], "hardware": style.STATE_COLOURS["kernel"]}


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
    shown = rows[rows["ratio"] > 0].head(MOST)
    names = shown["metric"] + [f" ({role})" if role not in ("all", "path") else "" for role in shown["role"]]
    names += [f", {style.traffic_name(traffic, load)}" for traffic, load in zip(shown["traffic"], shown["load"], strict=True)]
    return pd.DataFrame(
        {"label": title, "what": names, "source": shown["source"], "median": shown["ratio"], "low": shown["low"], "high": shown["high"]}
    ).assign(n=shown["n"], unit="ratio", sure=shown["verdict"].isin(["more", "less"]))


def plot(table: pd.DataFrame) -> Figure:
    pairs = list(dict.fromkeys(table["label"]))
    heights = [0.9 + 0.22 * (table["label"] == label).sum() for label in pairs]
    figure, axes = style.panels(heights)
    for label, axis in zip(pairs, axes[:, 0], strict=True):
        rows = table[table["label"] == label]
        for place, row in enumerate(rows.itertuples()):
            colour = COLOURS[row.source]
            interval = style.error(row)
            axis.errorbar(
                row.median, place, xerr=interval, fmt="o", ms=4.5, color=colour, mfc=colour if row.sure else "white", capsize=2, lw=1.1
            )
        for source in dict.fromkeys(rows["source"]):
            axis.plot([], [], "o", ms=4.5, color=COLOURS[source], label=source)
        style.labels(axis, list(rows["what"]))
        axis.axvline(1, color="#888888", lw=1, zorder=0)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{units.significant(value)}×"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.tick_params(axis="y", labelsize=8)
        axis.set_title(label)
        axis.set_xlabel("ratio (logarithmic)")
    style.legend_above(figure, axes[:, 0])
    return figure
