# SPDX-License-Identifier: GPL-2.0-or-later
"""What each of the experiment's changes does to the rate of each switch, in percent of its rate without the change, with the 95 %
interval of the ratio. The changes that matter most to any switch are on top. Filled: the interval excludes no difference. Diamond: the
same of the instructions that the switch's processors end in a second, by the model; where it is far from the bar's end, endpoints or
drops are part of the rate, or chance. In the table, elasticity is by how many percent the rate grows for one percent more of a value,
with its interval."""

from collections.abc import Iterable

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vsprof.analysis import messages, stats, style, vocabulary, what_if
from vsprof.analysis.load import Result


def table(result: Result) -> pd.DataFrame:
    """One row a traffic, setting, change and switch; `median`, `low` and `high` are of the ratio to the unchanged case, `elasticity` as
    `what_if.Effect` has it."""
    rows = [
        {
            "traffic": traffic, "load": load, "setting": one.setting, "switch": one.switch, "label": one.words, "median": one.ratio.median,
            "low": one.ratio.low, "high": one.ratio.high, "n": one.ratio.n, "unit": "ratio", "sure": one.ratio.decided,
            "speed": one.speed.median, "size": one.size, **{f"elasticity{end}": value for end, value in _ends(one.elasticity)},
        }
        for traffic, load in what_if.traffics(result)
        for one in what_if.effects(result, traffic, load)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _ends(elasticity: stats.Estimate | None) -> Iterable[tuple[str, float | None]]:
    known = elasticity or stats.NOTHING
    return ("", known.median), ("_low", known.low), ("_high", known.high)


def missing(result: Result) -> list[str]:
    return [] if result.changes and what_if.traffics(result) else [messages.NO_CHANGES]


def plot(table: pd.DataFrame) -> Figure:
    switches = list(dict.fromkeys(table["switch"]))
    parts = table.groupby(["traffic", "load", "setting"], sort=False)
    # Frame sizes in the result's order, within the one order of traffics.
    groups = sorted(parts, key=lambda group: vocabulary.place(group[0][:2]))
    heights = [style.bar_height(part["label"].nunique()) for _, part in groups]
    figure, axes = style.panels(heights, columns=len(switches), sharey="row", sharex="row")
    for row, ((traffic, load, setting), part) in zip(axes, groups, strict=True):
        labels = list(part.groupby("label")["size"].max().sort_values(ascending=False).index)
        for axis, switch in zip(row, switches, strict=True):
            _bars(axis, part[part["switch"] == switch].set_index("label").reindex(labels), switch)
            axis.set_title(vocabulary.switch(switch).words)
        style.labels(row[0], labels)
        of = ", ".join(filter(None, [style.traffic_name(traffic, load), setting]))
        row[len(row) // 2].set_xlabel(f"{of}: change of the rate (%)")
    return figure


def _bars(axis: Axes, rows: pd.DataFrame, switch: str) -> None:
    percent = rows.assign(**{name: 100 * (pd.to_numeric(rows[name]) - 1) for name in ("median", "low", "high", "speed")})
    colour = style.switch_colour(switch)
    for place, row in enumerate(percent.itertuples()):
        if pd.notna(row.median):
            axis.barh(place, row.median, 0.66, color=colour if row.sure else "white", edgecolor=colour)
            style.interval(axis, row, place)
        if pd.notna(row.speed):
            axis.plot(row.speed, place, "D", ms=4.5, color=style.INK, mfc="white")
    axis.axvline(0, color=style.INK, lw=0.8)
