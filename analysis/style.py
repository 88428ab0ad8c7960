# SPDX-License-Identifier: GPL-2.0-or-later
"""How all figures look: one colour a switch, one hatch an access, one order everywhere, readable in greyscale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis import vocabulary
from terms import schema, units

_PALETTE = sns.color_palette("colorblind").as_hex()
SWITCH_PALETTE = (_PALETTE[7], _PALETTE[0], _PALETTE[1], _PALETTE[2], "#5e3c99", "#8c2d04", "#35978f", "#c51b7d")
"""Slots that switches name as theirs."""
ACCESS_HATCHES = {
    "virtio-net": "////",
    "vhost-net": "",
    "vhost-user": "",
    "virtio-user": "....",
    "veth": "\\\\\\\\",
    "tap": "xxxx",
}
# Roles and CPU states never take a switch's colour; neighbours in a stack differ in lightness, and by hatch.
ROLE_COLOURS = dict(zip(schema.ROLES, ("#44546a", _PALETTE[4], _PALETTE[5], _PALETTE[8], "#bdbdbd"), strict=True))
ROLE_HATCHES = dict(zip(schema.ROLES, ("", "////", "", "....", "xxxx"), strict=True))
STATE_COLOURS = {
    "user": _PALETTE[9],
    "kernel": _PALETTE[3],
    "softirq": _PALETTE[8],
    "irq": "#7f4f24",
    "guest": _PALETTE[5],
    "idle": "#f0f0f0",
}
STATE_HATCHES = {"user": "", "kernel": "////", "softirq": "....", "irq": "xxxx", "guest": "\\\\\\\\", "idle": ""}
# What the modelled processor waited for: data in violet, instructions in green, addresses in brown.
CAUSE_COLOURS = {
    "base": "#d4d4d4",
    "L2": "#cbc9e2",
    "LLC": "#9e9ac8",
    "memory": "#54278f",
    "fetch": "#80cdc1",
    "DTLB": "#dfc27d",
    "ITLB": "#8c510a",
    "branches": "#e78ac3",
    "mode": "#44546a",
}
CAUSE_HATCHES = {**dict.fromkeys(CAUSE_COLOURS, ""), "LLC": "////", "fetch": "....", "ITLB": "xxxx", "branches": "\\\\\\\\"}
# What a poll-mode thread does with a burst, in this order: in from a ring, what it is and where to, out to a ring.
STAGE_COLOURS = {"dequeue": "#4477aa", "parse": "#ccbb44", "lookup": "#ee6677", "enqueue": "#228833", "other": "#bbbbbb"}
STAGE_HATCHES = {"dequeue": "", "parse": "xxxx", "lookup": "....", "enqueue": "////", "other": ""}
LOAD_NAMES = {
    "saturation": "saturation", "ndr": "no-drop rate", "pdr": "partial-drop rate", "equal": "equal rate", "paced": "", "none": ""
}  # fmt: skip
WIDTH = 9.2
"""Inches: a report's column at print size."""
INK = "#222222"

mpl.rcParams.update(
    {
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "x",
        "axes.axisbelow": True,
        "axes.edgecolor": "#888888",
        "grid.color": "#dddddd",
        "ytick.left": False,
        "hatch.linewidth": 0.6,
        "hatch.color": "#ffffff",
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
        "savefig.dpi": 130,
    }
)


def traffic_name(traffic: str, load: str) -> str:
    load = LOAD_NAMES.get(load, load)
    return f"{vocabulary.traffic(traffic).words}{', ' + load if load else ''}"


def unit_of_data(traffic: str) -> str:
    """What a traffic's counts are divided by, in words."""
    found = vocabulary.data(traffic)
    return found.words if found else "unit of data"


def traffics(table: pd.DataFrame) -> list[tuple[str, str]]:
    """The (traffic, load) pairs of a table, in the one order."""
    seen = table[["traffic", "load"]].drop_duplicates().itertuples(index=False, name=None)
    return sorted(seen, key=vocabulary.place)


