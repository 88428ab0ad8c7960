# SPDX-License-Identifier: GPL-2.0-or-later
"""How many packets Open vSwitch's poll-mode thread finds at once, by its own histograms: left, the share of batches received that have so
many packets at most (a burst has 32); right, the share of rounds over the ports in which the fullest vhost queue held so many frames at
most, of those rounds that found any. A thread that is the limit finds full bursts and long queues; one that waits for its endpoints finds
small ones."""

from dataclasses import asdict

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MultipleLocator

from vsprof.analysis import stats, style
from vsprof.analysis.load import Result

KINDS = {"pmd_batch_packets": "packets in a batch", "pmd_queue_fill": "frames in the fullest queue"}
NEEDS = tuple(f"{kind}_to_0" for kind in KINDS)
BEYOND = 2000
"""Where the last bin is drawn, which has no bound."""
LINES = ("-", "--", ":", "-.")


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, kind and bin: the share of what was counted in it and below."""
    found = result.numbers[result.numbers["name"].str.startswith(tuple(f"{kind}_" for kind in KINDS)) & result.numbers["value"].notna()]
    found = found.assign(
        kind=found["name"].str.replace(r"_(to_\d+|more)$", "", regex=True),
        bound=pd.to_numeric(found["name"].str.extract(r"_to_(\d+)$")[0]).fillna(BEYOND),
    )
    # Those whose lowest bin is there: else the share of all is not known.
    known = set(found.loc[found["name"].isin(NEEDS), "kind"])
    found = found[found["kind"].isin(known) & (found["bound"] > 0)]
    # Where nothing fell any more, there is nothing to draw.
    found = found[found["bound"] <= found["bound"].where(found["value"] > 0).groupby(found["kind"]).transform("max")]
    rows = [
        {"case_id": case, "traffic": traffic, "load": load, "kind": kind, **one}
        for (case, traffic, load, kind), part in found.groupby(["case_id", "traffic", "load", "kind"], sort=False)
        for one in _shares(part)
    ]
    table = pd.DataFrame(rows)
    return table.merge(result.cases.reset_index(), on="case_id", how="left").assign(unit="fraction") if rows else table


def _shares(part: pd.DataFrame) -> list[dict[str, float]]:
    """Windows of a repetition together; those without a packet say nothing."""
    bins = part.pivot_table(index="run_id", columns="bound", values="value", aggfunc="sum").sort_index(axis=1).fillna(0)
    below, whole = bins.cumsum(axis=1), bins.sum(axis=1)
    estimates = {bound: stats.estimate([np.array([run]) for run in zip(below[bound], whole, strict=True)]) for bound in bins}
    return [{"bound": bound, **asdict(one)} for bound, one in estimates.items() if one.n]


def plot(table: pd.DataFrame) -> Figure:
    figure, rows = style.by_traffic(table, len(KINDS), 2.2)
    for axes, part, _ in rows:
        for one, (kind, words) in zip(axes, KINDS.items(), strict=True):
            _plot(one, part[part["kind"] == kind])
            one.set_xlabel(f"{words}, at most")
    return style.legend_above(figure)


def _plot(axes: Axes, part: pd.DataFrame) -> None:
    for place, (label, one) in enumerate(part.groupby("label", sort=False)):
        colour = style.switch_colour(one["switch"].iloc[0])
        axes.step(one["bound"], one["median"], where="post", color=colour, ls=LINES[place % len(LINES)], label=label)
        if one["low"].notna().all():
            axes.fill_between(one["bound"], one["low"], one["high"], step="post", color=colour, alpha=0.2, lw=0)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share")
    axes.xaxis.set_major_locator(MultipleLocator(8))
    if not part.empty and part["bound"].max() > 32:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value < BEYOND else "more")
