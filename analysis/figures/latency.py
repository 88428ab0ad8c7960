# SPDX-License-Identifier: GPL-2.0-or-later
"""Round-trip time of paced requests, one at a time, at each percentile [seconds]: the request rate is fixed and far below saturation, so
queues stay empty and what is seen is wake-ups and work. The percentile axis is logarithmic in what lies beyond it, so that the tail gets
room. Each point is the mean over windows of that window's percentile, then the median over repetitions."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from vsprof.analysis import metrics, style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE
from vsprof.terms import units

NEEDS = metrics.RTT
BEYOND = {"rtt_min": 1.0, "rtt_p50": 0.5, "rtt_p90": 0.1, "rtt_p99": 0.01, "rtt_p999": 0.001}
TICKS = ("min", "50 %", "90 %", "99 %", "99.9 %")
LINES = ("-", "--", ":", "-.")


def table(result: Result) -> pd.DataFrame:
    """One row a case and percentile; `beyond` is the share of round trips that took longer."""
    found = SOFTWARE.summary(result, list(metrics.RTT))
    return found.assign(beyond=found["metric"].map(BEYOND))


def plot(table: pd.DataFrame) -> Figure:
    figure, [[one]] = style.panels([4.0])
    drawn = table.dropna(subset=["beyond"]).sort_values("beyond", ascending=False, kind="stable")
    seen: dict[str, int] = {}
    for label in table["label"].unique():
        part = drawn[drawn["label"] == label]
        switch = part["switch"].iloc[0]
        colour, line = style.switch_colour(switch), LINES[seen.setdefault(switch, 0) % len(LINES)]
        seen[switch] += 1
        where = 1 / part["beyond"]
        one.plot(where, part["median"], line, marker="osD^"[len(seen) % 4], ms=5, color=colour, label=label)
        if part["low"].notna().any():
            one.fill_between(where, part["low"], part["high"], color=colour, alpha=0.2, lw=0)
    one.set_xscale("log")
    one.set_xticks([1 / share for share in BEYOND.values()], TICKS)
    one.minorticks_off()
    low, high = one.get_ylim()
    if low > 0 and high / low > 5:
        one.set_yscale("log")
        one.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=99))
    else:
        one.set_ylim(bottom=0)
    one.yaxis.set_minor_locator(NullLocator())
    one.yaxis.set_major_formatter(lambda value, _: units.si(value, "seconds", 2))
    one.set_xlabel("percentile of round trips (log scale of the share beyond)")
    one.set_ylabel("round-trip time")
    one.grid(axis="y")
    return style.legend_above(figure)
