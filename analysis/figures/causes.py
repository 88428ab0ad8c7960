# SPDX-License-Identifier: GPL-2.0-or-later
"""What each change of the way to the host does to a TCP stream: goodput [bit/s, on a logarithmic axis], context switches per second of all
threads of ovs-vswitchd [events/s, logarithmic], and the main thread's time, running and waiting for its CPU [fraction of the time]. Dashed
is a hundredth of the kernel's goodput where nothing is changed: the published collapse lies below it. Each row changes what it names, and
nothing else, but for afxdp: AF_XDP hands on no unfinished checksum and no uncut segment, so the host's end has no offloads there."""

import textwrap
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vsprof.analysis import style
from vsprof.analysis.comparison import sent
from vsprof.analysis.load import Result
from vsprof.analysis.published import EVERY
from vsprof.analysis.sources import SOFTWARE

NEEDS = ("goodput", "context_switches_voluntary", "main_thread_run_seconds", "main_thread_wait_seconds")
DEEP = "published_depth"
"""The metric of the dashed line."""
WIDEST = 46
"""Characters of a case's name on one line: with three changes in one the panels would have no room beside it."""
TIMES = {"main_thread_running": "running", "main_thread_waiting": "waiting for its CPU"}
LOOKS = {"running": style.STATES["user"], "waiting for its CPU": style.STATES["kernel"]}


def table(result: Result) -> pd.DataFrame:
    """One row a case and metric: goodput, context switches of the switch's threads, the main thread's shares of time; and the dashed line's
    place, as `published_depth` of the kernel's case."""
    tcp = sent(result, "tcp")
    goodput = SOFTWARE.summary(result, ["goodput"], **tcp)
    switched = SOFTWARE.summary(result, ["context_switches_per_second"], role="switch", cpu=-1, **tcp)
    times = SOFTWARE.summary(result, list(TIMES), role="switch", **tcp)
    unchanged = [case for case, changed in result.changed.items() if not changed]
    kernel = goodput[(goodput["switch"] != "ovs-dpdk") & goodput["case_id"].isin(unchanged)].head(1)
    deep = kernel.assign(metric=DEEP, median=kernel["median"] * EVERY["T2-throughput"].high, low=float("nan"), high=float("nan"))
    parts = [part for part in (goodput, switched, times, deep) if not part.empty]
    return pd.concat(parts, ignore_index=True) if parts else goodput


def plot(table: pd.DataFrame) -> Figure:
    table = table.assign(row=table["label"].map(lambda name: textwrap.fill(name, WIDEST, break_on_hyphens=False)))
    labels = table.loc[table["metric"] == "goodput", "row"].unique()
    figure, [[goodput, switched, times]] = style.panels([style.bar_height(len(labels))], columns=3, sharey="row")
    # In all three panels each case has a row, empty where a metric was not counted.
    factor = _bars(goodput, table[table["metric"] == "goodput"], labels, "bit/s", "goodput")
    for place in table.loc[table["metric"] == DEEP, "median"]:
        goodput.axvline(place / factor, ls="--", lw=1, color=style.INK)
    switches = table[table["metric"] == "context_switches_per_second"]
    _bars(switched, switches, labels, "events/s", "context switches\nof ovs-vswitchd")
    parts = table.assign(part=table["metric"].map(TIMES)).dropna(subset="part")
    empty = pd.DataFrame({"row": labels, "part": "running", "median": 0.0})
    style.stacks(times, pd.concat([empty, parts[["row", "part", "median"]]], ignore_index=True), "part", LOOKS)
    times.set_xlabel("main thread,\nshare of the time")
    times.set_xlim(0, 1.05)
    return style.legend_above(figure, LOOKS)


def _bars(axes: Axes, rows: pd.DataFrame, labels: Sequence[str], unit: str, what: str) -> float:
    rows = rows.set_index("row").reindex(labels)
    if rows["median"].isna().all():
        axes.text(0.5, 0.5, "not counted", transform=axes.transAxes, ha="center")
        return 1.0
    factor = style.bars(axes, rows, unit, what, labels)
    axes.set_xscale("log")
    # Room on both sides: for the smallest bar, and for the number behind the longest.
    axes.set_xlim(0.3 * rows["median"].min() / factor, 12 * rows["median"].max() / factor)
    return factor
