# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets received per second by how the guest reaches the switch, UDP flood at saturation. Left: ours. Right: as
published for another machine (T3, Loftus 2016, Xeon E5-2695 v3), on an axis of its own: compare the shapes, not the
sizes. Both axes are logarithmic."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import style
from analysis.load import ACCESSES, Result
from analysis.published import every
from analysis.sources import SOFTWARE
from terms import units

NEEDS = ("packet_rate_received",)
WALL_CLOCK = True


def table(result: Result) -> pd.DataFrame:
    """One row a case of ours (`whose` = ours) and one a published rate; packets per second."""
    ours = SOFTWARE.summary(result, ["packet_rate_received"], traffic="udp_flood", load="saturation")
    if ours.empty:
        return ours
    rates = {access: rate for one in every() for access, rate in one.rates.items()}
    switch = {"vhost-user": "ovs-dpdk"}
    published = [
        {"label": access, "access": access, "switch": switch.get(access, "kernel-ovs"), "median": float(rates[access])}
        for access in ACCESSES
        if access in rates
    ]
    parts = [ours.assign(whose="ours"), pd.DataFrame(published).assign(whose="published", unit="packets/s")]
    return pd.concat(parts, ignore_index=True)


def plot(table: pd.DataFrame) -> Figure:
    ours, published = (table[table["whose"] == whose] for whose in ("ours", "published"))
    figure, axes = style.panels([style.bar_height(max(len(ours), len(published)))], columns=2)
    _rates(axes[0, 0], ours, "ours")
    _rates(axes[0, 1], published, "published, on its own machine")
    return figure


def _rates(axes, table: pd.DataFrame, title: str) -> None:
    for place, row in enumerate(table.itertuples()):
        axes.barh(place, row.median, 0.66, **style.case_look(row.switch, row.access))
        axes.errorbar(row.median, place, xerr=style.error(row), color=style.INK, capsize=3, lw=1.2)
        axes.text(
            max(row.median, row.high if pd.notna(row.high) else 0) * 1.1,
            place,
            units.si(row.median, "packets/s"),
            va="center",
        )
    style.labels(axes, list(table["label"]))
    axes.set_xscale("log")
    positive = table["median"][table["median"] > 0]
    if len(positive):
        axes.set_xlim(10 ** (len(str(int(positive.min()))) - 2), positive.max() * 8)
    axes.set_xlabel("packets received per second (log scale)")
    axes.set_title(title)
