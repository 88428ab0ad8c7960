# SPDX-License-Identifier: GPL-2.0-or-later
"""Context switches, voluntary and involuntary together, stacked by the role of the thread that was switched: left per
second, right per unit of data. For TCP that unit is a megabit of goodput, never a packet: kernel OVS passes
super-packets of up to 64 KB as one packet, OVS-DPDK passes them cut to the MTU. Number and interval are the
packet path's: host-other is drawn and left out of them, because vsprof's own control and collectors are among its
threads; where the host itself is an endpoint (vm2host) it can't be told from them and is counted in. Parts
are drawn in proportion, so that they sum to the number: medians alone need not."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import style, vocabulary
from analysis.load import Result
from analysis.sources import SOFTWARE

NEEDS = ("context_switches_voluntary", "context_switches_involuntary")
WALL_CLOCK = True


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, role ("all" and "path": sums) and metric (per second, per unit of data)."""
    names = ["context_switches_per_second", *(f"context_switches_per_{data}" for data in vocabulary.per_data().values())]
    return SOFTWARE.summary(result, names, cpu=-1)


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    cases = table["label"].nunique()
    figure, axes = style.panels([style.bar_height(cases)] * len(pairs), columns=2, sharey="row")
    for (traffic, load), (left, right) in zip(pairs, axes, strict=True):
        part = table[(table["traffic"] == traffic) & (table["load"] == load)].assign(row=lambda t: t["label"])
        second = part["metric"] == "context_switches_per_second"
        _stack(left, part[second], "per second")
        unit = style.unit_of_data(traffic)
        _stack(right, part[~second], f"per {unit}", "not counted" if vocabulary.data(traffic) else "nothing was sent")
        left.set_title(style.traffic_name(traffic, load))
    style.legend_above(figure, axes.ravel(), list(style.ROLE_COLOURS))
    return figure


def _stack(axes, part: pd.DataFrame, what: str, empty: str = "not counted") -> None:
    axes.set_xlabel(f"context switches {what}")
    if part.empty:
        axes.text(0.5, 0.5, empty, transform=axes.transAxes, ha="center")
        return
    style.stacked_roles(axes, part)
    # Four decimals wide, as counts per packet are, more labels would run into each other.
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
