# SPDX-License-Identifier: GPL-2.0-or-later
"""How all figures look: one colour a switch, one hatch an access, one order everywhere, readable in greyscale."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from vsprof.analysis import read, vocabulary
from vsprof.terms import units

_READ = read(__file__)
SWITCHES, ACCESSES = _READ["switches"], _READ["accesses"]
ROLES, STATES, CAUSES, STAGES, DOING, FRAMES = (_READ[of] for of in ("roles", "states", "causes", "stages", "doing", "frames"))
"""By what is drawn, how it looks: its colour, and its hatch where it has one."""
STACKS = {"role": (ROLES, "path"), "cause": (CAUSES, "cycles"), "stage": (STAGES, "all")}
"""By the column of what is stacked: its parts, and what the column calls the whole."""
WIDTH = 9.2
"""Inches: a report's column at print size."""
WIDEST = 44
"""Letters of a row's name on one line, so that it leaves its panel room."""
INK = "#222222"
DASHES = ("-", "--", ":")
LEAST_SPAN = 4.0
"""How many times its lower end the upper end of a logarithmic axis is at least."""

matplotlib.style.use(Path(__file__).with_name("figures.mplstyle"))


def traffic_name(traffic: str, load: str) -> str:
    load = vocabulary.LOADS.get(load, load)
    return f"{vocabulary.traffic(traffic).words}{', ' + load if load else ''}"


def unit_of_data(traffic: str) -> str:
    """What a traffic's counts are divided by, in words."""
    found = vocabulary.traffic(traffic).data
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


def by_traffic(table: pd.DataFrame, columns: int = 1, height: float | None = None) -> tuple[Figure, list[tuple[Any, pd.DataFrame, str]]]:
    """A figure with a row of panels for each traffic and load of a table, whose name is their title; and of each row its axes (one, or as
    many as `columns`), the table's part, in which `row` is the case, and the traffic.

    `height`: of a row [inches], else as much as a bar for each row of the part needs.
    """
    groups = table.assign(row=table["label"]).groupby(["traffic", "load"])
    parts = {pair: groups.get_group(pair) for pair in traffics(table)}
    figure, axes = panels([height or bar_height(len(part)) for part in parts.values()], columns, sharey="row")
    for row, pair in zip(axes, parts, strict=True):
        row[0].set_title(traffic_name(*pair))
    return figure, [(row if columns > 1 else row[0], part, pair[0]) for row, (pair, part) in zip(axes, parts.items(), strict=True)]


def grid(number: int, columns: int, height: float) -> tuple[Figure, np.ndarray]:
    """A figure with so many panels of a height [inches], row by row, on one horizontal scale; those left over are not seen."""
    figure, axes = panels([height] * math.ceil(number / columns), columns, sharex=True)
    # Inches that the axis's name and a legend would take from the panels, most of all from a single row of them.
    figure.set_figheight(figure.get_figheight() + 0.7)
    for left_over in axes.ravel()[number:]:
        left_over.set_axis_off()
    return figure, axes


def bar_height(rows: int) -> float:
    """Inches that `rows` horizontal bars with a title and an axis need."""
    return 0.95 + 0.36 * rows


def wrapped(name: str) -> str:
    """Each line of a row's name in lines of at most WIDEST letters."""
    lines = (textwrap.wrap(line, WIDEST, break_long_words=False, break_on_hyphens=False) for line in name.split("\n"))
    return "\n".join(part for line in lines for part in line)