def panels(heights: Sequence[float], columns: int = 1, **options: object) -> tuple[Figure, np.ndarray]:
    """A figure with one row a height [inches]; axes in shape (rows, columns). Kept out of pyplot: nothing to close."""
    figure = Figure(figsize=(WIDTH, sum(heights)))
    axes = figure.subplots(len(heights), columns, squeeze=False, height_ratios=list(heights), **options)
    return figure, axes


def bar_height(rows: int) -> float:
    """Inches that `rows` horizontal bars with a title and an axis need."""
    return 0.95 + 0.36 * rows


def labels(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of horizontal bars, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


def scale(values: pd.Series, unit: str) -> tuple[float, str]:
    """What to divide by, and the axis' unit with its prefix: (1e3, "kpps")."""
    top = float(np.nanmax(np.abs(values))) if len(values.dropna()) else 0.0
    shown = units.si(top, unit).split(" ", 1)
    factors = {"G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
    short = units.si(0, unit).split(" ", 1)[-1]
    word = shown[1] if len(shown) > 1 else ""
    return (factors[word[0]], word) if word != short and word and word[0] in factors else (1.0, word)


def error(row: object, factor: float = 1.0) -> np.ndarray | None:
    """The interval of a summary's row as matplotlib wants it: shape (2, 1), distances from the median."""
    if pd.isna(row.low) or pd.isna(row.high):
        return None
    return np.array([[row.median - row.low], [row.high - row.median]]) / factor


def bars(axes: Axes, table: pd.DataFrame, unit: str, what: str, names: Sequence[str] | None = None) -> None:
    """One horizontal bar a row of a summary, in its switch's colour, with interval and value.

    `what` and the prefixed unit name the axis; `names` are the rows' labels (else the cases'). A row without a number
    keeps its place.
    """
    factor, word = scale(pd.concat([table["median"], table["high"]]), unit)
    reach = float(np.nanmax([*table["median"], *table["high"], 0])) / factor or 1.0
    for place, row in enumerate(table.itertuples()):
        if pd.isna(row.median):
            continue
        axes.barh(place, row.median / factor, 0.66, **case_look(row.switch, row.access))
        interval = error(row, factor)
        if interval is not None:
            axes.errorbar(row.median / factor, place, xerr=interval, color=INK, capsize=3, lw=1.2)
        end = max(row.median, row.median if pd.isna(row.high) else row.high, 0) / factor
        axes.text(end + 0.012 * reach, place, units.significant(row.median / factor), va="center", color=INK)
    labels(axes, list(names) if names is not None else list(table["label"]))
    axes.set_xlim(right=1.12 * reach)
    axes.set_xlabel(f"{what} ({word})" if word else what)


def stacks(axes: Axes, table: pd.DataFrame, part: str, colours: Mapping[str, str], hatches: Mapping[str, str]) -> None:
    """Horizontal stacks: one a `row` of the table (in order of appearance), one segment a value of column `part`."""
    rows = list(dict.fromkeys(table["row"]))
    left = np.zeros(len(rows))
    for name, colour in colours.items():
        values = table[table[part] == name].groupby("row")["median"].sum().reindex(rows).fillna(0).to_numpy()
        if values.any():
            look = {"color": colour, "hatch": hatches[name], "edgecolor": "white", "linewidth": 0.4}
            axes.barh(range(len(rows)), values, 0.7, left=left, label=name, **look)
        left += values
    labels(axes, rows)


def filling(parts: pd.DataFrame, sums: pd.DataFrame) -> pd.DataFrame:
    """`parts` with their medians in proportion, so that those of a `row` sum to its median in `sums`.

    In each window they do sum to it; medians of parts need not sum to the median of their whole.
    """
    factor = sums.groupby("row")["median"].first() / parts.groupby("row")["median"].sum()
    return parts.assign(median=parts["median"] * parts["row"].map(factor.replace(np.inf, np.nan)).fillna(1.0))


def stacked_roles(axes: Axes, part: pd.DataFrame) -> None:
    """A stack by role in each row, its number the packet path's: host-other is drawn beside it, but where the host is an endpoint."""
    parts, path = part[part["role"].isin(list(ROLE_COLOURS))], part[part["role"] == "path"]
    of_path = (parts["role"] != "host-other") | (parts["topology"] == "vm2host")
    # In the table's own order: panels side by side share their rows.
    parts = pd.concat([filling(parts[of_path], path), parts[~of_path]]).sort_index()
    stacks(axes, parts, "role", ROLE_COLOURS, ROLE_HATCHES)
    totals(axes, parts, path)


def totals(axes: Axes, parts: pd.DataFrame, sums: pd.DataFrame) -> None:
    """Number and interval of each row of `sums` beside the stacks that `stacks` drew of `parts`; both have a `row`."""
    rows = list(dict.fromkeys(parts["row"])) or list(dict.fromkeys(sums["row"]))
    reach = float(pd.concat([parts.groupby("row")["median"].sum(), sums["median"], sums["high"]]).max()) or 1.0
    for row in sums[sums["row"].isin(rows)].itertuples():
        place = rows.index(row.row)
        if (interval := error(row)) is not None:
            axes.errorbar(row.median, place, xerr=interval, color=INK, capsize=3, lw=1.2)
        stack = parts.loc[parts["row"] == row.row, "median"].sum()
        end = max(stack, row.median, row.median if pd.isna(row.high) else row.high)
        axes.text(end + 0.02 * reach, place, units.si(row.median, ""), va="center")
    axes.set_xlim(0, 1.22 * reach)


def thousands(axes: Axes) -> None:
    """Large counts on an axis as 20 k, 4 M."""
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))


