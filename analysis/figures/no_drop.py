# SPDX-License-Identifier: GPL-2.0-or-later
"""The highest rate that a search found to be carried [packets/s]. No-drop: a trial at it loses nothing; partial-drop: at most 0.5 %; of
the trials at it a share may be bad, which is named below each panel. The line under a bar's end leads to the lowest rate that was too
high: what the search left open. It is a rate of the whole path and of this host: a host that is busy elsewhere for a moment loses frames
whatever the switch does. A case without a bar has no such rate, for the reason that is given here."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import metrics, style
from analysis.load import Result
from analysis.sources import SOFTWARE

NEEDS = ("search_rate",)
WALL_CLOCK = True
BESIDE = {name: name.removeprefix("search_") for name in metrics.SEARCH if name != "search_rate"}
"""What stands beside a rate in the table: medians over repetitions."""


def table(result: Result) -> pd.DataFrame:
    """One row a case and load that was searched: the rate (empty where none was found), its bounds, and what the search was to do."""
    found = SOFTWARE.summary(result, list(metrics.SEARCH))
    keys = ["case_id", "traffic", "load"]
    rates = found.loc[found["metric"] == "search_rate", [*keys, "median", "low", "high", "n"]]
    rows = found.loc[found["metric"] == "search_ended"].drop(columns=["metric", "role", "cpu", "median", "low", "high", "n"])
    beside = found.pivot_table(index=keys, columns="metric", values="median", sort=False).reindex(columns=list(BESIDE))
    rows = rows.assign(unit="packets/s").merge(rates, on=keys, how="left")
    return rows.merge(beside.rename(columns=BESIDE).reset_index(), on=keys, how="left")


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    parts = [table[table["load"] == load] for _, load in pairs]
    figure, axes = style.panels([style.bar_height(len(part)) for part in parts])
    for (traffic, load), part, one in zip(pairs, parts, axes[:, 0], strict=True):
        style.bars(one, part, "packets/s", "rate found", _names(part))
        _bounds(one, part)
        one.set_title(style.traffic_name(traffic, load))
        one.set_xlabel(f"{one.get_xlabel()}; {_goal(part)}")
    return figure


def _names(part: pd.DataFrame) -> list[str]:
    return [label if pd.notna(median) else f"{label} (no rate found)" for label, median in zip(part["label"], part["median"], strict=True)]


def _bounds(axes, part: pd.DataFrame) -> None:
    factor, _ = style.scale(pd.concat([part["median"], part["high"]]), "packets/s")
    for place, row in enumerate(part.itertuples()):
        below = place + 0.42
        axes.plot([row.lower_bound / factor, row.upper_bound / factor], [below] * 2, "-", lw=1.2, color=style.INK)
        axes.plot(row.upper_bound / factor, below, "|", ms=7, mew=1.6, color=style.INK)
    reach = part[["upper_bound", "high", "median"]].max().max() / factor
    if pd.notna(reach):
        axes.set_xlim(0, 1.15 * reach)


def _goal(part: pd.DataFrame) -> str:
    """What all searches of a panel were to do, in words."""
    first = part.iloc[0]
    return (
        f"trials of {first.trial_goal:g} s, {first.sum_goal:g} s at each rate, of which {first.exceed_ratio:.0%} may be bad; "
        f"bounds within {first.width_goal:.0%}"
    )
