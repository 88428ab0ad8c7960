# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens in an iteration of each microbenchmark: modelled (dots), and as it must happen or as this machine's processor counted it
(diamonds); right of it the model's error. Both share these axes on purpose: how far they lie apart is the question. The left axis is
linear below 0.01, so that nothing has a place on it, and logarithmic above. Where hardly anything happens, no fraction is made: the
difference is written in events."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vsprof.analysis import style
from vsprof.analysis.explain_validation import Explained
from vsprof.analysis.validation import FEW
from vsprof.terms import units

PART = "microbenchmarks"
FARTHEST = 200
"""Per cent: beyond it an error is not drawn, only written, or the others could not be seen beside it."""
MODELLED = {"color": style.CAUSES["memory"]["color"], "marker": "o", "ms": 4.5}
BESIDE = {"hardware": style.STATES["kernel"]["color"], "natively": style.STATES["kernel"]["color"], "must happen": style.INK}
DIAMOND = {"marker": "D", "ms": 8.5, "mfc": "none"}
"""Told apart by shape as well as by colour; the dot lies inside the diamond where both agree."""
ENDS = ("", "_low", "_high")


def table(explained: Explained) -> pd.DataFrame:
    """One row a microbenchmark and event, as of `Explained.drawn`."""
    drawn = explained.drawn(PART)
    return drawn if drawn.empty else drawn.assign(panel="", row=drawn["label"] + ": " + drawn["what"])


def plot(table: pd.DataFrame) -> Figure:
    return side_by_side(table, "events per iteration")


def side_by_side(table: pd.DataFrame, counted: str) -> Figure:
    """A row of axes for each `panel`: the numbers of each `row`, and their errors, where any has one; `counted` names the numbers' axis."""
    groups = list(table.groupby("panel", sort=False))
    compared = table["error"].notna().any()
    columns = {"columns": 2, "width_ratios": (3, 2)} if compared else {}
    figure, axes = style.panels([0.9 + 0.22 * len(part) for _, part in groups], sharey="row", **columns)
    for (panel, part), row in zip(groups, axes, strict=True):
        _numbers(row[0], part, counted)
        if compared:
            _errors(row[1], part)
        for one in row:
            style.part_lines(one, part["item"], color="#dddddd", zorder=0)
        style.labels(row[0], part["row"])
        row[0].tick_params(axis="y", labelsize=8)
        row[0].set_title(panel)
    return style.legend_above(figure)


def _numbers(axes: Axes, part: pd.DataFrame, counted: str) -> None:
    axes.plot([], [], ls="", label="model", **MODELLED)
    for place, one in enumerate(part.itertuples()):
        _mark(axes, place, [getattr(one, f"reference{end}") for end in ENDS], {"color": BESIDE[one.beside], **DIAMOND})
        _mark(axes, place, [getattr(one, f"modelled{end}") for end in ENDS], MODELLED)
    for beside in part.loc[part["reference"].notna(), "beside"].unique():
        axes.plot([], [], ls="", label=beside, color=BESIDE[beside], **DIAMOND)
    values = part[[f"{of}{end}" for of in ("modelled", "reference") for end in ENDS]].to_numpy()
    bottom, top = float(np.nanmin(values)), float(np.nanmax(values))
    axes.set_xscale("symlog", linthresh=FEW, linscale=0.4)
    axes.set_xlim(min(-FEW / 2, 2 * bottom), max(3 * top, 1))
    ticks = [0, *(10.0**power for power in range(round(math.log10(FEW)), math.ceil(math.log10(max(top, 1))) + 1))]
    axes.set_xticks(ticks, [units.significant(tick, 1) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(f"{counted} (logarithmic above {FEW:g})")


def _errors(axes: Axes, part: pd.DataFrame) -> None:
    """In per cent; of what hardly happens in words alone."""
    drawn = 100 * part[["error", "error_low", "error_high"]].where(part["error_unit"] == "fraction").to_numpy(dtype=float)
    for place, (values, text) in enumerate(zip(drawn, part["shown"], strict=True)):
        _mark(axes, place, values, MODELLED)
        axes.text(1.02, place, text, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=style.INK)
    axes.axvline(0, color="#888888", lw=1, zorder=0)
    reach = min(1.15 * max(1.0, float(np.nanmax(np.abs(drawn), initial=0))), FARTHEST)
    axes.set_xlim(-reach, reach)
    axes.set_xlabel("error of the model (%)")


def _mark(axes: Axes, place: int, number: Sequence[float], look: dict[str, Any]) -> None:
    middle, low, high = number
    if not np.isnan(middle):
        interval = None if np.isnan(low) else [[middle - low], [high - middle]]
        axes.errorbar(middle, place, xerr=interval, ls="", capsize=2, lw=1.1, **look)