def _short(value: float) -> str:
    factor, letter = (1e6, " M") if abs(value) >= 1e6 else (1e3, " k") if abs(value) >= 1e4 else (1.0, "")
    return f"{value / factor:g}{letter}"


def legend_above(figure: Figure, axes: Sequence[Axes], order: Sequence[str] = (), columns: int = 7) -> None:
    """One legend for all panels, above them, where it can't cover data; entries in `order`, else as drawn."""
    handles = {}
    for one in axes:
        handles.update({label: handle for handle, label in zip(*one.get_legend_handles_labels(), strict=True)})
    names = [name for name in order or handles if name in handles]
    figure.legend([handles[name] for name in names], names, loc="outside upper left", ncols=columns, handlelength=1.6)


def switch_colour(switch: str) -> str:
    return SWITCH_PALETTE[vocabulary.colour_slot(switch, len(SWITCH_PALETTE))]


def case_look(switch: str, access: str | None) -> dict[str, str]:
    look = {"color": switch_colour(switch), "edgecolor": "white"}
    return {**look, "hatch": ACCESS_HATCHES.get(access or "", "")}


def work_by_role(table: pd.DataFrame, pairs: Sequence[tuple[str, str]], words: Mapping[str, str]) -> Figure:
    """A row of panels for each of ``pairs`` (traffic, load), a panel for each counter of ``words`` (and its words on the axis): each case's
    counts per unit of data, stacked by role."""
    figure, axes = panels([bar_height(table["label"].nunique())] * len(pairs), columns=len(words), sharey="row")
    # Three side by side have no room for it all in one line: their words would run into each other.
    per = "\nper" if len(words) > 2 else " per"
    for (traffic, load), row in zip(pairs, axes, strict=True):
        part = table[(table["traffic"] == traffic) & (table["load"] == load)].assign(row=lambda t: t["label"])
        for one, (counter, name) in zip(row, words.items(), strict=True):
            _stack_roles(one, part[part["counter"] == counter])
            one.set_xlabel(f"{name}{per} {unit_of_data(traffic)}")
        row[0].set_title(traffic_name(traffic, load))
    legend_above(figure, axes.ravel(), list(ROLE_COLOURS))
    return figure


def _stack_roles(axes: Axes, part: pd.DataFrame) -> None:
    if part.empty:
        axes.text(0.5, 0.5, "not counted", transform=axes.transAxes, ha="center")
        return
    stacked_roles(axes, part)
    thousands(axes)
