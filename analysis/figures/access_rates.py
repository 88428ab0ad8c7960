# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets received per second by how the guest reaches the switch, UDP flood at saturation. Left: ours. Right: as published for another
machine (T3, Loftus 2016, Xeon E5-2695 v3), on an axis of its own: compare the shapes, not the sizes. Both axes are logarithmic."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import style
from vsprof.analysis.comparison import sent
from vsprof.analysis.load import ACCESSES, Result
from vsprof.analysis.published import EVERY
from vsprof.analysis.sources import SOFTWARE
from vsprof.terms import units

NEEDS = ("packet_rate_received",)
TITLES = {"ours": "ours", "published": "published, on its own machine"}


def table(result: Result) -> pd.DataFrame:
    """One row a case of ours (`whose` = ours) and one a published rate; packets per second."""
    ours = SOFTWARE.summary(result, ["packet_rate_received"], **sent(result, "flood"))
    if ours.empty:
        return ours
    rates = {access: float(rate) for one in EVERY.values() for access, rate in one.rates.items()}
    published = pd.DataFrame([{"label": access, "access": access, "median": rates[access]} for access in ACCESSES if access in rates])
    switch = published["access"].map({"vhost-user": "ovs-dpdk"}).fillna("kernel-ovs")
    return pd.concat([ours.assign(whose="ours"), published.assign(switch=switch, whose="published", unit="packets/s")], ignore_index=True)


def plot(table: pd.DataFrame) -> Figure:
    figure, axes = style.panels([style.bar_height(table["whose"].value_counts().max())], columns=2)
    for one, (whose, title) in zip(axes[0], TITLES.items(), strict=True):
        rows = table[table["whose"] == whose]
        for place, row in enumerate(rows.itertuples()):
            one.barh(place, row.median, 0.66, **style.case_look(row.switch, row.access))
            style.interval(one, row, place)
            one.text(np.nanmax([row.median, row.high]) * 1.1, place, units.si(row.median, "packets/s"), va="center")
        style.labels(one, rows["label"])
        one.set_xscale("log")
        positive = rows.loc[rows["median"] > 0, "median"]
        if len(positive):
            one.set_xlim(10 ** (len(str(int(positive.min()))) - 2), positive.max() * 8)
        one.set_xlabel("packets received per second (log scale)")
        one.set_title(title)
    return figure
