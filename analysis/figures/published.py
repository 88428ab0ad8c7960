# SPDX-License-Identifier: GPL-2.0-or-later
"""Published ratios (diamonds, or a band where the text gives no number) beside ours (dots with intervals). A ratio is
the case named first over the second; 1 means no difference. Absolute figures belong to their machines, so ratios alone
are compared. A row without a dot says what it would take to measure it."""

import dataclasses

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from vsprof.analysis import metrics, style
from vsprof.analysis.load import Result
from vsprof.analysis.published import Comparison, beside
from vsprof.terms import units

PUBLISHED, OURS = style.switch_colour("linux-bridge"), style.switch_colour("ovs-dpdk")


def table(result: Result) -> pd.DataFrame:
    """One row a published figure and metric of ours, of traffic that was sent: published ratio or range, our median, low, high, n."""
    sent = metrics.sent(result)
    found = [one for one in beside(result) if not one.modelled and (not one.traffic or (one.traffic, one.load) in sent)]
    return pd.DataFrame([row_of(one) for one in found])


def plot(table: pd.DataFrame) -> Figure:
    figure, [[one]] = style.panels([1.2 + 0.5 * len(table)])
    one.set_xscale("log")
    for place, row in enumerate(table.itertuples()):
        _published(one, place, row)
        _ours(one, place, row)
    one.axvline(1, color="#888888", lw=1)
    style.labels(one, table["row"])
    low, high = one.get_xlim()
    one.set_xlim(low / 1.6, high * 1.6)
    # Ratios near 1 span less than a decade: then 1, 2, 5 are named, too.
    one.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    one.xaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    one.xaxis.set_minor_formatter(NullFormatter())
    one.set_xlabel("ratio (log scale)")
    return style.legend_above(figure)


def row_of(one: Comparison) -> dict[str, object]:
    published = one.published
    compared = " over ".join("/".join(map(str, side.values())) for side in (published.case, published.base))
    traffic = style.traffic_name(one.traffic, one.load) if one.traffic else f"(not measured: needs {published.needs})"
    traffic += f", {one.label}" if one.label else ""
    return {
        "row": f"{published.target} {published.what}, {compared}\n{traffic}",
        "target": published.target,
        "what": published.what,
        "compared": compared,
        "published": published.figure,
        **{f"published_{end}": getattr(published, end) for end in ("ratio", "low", "high")},
        "bound": published.bound,
        "traffic": traffic,
        **dataclasses.asdict(one.ratio),
        "n": one.ratio.n or None,
        "unit": "ratio",
        "needs": published.needs,
    }


def _published(axes: Axes, place: int, row: object) -> None:
    label = "published" if "published" not in axes.get_legend_handles_labels()[1] else None
    if pd.notna(row.published_ratio):
        axes.plot(row.published_ratio, place, "D", ms=8, label=label, color=PUBLISHED)
        text = f"{'≤ ' if row.bound == 'upper' else ''}{row.published_ratio:.3g}×"
        axes.annotate(text, (row.published_ratio, place), (0, 8), textcoords="offset points", ha="center", size=8)
    elif pd.notna(row.published_low):
        axes.barh(place, row.published_high - row.published_low, 0.4, left=row.published_low, label=label, color=PUBLISHED)


def _ours(axes: Axes, place: int, row: object) -> None:
    if pd.isna(row.median):
        if not row.needs:
            axes.text(1.05, place, "no number in this result", va="center", size=9, style="italic", color="#666666")
        return
    axes.plot(row.median, place, "o", ms=7, color=OURS, label="ours")
    style.interval(axes, row, place, capsize=4, zorder=3, fmt="none")
    text = f"{units.significant(row.median)}×"
    axes.annotate(text, (row.median, place), (0, -15), textcoords="offset points", ha="center", size=8)
