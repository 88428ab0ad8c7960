# SPDX-License-Identifier: GPL-2.0-or-later
"""One-way latency of single frames at a fixed pace, from the sender's ring to the receiver's [seconds, log scale]: shortest, mean, 99th
percentile and longest. Grey: published for other machines (T11), where the path and the clock were others: compare the shapes, not the
sizes. Each point is the mean over windows, then the median over repetitions; the line spans from the shortest to the longest."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from vsprof.analysis import metrics, style
from vsprof.analysis.comparison import sent
from vsprof.analysis.load import Result
from vsprof.analysis.published import EVERY
from vsprof.analysis.sources import SOFTWARE
from vsprof.terms import units

NEEDS = metrics.LATENCY
MARKS = {"latency_min": "|", "latency_mean": "D", "latency_p99": "o", "latency_max": "|"}
NAMES = {"latency_mean": "mean", "latency_p99": "99 %", "latency_min": "shortest, longest"}
PUBLISHED = "#999999"


def table(result: Result) -> pd.DataFrame:
    """One row a case and measure; `whose` is ours or published."""
    ours = SOFTWARE.summary(result, list(metrics.LATENCY), **sent(result, "frames"))
    if ours.empty:
        return ours
    published = [
        {"label": f"published: {words}", "metric": metric, "median": seconds, "unit": "seconds", "whose": "published"}
        for one in EVERY.values()
        for words, latencies in one.latencies.items()
        for metric, seconds in latencies.items()
    ]
    return pd.concat([ours.assign(whose="ours"), pd.DataFrame(published)], ignore_index=True)


def plot(table: pd.DataFrame) -> Figure:
    labels = table["label"].unique()
    figure, [[one]] = style.panels([style.bar_height(len(labels))])
    for place, label in enumerate(labels):
        part = table[table["label"] == label]
        ours = part["whose"].iloc[0] == "ours"
        colour = style.switch_colour(part["switch"].iloc[0]) if ours else PUBLISHED
        found = part.set_index("metric")["median"]
        one.plot([found.min(), found.max()], [place, place], "-", lw=1.5, color=colour)
        for metric, mark in MARKS.items():
            if metric in found:
                name = NAMES.get(metric) if ours else None
                one.plot(found[metric], place, mark, ms=9 if mark == "|" else 6, color=colour, mec=style.INK, label=name)
        if "latency_mean" in found:
            text = units.si(found["latency_mean"], "seconds")
            one.annotate(text, (found["latency_mean"], place), (0, 7), textcoords="offset points", ha="center", size=8)
    style.labels(one, labels)
    one.set_xscale("log")
    low, high = one.get_xlim()
    one.set_xlim(low / 1.3, high * 1.6)
    one.xaxis.set_minor_locator(NullLocator())
    one.xaxis.set_major_formatter(lambda value, _: units.si(value, "seconds", 2))
    one.set_xlabel("one-way latency of a frame (log scale)")
    return style.legend_above(figure)
