# SPDX-License-Identifier: GPL-2.0-or-later
"""The longest time without a frame when the switch is killed and started again, as bars [seconds]. The diamond is when the
switch said that it runs again, counted from the kill: what lies behind it is the reconnection, and where it lies behind the bar, frames
flowed before it said so. A row without a bar did not come back while it was waited for."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import metrics, style
from analysis.load import Result
from analysis.sources import SOFTWARE

NEEDS = tuple(metrics.OUTAGE)
WALL_CLOCK = True


def table(result: Result) -> pd.DataFrame:
    """One row a case and metric of the outage."""
    return SOFTWARE.summary(result, list(metrics.OUTAGE))


def plot(table: pd.DataFrame) -> Figure:
    labels = list(dict.fromkeys(table["label"]))
    figure, axes = style.panels([style.bar_height(len(labels))])
    one = axes[0, 0]
    by_case = table.set_index(["label", "metric"])
    outages = table[table["metric"] == "came_back"].drop(columns=["median", "low", "high", "unit", "n"])
    outages = outages.merge(table[table["metric"] == "outage"][["label", "median", "low", "high"]], on="label", how="left")
    away = [by_case.loc[(label, "switch_away"), "median"] for label in labels]
    if outages["median"].notna().any():
        style.bars(one, outages, "", "longest time without a frame (s)", labels)
    style.labels(one, labels)
    one.set_xlim(0, 1.15 * max(*away, *outages["median"].fillna(0), *outages["high"].fillna(0)))
    one.plot(away, range(len(labels)), "D", ms=6, color="white", mec=style.INK, label="the switch runs again")
    for place, label in enumerate(labels):
        if (label, "outage") not in by_case.index:
            one.text(away[place], place, "   did not come back", va="center", style="italic", color=style.INK)
    one.set_xlabel("longest time without a frame (s)")
    style.legend_above(figure, [one])
    return figure
