# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions in which each case spends most instructions of the modelled processor per packet, at saturation.
All threads of the packet path together, coloured by the role of the thread that ran. In brackets: the program, library, kernel or kernel
module that has the function. The numbers are estimated from samples, one in some ten thousand instructions. name+0x…: a function of a
stripped program, by its place in the file; guests' kernel modules have no names. Polls that found nothing are taken out of each
function, unless it says otherwise here."""

import re

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vsprof.analysis import functions, style
from vsprof.analysis.load import Result
from vsprof.terms import units

NEEDS = ("instructions",)
SOURCE = "model"
DRAWN = 12
LONGEST = 42
"""Letters of a function's name and place; what is longer is cut in the middle of the name."""
CLONED = re.compile(r"\.(constprop|isra)\.\d+")
"""What compilers add to the name of a function that they changed."""
missing = functions.missing
"""Why nothing is drawn, where the numbers of NEEDS don't tell."""


def table(result: Result) -> pd.DataFrame:
    """One row a case and function, the hottest of a case first: instructions per packet, and their `share_of_all`."""
    if not (where := functions.profiled(result)):
        return pd.DataFrame()
    found = [functions.hottest(result, case, "instructions", DRAWN, **where) for case in result.cases.index]
    return pd.concat(found, ignore_index=True).merge(result.cases.reset_index(), on="case_id", how="left")


def plot(table: pd.DataFrame) -> Figure:
    cases = table["label"].unique()
    figure, axes = style.grid(len(cases), min(2, len(cases)), 0.9 + 0.24 * table["label"].value_counts().max())
    reach = float(table[["median", "high"]].max().max())
    for one, case in zip(axes.ravel(), cases, strict=False):
        _panel(one, table[table["label"] == case], reach)
    return style.legend_above(figure, style.ROLES)


def _panel(axes: Axes, part: pd.DataFrame, reach: float) -> None:
    for place, row in enumerate(part.itertuples()):
        axes.barh(place, row.median, 0.7, label=row.role, **style.ROLES[row.role], edgecolor="white")
        style.interval(axes, row, place, capsize=2, lw=1)
        end = row.median if pd.isna(row.high) else row.high
        axes.text(end + 0.02 * reach, place, units.significant(row.median), va="center", size=8)
    style.labels(axes, [_short(row.object, row.function) for row in part.itertuples()])
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlim(0, 1.25 * reach)
    style.thousands(axes)
    axes.xaxis.set_tick_params(labelbottom=True)
    axes.set_title(part["label"].iloc[0])
    axes.set_xlabel(f"instructions per packet\n(together {100 * part['share_of_all'].sum():.0f} % of all)")


def _short(where: str, function: str) -> str:
    """The function as `functions.named` has it, its own name cut in the middle where both are too long."""
    function = CLONED.sub("", function)
    room = LONGEST - (len(functions.named(where, function)) - len(function))
    if len(function) > room > 10:
        half = (room - 1) // 2
        function = f"{function[:half]}…{function[-half:]}"
    return functions.named(where, function)
