# SPDX-License-Identifier: GPL-2.0-or-later
"""What bounds each switch, in the manner of a roofline: packets a second against the instructions that a packet takes on the switch's
processors (of its poll-mode threads, or of all of the kernel's path but its ends). The roof: every cycle ends as many instructions as the
processor is wide. The capacity: what these processors pass at the cycles that a packet took, with nothing else to do. From the roof to the
capacity it is the processor that keeps packets back; from there to the rate it is somebody else, such as the endpoints. Of the modelled
processor; cases in which it is changed are left out. Intervals are in the table."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from vsprof.analysis import style, vocabulary
from vsprof.analysis.roofline import missing, table
from vsprof.terms import units

__all__ = ["missing", "plot", "table"]

HEIGHT = 4.4
MARKS = {
    "without_waits": ("without any waiting", {"marker": "_", "ms": 13, "mew": 2.2}),
    "capacity": ("capacity", {"marker": "o", "ms": 6}),
    "rate": ("rate", {"marker": "o", "ms": 11, "mfc": "none", "mew": 1.4}),
}


def plot(table: pd.DataFrame) -> Figure:
    figure, [[axes]] = style.panels([HEIGHT])
    _scales(axes)
    keys = ["label", "setting", "switch", "instructions"]
    rows = table.pivot_table(index=keys, columns="bound", values="median", sort=False).reset_index().sort_values("instructions")
    _roofs(axes, rows)
    for name, (words, look) in MARKS.items():
        axes.plot([], [], color=style.INK, ls="none", label=words, **look)
        for row in rows.itertuples():
            axes.plot(row.instructions, getattr(row, name), color=style.switch_colour(row.switch), ls="none", **look)
    for switch in dict.fromkeys(rows["switch"]):
        axes.plot([], [], color=style.switch_colour(switch), lw=5, label=vocabulary.switch(switch).words)
    one_each = len(set(rows["label"])) == len(set(rows["switch"]))
    for place, row in enumerate(rows.itertuples()):
        axes.vlines(row.instructions, min(row.rate, row.capacity), row.roof, color=style.switch_colour(row.switch), lw=0.9)
        # To the left and to the right in turn: a switch's frame sizes are near each other.
        away, side = (5, "left") if place % 2 else (-5, "right")
        words = row.setting if one_each else f"{row.label}\n{row.setting}"
        axes.annotate(
            words, (row.instructions, row.rate), xytext=(away, -6), textcoords="offset points", va="top", ha=side, fontsize="small"
        )
    return style.legend_above(figure)


def _scales(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log", xlabel="instructions per packet on the switch's processors", ylabel="packets per second")
    axes.yaxis.set_major_formatter(lambda value, _: units.si(value, "packets/s"))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_locator(NullLocator())


def _roofs(axes: Axes, rows: pd.DataFrame) -> None:
    """One line for each processor that differs: its instructions a second, shared out among packets."""
    # Beyond the points, for their words.
    reach = np.array([rows["instructions"].min() / 2, rows["instructions"].max() * 2])
    for most in sorted({float(f"{one:.4g}") for one in rows["roof"] * rows["instructions"]}):
        axes.plot(reach, most / reach, color=style.INK, lw=1.2, label="roof")