def labels(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of horizontal bars, the first on top; a long name takes two lines or more."""
    axes.set_yticks(range(len(names)), [wrapped(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)


def scale(values: pd.Series, unit: str) -> tuple[float, str]:
    """What to divide by, and the axis' unit with its prefix: (1e3, "kpps")."""
    word, bare = (units.si(value, unit).partition(" ")[2] for value in (np.nan_to_num(values.abs().max()), 0))
    factors = {"G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
    return factors.get(word.removesuffix(bare), 1.0), word


def part_lines(axes: Axes, groups: pd.Series, **look: object) -> None:
    """A line between rows wherever the next one is of another group."""
    for place in np.flatnonzero(groups.to_numpy()[1:] != groups.to_numpy()[:-1]):
        axes.axhline(place + 0.5, lw=0.8, **look)


def interval(axes: Axes, row: Any, place: float, factor: float = 1.0, **look: object) -> None:
    """The interval of a summary's row, where it has one, as a line with two ends at the height `place`."""
    if pd.notna(row.low) and pd.notna(row.high):
        ends = np.array([[row.median - row.low], [row.high - row.median]]) / factor
        axes.errorbar(row.median / factor, place, xerr=ends, **{"color": INK, "capsize": 3, "lw": 1.2, **look})


def bars(axes: Axes, table: pd.DataFrame, unit: str, what: str, names: Sequence[str] | None = None) -> float:
    """One horizontal bar a row of a summary, in its switch's colour, with interval and value.

    `what` and the prefixed unit name the axis; `names` are the rows' labels (else the cases'). A row without a number keeps its place.
    Returns what the axis' numbers are divided by.
    """
    factor, word = scale(pd.concat([table["median"], table["high"]]), unit)
    reach = float(np.nanmax([*table["median"], *table["high"], 0])) / factor or 1.0
    for place, row in enumerate(table.itertuples()):
        if pd.isna(row.median):
            continue
        axes.barh(place, row.median / factor, 0.66, **case_look(row.switch, row.access))
        interval(axes, row, place, factor)
        end = np.nanmax([row.median, row.high, 0]) / factor
        axes.text(end + 0.012 * reach, place, units.significant(row.median / factor), va="center", color=INK)
    labels(axes, table["label"] if names is None else names)
    axes.set_xlim(right=1.12 * reach)
    axes.set_xlabel(f"{what} ({word})" if word else what)
    return factor


def stacks(axes: Axes, table: pd.DataFrame, part: str, looks: Mapping[str, Mapping[str, str]]) -> None:
    """Horizontal stacks: one a `row` of the table (in order of appearance), one segment a value of column `part`."""
    rows = list(dict.fromkeys(table["row"]))
    left = np.zeros(len(rows))
    for name, look in looks.items():
        values = table[table[part] == name].groupby("row")["median"].sum().reindex(rows).fillna(0).to_numpy()
        if values.any():
            axes.barh(range(len(rows)), values, 0.7, left=left, label=name, **look, edgecolor="white", linewidth=0.4)
        left += values
    labels(axes, rows)


def stacked(axes: Axes, part: pd.DataFrame, of: str, what: str, empty: str = "not counted") -> bool:
    """A stack in each `row` by the column `of` (role, cause or stage), with number and interval of its whole; `what` names the axis, and
    `empty` is said where there is nothing to draw: then False is returned.

    In each window the parts sum to the whole; medians of parts need not. So those of roles and causes are drawn in proportion. Of roles the
    whole is the packet path: host-other is drawn beside it, but where the host is an endpoint.
    """
    axes.set_xlabel(what)
    if part.empty:
        axes.text(0.5, 0.5, empty, transform=axes.transAxes, ha="center")
        return False
    looks, whole = STACKS[of]
    parts, sums = part[part[of].isin(list(looks))], part[part[of] == whole]
    if of != "stage":
        beside = (parts[of] == "host-other") & (parts["topology"] != "vm2host")
        factor = sums.groupby("row")["median"].first() / parts[~beside].groupby("row")["median"].sum()
        factor = parts["row"].map(factor.replace(np.inf, np.nan)).fillna(1.0).mask(beside, 1.0)
        parts = parts.assign(median=parts["median"] * factor)
    stacks(axes, parts, of, looks)
    lengths = parts.groupby("row", sort=False)["median"].sum()
    rows = list(lengths.index) or list(sums["row"].unique())
    reach = float(pd.concat([lengths, sums["median"], sums["high"]]).max()) or 1.0
    for row in sums[sums["row"].isin(rows)].itertuples():
        interval(axes, row, rows.index(row.row))
        end = np.nanmax([lengths.get(row.row, 0), row.median, row.high])
        axes.text(end + 0.02 * reach, rows.index(row.row), units.si(row.median, ""), va="center")
    axes.set_xlim(0, 1.22 * reach)
    return True


def curves(table: pd.DataFrame, what: str, line: str = "") -> Figure:
    """Lines over `x` in a panel for each `curve` of a table of summaries, in their switch's colour, with intervals; both axes logarithmic.

    `what` names the vertical axes; `line` is a column whose values have a dash pattern each.
    """
    names, kinds = list(dict.fromkeys(table["curve"])), list(dict.fromkeys(table[line])) if line else [""]
    columns = min(3, len(names))
    figure, axes = panels([2.6] * math.ceil(len(names) / columns), columns)
    figure.set_figheight(figure.get_figheight() + 0.7)
    for one in axes.ravel()[len(names) :]:
        one.set_axis_off()
    factor, word = scale(table["median"], table["unit"].iloc[0])
    for one, name in zip(axes.ravel(), names, strict=False):
        part = table[table["curve"] == name]
        for (switch, kind), rows in part.groupby(["switch", line] if line else ["switch", "curve"], sort=False):
            label = f"{vocabulary.switch(switch).words}{f': {kind}' if line else ''}"
            dashes = DASHES[kinds.index(kind) % len(DASHES)] if line else "-"
            ends = [(rows["median"] - rows["low"]).fillna(0) / factor, (rows["high"] - rows["median"]).fillna(0) / factor]
            look = {"color": switch_colour(switch), "ls": dashes, "marker": "o", "ms": 4, "capsize": 3, "label": label}
            one.errorbar(rows["x"], rows["median"] / factor, yerr=ends, **look)
        _multiples(one, sorted(set(part["x"])))
        one.set_title("\n".join(textwrap.wrap(name, 30)))
        one.set_xlabel(part["axis"].iloc[0])
    for row in axes:
        row[0].set_ylabel(f"{what} ({word})" if word else what)
    return legend_above(figure, columns=3)


def _multiples(axes: Axes, places: Sequence[float]) -> None:
    """Logarithmic axes, the horizontal one with a mark at each of a few places, the vertical one with plain numbers."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(places, [_short(place) for place in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    # A line that is nearly flat must look so.
    if high / low < LEAST_SPAN:
        middle = math.sqrt(high * low)
        axes.set_ylim(middle / math.sqrt(LEAST_SPAN), middle * math.sqrt(LEAST_SPAN))


def thousands(axes: Axes) -> None:
    """Large counts on an axis as 20 k, 4 M."""

    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(lambda value, _: _short(value))


def _short(value: float) -> str:
    factor, letter = (1e6, " M") if abs(value) >= 1e6 else (1e3, " k") if abs(value) >= 1e3 else (1.0, "")
    return f"{value / factor:g}{letter}"


def legend_above(figure: Figure, order: Iterable[str] = (), columns: int = 7) -> Figure:
    """The figure with one legend for all panels, above them, where it can't cover data; entries in `order`, else as drawn."""
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    names = [name for name in order or handles if name in handles]
    fit = next((count for count in range(min(columns, len(names)), 1, -1) if _legend_width(names, count) < WIDTH), 1)
    figure.legend([handles[name] for name in names], names, loc="outside upper left", ncols=fit, handlelength=1.6)
    return figure


def _legend_width(names: Sequence[str], columns: int) -> float:
    """Inches that a legend takes, about: its entries run down the columns, each as wide as its longest."""
    rows = math.ceil(len(names) / columns)
    longest = [max(map(len, names[start : start + rows])) for start in range(0, len(names), rows)]
    return sum(0.6 + 0.081 * letters for letters in longest)


def switch_colour(switch: str) -> str:
    return SWITCHES[vocabulary.colour_slot(switch, len(SWITCHES))]


def case_look(switch: str, access: str | None) -> dict[str, str]:
    return {"color": switch_colour(switch), "edgecolor": "white", "hatch": ACCESSES.get(access or "", "")}


def work_by_role(table: pd.DataFrame, words: Mapping[str, str]) -> Figure:
    """A row of panels for each traffic and load, a panel for each counter of ``words`` (and its words on the axis): each case's counts per
    unit of data, stacked by role."""
    figure, rows = by_traffic(table, len(words), bar_height(table["label"].nunique()))
    # Three side by side have no room for it all in one line: their words would run into each other.
    per = "\nper" if len(words) > 2 else " per"
    for row, part, traffic in rows:
        for axes, (counter, name) in zip(row, words.items(), strict=True):
            if stacked(axes, part[part["counter"] == counter], "role", f"{name}{per} {unit_of_data(traffic)}"):
                thousands(axes)
    return legend_above(figure, ROLES)
