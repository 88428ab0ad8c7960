# SPDX-License-Identifier: GPL-2.0-or-later
"""What the modelled processor missed, per unit of data: in the caches L1D, L1I, L2 and LLC, lines that another core had changed
("other core's"), in the first-level TLBs, page walks (missed in the second level, too), and branches predicted wrong. All threads
of the packet path together; polls that found nothing are taken out unless it says otherwise here. The axis is logarithmic; a count
of zero is written at its edge."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vsprof.analysis import figures, model, style
from vsprof.analysis.load import Result
from vsprof.analysis.source import Source
from vsprof.analysis.sources import MODEL

NEEDS = tuple(model.MISSES)
SOURCE = "model"
MARKERS = "osD^vP*X"


def table(result: Result, source: Source = MODEL, counters: Sequence[str] = NEEDS) -> pd.DataFrame:
    """One row a case, traffic and kind of miss; events per unit of data."""
    found = figures.per_data(result, source, counters, role="path").rename(columns={"counter": "miss"})
    return found.assign(miss=found["miss"].map(model.MISSES))


def plot(table: pd.DataFrame) -> Figure:
    cases = list(table["label"].unique())
    kinds = [kind for kind in model.MISSES.values() if kind in set(table["miss"])]
    figure, panels = style.by_traffic(table, height=0.9 + (0.12 + 0.08 * len(cases)) * len(kinds))
    for one, part, traffic in panels:
        positive = part.loc[part["median"] > 0, "median"]
        one.set_xscale("log")
        one.set_xlim((positive.min() / 3, positive.max() * 3) if len(positive) else (0.1, 10))
        for place, case in enumerate(cases):
            # A little above or below the line of their kind, so that cases do not hide each other.
            shift = 0.6 * ((place + 0.5) / len(cases) - 0.5)
            _dots(one, part[part["label"] == case], kinds, shift, MARKERS[place % len(MARKERS)])
        style.labels(one, kinds)
        one.set_xlabel(f"events per {style.unit_of_data(traffic)} (log scale)")
    return style.legend_above(figure, cases, columns=3)


def _dots(axes: Axes, part: pd.DataFrame, kinds: list[str], shift: float, marker: str) -> None:
    """A case's marks."""
    for row in part.itertuples():
        colour, spot = style.switch_colour(row.switch), kinds.index(row.miss) + shift
        if row.median > 0:
            axes.plot(row.median, spot, label=row.label, color=colour, marker=marker, ms=6, ls="")
            style.interval(axes, row, spot, capsize=2, lw=1, fmt="none")
        else:
            axes.text(axes.get_xlim()[0], spot, " 0", va="center", size=8, color=colour)
