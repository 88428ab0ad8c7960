# SPDX-License-Identifier: GPL-2.0-or-later
"""Why one case takes more or fewer estimated cycles per unit of data than the other: each bar is by how much its part alone multiplies
them. The bars of a group multiply to the bar of all cycles: instructions and CPI; CPI's causes to CPI; the roles to all cycles. Whiskers:
95 % intervals; a pale bar's interval includes 1, so that the data don't tell it from nothing. Polls that found nothing are taken out."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from vsprof.analysis import comparison, decompose, metrics, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import PROCESSORS
from vsprof.terms import units

NEEDS = ("cycles", "instructions")
SOURCE = "model"
MIDDLE = "Geometric means, which multiply,"
COLOURS = {"whole": style.INK, "factor": "#6b7a8f", "cause": style.CAUSES["memory"]["color"], "role": style.ROLES["switch"]["color"]}
WIDE, VERY_WIDE = np.log(3), np.log(50)
SMALL = 0.005
"""A cause or role that changes the cycles by less than this part has no bar."""


def table(result: Result, source: str = SOURCE) -> pd.DataFrame:
    """One row a part; median, low and high are what the part alone multiplies the cycles by."""
    found = []
    # Where a switch is the limit, or near it: there its cycles matter.
    traffics = vocabulary.at_saturation(metrics.sent(result))
    for pair in comparison.pairs(result):
        base, other = pair.names()
        label = f"{other} against {base}" + (f", {pair.setting}" if pair.setting else "")
        for traffic, load in traffics:
            parts = decompose.between((result, pair.other), (result, pair.base), source=source, traffic=traffic, load=load)
            found.append(parts.assign(label=label, traffic=traffic, load=load))
    table = pd.concat(found, ignore_index=True) if found else pd.DataFrame()
    if table.empty:
        return table
    kept = (table["part"].abs() > SMALL) | table["split"].isin(["whole", "factor"])
    # Of the roles each one's sum: what of it is instructions is in the numbers behind the figure of roles.
    kept &= (table["split"] != "role") | (table["cause"] == "whole")
    shown = table[kept].assign(what=lambda t: [decompose.named(row, PROCESSORS[source].causes) for row in t.itertuples()], unit="ratio")
    ratios = np.exp(shown[["part", "low", "high"]].astype(float)).set_axis(["median", "low", "high"], axis=1)
    return shown[["label", "traffic", "load", "split", "what", "n", "unit"]].join(ratios)


def plot(table: pd.DataFrame) -> Figure:
    groups = list(table.groupby(["label", "traffic", "load"], sort=False))
    figure, axes = style.panels([0.9 + 0.27 * len(group) for _, group in groups])
    for ((label, traffic, load), group), axis in zip(groups, axes[:, 0], strict=True):
        _bars(axis, group)
        axis.set_title(f"{style.traffic_name(traffic, load)}: {label}")
        axis.set_xlabel(f"multiplies the cycles per {style.unit_of_data(traffic)} by (logarithmic)")
    return figure


def _bars(axes: Axes, group: pd.DataFrame) -> None:
    """All cycles, factors, causes, roles: a line parts the groups that multiply to the same."""
    style.part_lines(axes, group["split"], color="#bbbbbb", ls=":")
    logs = np.log(group[["median", "low", "high"]])
    reach = 1.1 * (float(np.nanmax(np.abs(logs.to_numpy()))) or 1.0)
    for place, (row, log) in enumerate(zip(group.itertuples(), logs.itertuples(), strict=True)):
        sure = row.low > 1 or row.high < 1
        axes.barh(place, log.median, 0.7, color=COLOURS[row.split], alpha=1.0 if sure else 0.35)
        style.interval(axes, log, place, color="#888888", capsize=2, lw=1.1)
        text = f"× {units.significant(row.median)}"
        axes.annotate(text, (1.0, place), xycoords=("axes fraction", "data"), va="center", ha="left", fontsize=9)
    style.labels(axes, group["what"])
    axes.axvline(0, color=style.INK, lw=0.8)
    axes.set_xlim(-reach, reach)
    ticks = round_ratios(reach)
    axes.set_xticks(np.log(ticks), [f"{tick:g}×" for tick in ticks])


def round_ratios(reach: float) -> np.ndarray:
    """Ratios for an axis from -``reach`` to ``reach`` in logarithms, 1 among them: evenly spaced; 1, 2 and 5 of each decade where few
    even ones would lie below 1; powers of ten where those would be too many."""
    low, high = np.exp(-reach), np.exp(reach)
    decades = LogLocator(subs=(1, 2, 5) if reach < VERY_WIDE else (1,), numticks=99)
    locator = decades if reach > WIDE else MaxNLocator(6, steps=[1, 2, 5, 10])
    ticks = np.round(locator.tick_values(low, high), 9)
    return ticks[(ticks >= low) & (ticks <= high)]
