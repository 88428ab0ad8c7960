# SPDX-License-Identifier: GPL-2.0-or-later
"""Throughput by case. TCP: iperf3's goodput at the receiver, one direction, one stream [bit/s]. UDP flood: packets
that the receiver's interface counted [packets/s]: at saturation, at each path's own no-drop and partial-drop rate, and at one offered rate
for all switches (offered rates dashed). Forwarding: packets that came back out of the port that they had come in by; no wire is behind it,
but a device in memory."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import metrics, style
from analysis.load import Result
from terms import units

NEEDS = ("goodput", "packet_rate_received")
WALL_CLOCK = True


def table(result: Result) -> pd.DataFrame:
    """One row a case and traffic; `offered` [packets/s] where a rate was asked for."""
    tcp = metrics.summary(result, ["goodput"], traffic="tcp_stream")
    udp = metrics.summary(result, ["packet_rate_received"], traffic=["udp_flood", "forward"])
    asked = metrics.summary(result, ["offered_rate"]).rename(columns={"median": "offered"})
    both = pd.concat([part for part in (tcp, udp) if not part.empty] or [tcp], ignore_index=True)
    return both.merge(asked[["case_id", "traffic", "load", "offered"]], on=["case_id", "traffic", "load"], how="left")


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    parts = [table[(table["traffic"] == traffic) & (table["load"] == load)] for traffic, load in pairs]
    figure, axes = style.panels([style.bar_height(len(part)) for part in parts])
    for (traffic, load), part, one in zip(pairs, parts, axes[:, 0], strict=True):
        style.bars(one, part, part["unit"].iloc[0], "goodput" if traffic == "tcp_stream" else "received")
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
