# SPDX-License-Identifier: GPL-2.0-or-later
"""Context switches, voluntary and involuntary together, stacked by the role of the thread that was switched: left per second, right per
unit of data. For TCP that unit is a megabit of goodput, never a packet: kernel OVS passes super-packets of up to 64 KB as one packet,
OVS-DPDK passes them cut to the MTU. Number and interval are the packet path's: host-other is drawn and left out of them, because vsprof's
own control and collectors are among its threads; where the host itself is an endpoint (vm2host) it can't be told from them and is counted
in. Parts are drawn in proportion, so that they sum to the number: medians alone need not."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vsprof.analysis import style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

NEEDS = ("context_switches_voluntary", "context_switches_involuntary")
PER_SECOND = "context_switches_per_second"


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, role ("all" and "path": sums) and metric (per second, per unit of data)."""
    names = [PER_SECOND, *(f"context_switches_per_{data}" for data in vocabulary.per_data().values())]
    return SOFTWARE.summary(result, names, cpu=-1)


def plot(table: pd.DataFrame) -> Figure:
    figure, rows = style.by_traffic(table, 2, style.bar_height(table["label"].nunique()))
    for (left, right), part, traffic in rows:
        second, unit = part["metric"] == PER_SECOND, style.unit_of_data(traffic)
        none = "not counted" if vocabulary.traffic(traffic).data else "nothing was sent"
        for axes, counts, per, empty in ((left, part[second], "second", "not counted"), (right, part[~second], unit, none)):
            if style.stacked(axes, counts, "role", f"context switches per {per}", empty):
                # Four decimals wide, as counts per packet are, more labels would run into each other.
                axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    return style.legend_above(figure, style.ROLES)
