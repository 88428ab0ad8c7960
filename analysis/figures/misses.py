# SPDX-License-Identifier: GPL-2.0-or-later
"""What the modelled processor missed, per unit of data: in the caches L1D, L1I, L2 and LLC, lines that another core had changed
("other core's"), in the first-level TLBs, page walks (missed in the second level, too), and branches predicted wrong. All threads
of the packet path together; polls that found nothing are taken out unless it says otherwise here. The axis is logarithmic; a count
of zero is written at its edge."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import model, style
from analysis.load import Result
from analysis.sources import MODEL

NEEDS = tuple(model.MISSES)
SOURCE = "model"
WALL_CLOCK = False
MARKERS = "osD^vP*X"


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic and kind of miss; events per unit of data."""
    found = MODEL.summary(result, MODEL.per_data(*model.MISSES), role="path")
    counter = found["metric"].str.removeprefix("model_").str.replace(r"_per_[a-z]+$", "", regex=True)
    return found.assign(miss=counter.map(model.MISSES))


def plot(table: pd.DataFrame) -> Figure:
    pairs = style.traffics(table)
    cases = list(dict.fromkeys(table["label"]))
    kinds = [kind for kind in model.MISSES.values() if kind in set(table["miss"])]
    figure, axes = style.panels([0.9 + (0.12 + 0.08 * len(cases)) * len(kinds)] * len(pairs))
    for (traffic, load), one in zip(pairs, axes[:, 0], strict=True):
        part = table[(table["traffic"] == traffic) & (table["load"] == load)]
        _axis(one, part["median"])
        for place, case in enumerate(cases):
            _dots(one, part[part["label"] == case], kinds, place, len(cases))
        style.labels(one, kinds)
        one.set_title(style.traffic_name(traffic, load))
        one.set_xlabel(f"events per {style.unit_of_data(traffic)} (log scale)")
    style.legend_above(figure, axes.ravel(), cases, columns=3)
    return figure


def _axis(axes, medians: pd.Series) -> None:
    positive = medians[medians > 0]
    axes.set_xscale("log")
    axes.set_xlim((positive.min() / 3, positive.max() * 3) if len(positive) else (0.1, 10))


def _dots(axes, part: pd.DataFrame, kinds: list[str], place: int, cases: int) -> None:
    """A case's marks, a little above or below the line of their kind so that cases do not hide each other."""
    shift = 0.6 * ((place + 0.5) / cases - 0.5)
    for row in part.itertuples():
        look = {"color": style.case_look(row.switch, row.access)["color"], "marker": MARKERS[place % len(MARKERS)], "ms": 6, "ls": ""}
        spot = kinds.index(row.miss) + shift
        label = row.label if row.label not in axes.get_legend_handles_labels()[1] else None
        if row.median > 0:
            axes.plot(row.median, spot, label=label, **look)
            if (interval := style.error(row)) is not None:
                axes.errorbar(row.median, spot, xerr=interval, color=style.INK, capsize=2, lw=1, fmt="none")
        else:
            axes.text(axes.get_xlim()[0], spot, " 0", va="center", size=8, color=look["color"])
