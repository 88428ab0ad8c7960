# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the UDP flood loses packets, in percent of the packets sent. Before the switch: the sender's interface took
them, the switch never counted them. In the switch: counted in, not out. After the switch: counted out, not received.
Counted over the whole flood, until the last packet had drained. The hops add up to the total. The ends are not read
in the same instant, so a hop may come out slightly below zero (flagged "<0"): that is counting error, not a gain."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import style
from analysis.load import Result
from analysis.sources import SOFTWARE

NEEDS = ("packets_sent", "packets_into_switch", "packets_out_of_switch", "packets_received")
WALL_CLOCK = True
HOPS = {
    "loss_before_switch": "before the switch",
    "loss_in_switch": "in the switch",
    "loss_after_switch": "after the switch",
    "loss_total": "total",
}


def table(result: Result) -> pd.DataFrame:
    """One row a case, load and hop; median, low and high as fractions of the packets sent, `negative` flags noise."""
    losses = SOFTWARE.summary(result, list(HOPS))
    order = {name: place for place, name in enumerate(HOPS)}
    cases = {case: place for place, case in enumerate(result.cases.index)}
    losses = losses.sort_values(["case_id", "metric"], key=lambda c: c.map(order if c.name == "metric" else cases))
    return losses.assign(hop=losses["metric"].map(HOPS), negative=losses["median"] < 0).reset_index(drop=True)


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    parts = [table[(table["traffic"] == traffic) & (table["load"] == load)] for traffic, load in pairs]
    figure, axes = style.panels([style.bar_height(len(part)) for part in parts])
    for (traffic, load), part, one in zip(pairs, parts, axes[:, 0], strict=True):
        percent = part.assign(**{key: 100 * part[key] for key in ("median", "low", "high")})
        flags = [" (<0)" if negative else "" for negative in part["negative"]]
        names = [f"{label}  {hop}{flag}" for label, hop, flag in zip(part["label"], part["hop"], flags, strict=True)]
        style.bars(one, percent, "", "percent of the packets sent", _once(names, part))
        one.axvline(0, color="#888888", lw=0.8)
        one.set_title(style.traffic_name(traffic, load))
        one.set_xlim(left=min(0, float(percent[["median", "low"]].min().min()) * 1.3))
    return figure


def _once(names: list[str], part: pd.DataFrame) -> list[str]:
    """Name the case only at its first hop."""
    first = ~part["label"].duplicated()
    return [n if head else n.split("  ")[-1] for n, head in zip(names, first, strict=True)]
