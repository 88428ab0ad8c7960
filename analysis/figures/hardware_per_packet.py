# SPDX-License-Identifier: GPL-2.0-or-later
"""Who does the work, by the processor's own counters: instructions (left) and core cycles (right) per unit of data, by the role of
the CPU that ran. User, kernel and guest are added up. Number and interval are the packet path's: host-other is drawn and left out of
them, but in vm2host, where the host is an endpoint. Polls that found nothing are taken out where the run has idle windows."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import hardware, metrics, style
from analysis.load import Result

NEEDS = ("instructions", "cycles")
SOURCE = "hardware"
WALL_CLOCK = False


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, counter (instructions, cycles) and role ("all" and "path": sums), per unit of data."""
    found = hardware.summary(result, hardware.per_data(*NEEDS))
    return found.assign(counter=found["metric"].str.removeprefix(hardware.PREFIX).str.replace(r"_per_[a-z]+$", "", regex=True))


def plot(table: pd.DataFrame) -> Figure:
    pairs = [pair for pair in style.traffics(table) if pair[0] in metrics.PER_DATA]
    figure, axes = style.panels([style.bar_height(table["label"].nunique())] * len(pairs), columns=2, sharey="row")
    for (traffic, load), row in zip(pairs, axes, strict=True):
        part = table[(table["traffic"] == traffic) & (table["load"] == load)].assign(row=lambda t: t["label"])
        for one, counter in zip(row, NEEDS, strict=True):
            _stack(one, part[part["counter"] == counter])
            words = "core cycles" if counter == "cycles" else counter
            one.set_xlabel(f"{words} per {style.UNIT_OF_DATA.get(traffic, 'unit of data')}")
        row[0].set_title(style.traffic_name(traffic, load))
    style.legend_above(figure, axes.ravel(), list(style.ROLE_COLOURS))
    return figure


def _stack(axes, part: pd.DataFrame) -> None:
    if part.empty:
        axes.text(0.5, 0.5, "not counted", transform=axes.transAxes, ha="center")
        return
    parts = part[part["role"].isin(list(style.ROLE_COLOURS))]
    style.stacks(axes, parts, "role", style.ROLE_COLOURS, style.ROLE_HATCHES)
    style.totals(axes, parts, part[part["role"] == "path"])
    style.thousands(axes)
