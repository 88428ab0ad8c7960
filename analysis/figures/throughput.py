# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput by case: the number by which each traffic is judged, at saturation, at each path's own no-drop and partial-drop rate, and at
one offered rate for all switches (offered rates dashed). TCP: iperf3's goodput at the receiver, one direction, one stream. UDP flood:
packets that the receiver's interface counted. Forwarding: packets that came back out of the port that they had come in by; no wire is
behind it, but a device in memory."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import metrics, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE
from vsprof.terms import units

LOADS = ("saturation", "ndr", "pdr", "equal")
"""Of those that are paced, a rate says nothing of a switch."""


def table(result: Result) -> pd.DataFrame:
    """One row a case and traffic: its first headline. `offered` [packets/s] where a rate was asked for."""
    judged = _judged(result)
    found = SOFTWARE.summary(result, sorted(set(judged.values())), traffic=list(judged), load=list(LOADS))
    found = found[found["metric"] == found["traffic"].map(judged)]
    asked = SOFTWARE.summary(result, ["offered_rate"]).rename(columns={"median": "offered"})
    return found.merge(asked[["case_id", "traffic", "load", "offered"]], on=["case_id", "traffic", "load"], how="left")


def missing(result: Result) -> list[str]:
    judged, written = dict.fromkeys(_judged(result).values()), set(result.numbers["name"])
    return SOFTWARE.missing(result, [name for name in judged if name in written or SOFTWARE.rows(result, metric=name).empty])


def _judged(result: Result) -> dict[str, str]:
    """By traffic, what it is judged by."""
    return {name: words.metric for name, load in metrics.sent(result) if load in LOADS and (words := vocabulary.judged_by(name))}


def plot(table: pd.DataFrame) -> Figure:
    figure, panels = style.by_traffic(table)
    for one, part, traffic in panels:
        factor = style.bars(one, part, part["unit"].iloc[0], vocabulary.judged_by(traffic).words)
        rates = sorted(part["offered"].dropna().unique())
        for rate in rates:
            one.axvline(rate / factor, ls="--", lw=1, color=style.INK)
            one.set_xlim(right=max(one.get_xlim()[1], 1.16 * rate / factor))
        if rates:
            text = ", ".join(units.si(rate, "packets/s") for rate in rates)
            one.set_title(f"dashed: offered {text}", loc="right", weight="normal", size=9)
    return figure
