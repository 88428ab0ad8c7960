# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput by case: the number by which each traffic is judged, at saturation, at each path's own no-drop and partial-drop rate, and at
one offered rate for all switches (offered rates dashed). TCP: iperf3's goodput at the receiver, one direction, one stream. UDP flood:
packets that the receiver's interface counted. Forwarding: packets that came back out of the port that they had come in by; no wire is
behind it, but a device in memory."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import metrics, style, vocabulary
from analysis.load import Result
from analysis.sources import SOFTWARE
from terms import units

NEEDS = ("goodput", "packet_rate_received")
WALL_CLOCK = True
LOADS = ("saturation", "ndr", "pdr", "equal")
"""Of those that are paced, a rate says nothing of a switch."""


def table(result: Result) -> pd.DataFrame:
    """One row a case and traffic: its first headline. `offered` [packets/s] where a rate was asked for."""
    judged = {name: words.metric for name, load in metrics.sent(result) if load in LOADS and (words := vocabulary.judged_by(name))}
    found = SOFTWARE.summary(result, sorted(set(judged.values())), traffic=list(judged), load=list(LOADS))
    found = found[found["metric"] == found["traffic"].map(judged)]
    asked = SOFTWARE.summary(result, ["offered_rate"]).rename(columns={"median": "offered"})
    return found.merge(asked[["case_id", "traffic", "load", "offered"]], on=["case_id", "traffic", "load"], how="left")


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    parts = [table[(table["traffic"] == traffic) & (table["load"] == load)] for traffic, load in pairs]
    figure, axes = style.panels([style.bar_height(len(part)) for part in parts])
    for (traffic, load), part, one in zip(pairs, parts, axes[:, 0], strict=True):
        style.bars(one, part, part["unit"].iloc[0], vocabulary.judged_by(traffic).words)
        one.set_title(style.traffic_name(traffic, load))
        _offered(one, part)
    return figure


def _offered(axes, part: pd.DataFrame) -> None:
    rates = sorted(set(part["offered"].dropna()))
    factor, _ = style.scale(pd.concat([part["median"], part["high"]]), "packets/s")
    for rate in rates:
        axes.axvline(rate / factor, ls="--", lw=1, color=style.INK)
        axes.set_xlim(right=max(axes.get_xlim()[1], 1.16 * rate / factor))
    if rates:
        text = "offered " + ", ".join(units.si(rate, "packets/s") for rate in rates)
        axes.set_title(f"dashed: {text}", loc="right", weight="normal", size=9)
