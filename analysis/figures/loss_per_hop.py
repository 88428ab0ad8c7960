# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the UDP flood loses packets, in percent of the packets sent. Before the switch: the sender's interface took
them, the switch never counted them. In the switch: counted in, not out. After the switch: counted out, not received.
Counted over the whole flood, until the last packet had drained. The hops add up to the total. The ends are not read
in the same instant, so a hop may come out slightly below zero (flagged "<0"): that is counting error, not a gain."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

NEEDS = ("packets_sent", "packets_into_switch", "packets_out_of_switch", "packets_received")
HOPS = {
    "loss_before_switch": "before the switch",
    "loss_in_switch": "in the switch",
    "loss_after_switch": "after the switch",
    "loss_total": "total",
}


def table(result: Result) -> pd.DataFrame:
    """One row a case, load and hop; median, low and high as fractions of the packets sent, `negative` flags noise."""
    losses = SOFTWARE.summary(result, list(HOPS))
    order = [*result.cases.index, *HOPS]
    losses = losses.sort_values(["case_id", "metric"], key=lambda names: names.map(order.index), ignore_index=True)
    return losses.assign(hop=losses["metric"].map(HOPS), negative=losses["median"] < 0)


def plot(table: pd.DataFrame) -> Figure:
    figure, panels = style.by_traffic(table)
    for one, part, _ in panels:
        percent = part.assign(**{key: 100 * part[key] for key in ("median", "low", "high")})
        # The case is named at its first hop alone.
        case = part["label"].add("  ").mask(part["label"].duplicated(), "")
        names = case + part["hop"] + part["negative"].map({True: " (<0)", False: ""})
        style.bars(one, percent, "", "percent of the packets sent", names)
        one.axvline(0, color="#888888", lw=0.8)
        one.set_xlim(left=min(0, float(percent[["median", "low"]].min().min()) * 1.3))
    return figure
