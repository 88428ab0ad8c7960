# SPDX-License-Identifier: GPL-2.0-or-later
"""The highest rate that a search found to be carried [packets/s]. No-drop: a trial at it loses nothing; partial-drop: at most 0.5 %; of
the trials at it a share may be bad, which is named below each panel. The line under a bar's end leads to the lowest rate that was too
high: what the search left open. It is a rate of the whole path and of this host: a host that is busy elsewhere for a moment loses frames
whatever the switch does. A case without a bar has no such rate, for the reason that is given here."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import metrics, style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

NEEDS = ("search_rate",)
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
    figure, panels = style.by_traffic(table)
    for one, part, _ in panels:
        names = part["label"].where(part["median"].notna(), part["label"] + " (no rate found)")
        factor = style.bars(one, part, "packets/s", "rate found", names)
        for place, row in enumerate(part.itertuples()):
            below, bounds = place + 0.42, [row.lower_bound / factor, row.upper_bound / factor]
            one.plot(bounds, [below] * 2, "-", lw=1.2, color=style.INK)
            one.plot(bounds[1], below, "|", ms=7, mew=1.6, color=style.INK)
        reach = part[["upper_bound", "high", "median"]].max().max() / factor
        if pd.notna(reach):
            one.set_xlim(0, 1.15 * reach)
        # What all searches of a panel were to do.
        first = part.iloc[0]
        goal = f"trials of {first.trial_goal:g} s, {first.sum_goal:g} s at each rate, of which {first.exceed_ratio:.0%} may be bad"
        one.set_xlabel(f"{one.get_xlabel()}; {goal}; bounds within {first.width_goal:.0%}")
    return figure
