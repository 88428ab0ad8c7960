# SPDX-License-Identifier: GPL-2.0-or-later
"""What each CPU does in half a millisecond, from shortly before a frame waits for the switch. A CPU that sleeps must be woken: an arrow
leads from where a thread is woken to where it gets a CPU, and as long as that takes its frame waits. A poll-mode thread is not woken,
because it never sleeps: it looks for frames all the time, and mostly finds nothing. It still wakes the guests that it gives frames to.
Guests are also woken by their timers, which the host keeps. CPUs that have no part in it are left out."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from vsprof.analysis import messages, style, vocabulary
from vsprof.analysis.load import Result

SHOWS = "One run of each case, the first that has a timeline, and one moment of it: no measured number, but an example."
LOADS = ("paced", "equal", "saturation")
"""Of the traffics with the first of these the first that every case with a timeline has: single frames are easiest to follow, a stream's
packets hardest."""
BEFORE_US, LENGTH_US = 40.0, 500.0
WHERE = ["case_id", "label", "run_id", "traffic", "load", "source", "cpu", "cpu_role"]
COLUMNS = [*WHERE, "kind", "mode", "role", "thread", "name", "value", "does", "start_us", "length_us"]
MOST_ARROWS = 40
"""In a panel: more would hide what they join."""
IDLE = "idle"
MOVES = ("work", "poll")
BUSY_ROLES = ("guest", "switch", "vhost", "softirq")


def table(result: Result) -> pd.DataFrame:
    """One row for each thing that happens in the picture: microseconds since its begin."""
    known = result.timeline.select(kind=["recorded"]).sort_values("run_id")
    if known.empty:
        return known
    first = known.drop_duplicates("case_id").set_index("case_id")["run_id"]
    traffic, load = _traffic(known[known["run_id"].isin(first)])
    # No more is read than is drawn: a long campaign's timelines would not fit into memory.
    found = result.timeline.select(run_id=list(first), traffic=[traffic], load=[load])
    found = found[found["window"] == found["case_id"].map(found.groupby("case_id")["window"].min())]
    having = [case for case in result.cases.index if case in set(found["case_id"])]
    pictures = [_picture(found[found["case_id"] == case], result.cases.loc[case, "label"]) for case in having]
    return pd.concat(pictures, ignore_index=True)


def missing(result: Result) -> list[str]:
    return [messages.NO_TIMELINE] if result.timeline.select(["kind"], most=1).empty else []


def plot(table: pd.DataFrame) -> Figure:
    cases = table.drop_duplicates("label")["label"]
    parts = {case: table[table["label"] == case] for case in cases}
    figure, axes = style.panels([1.15 + 0.4 * part["cpu"].nunique() for part in parts.values()], sharex=True)
    for one, (case, part) in zip(axes[:, 0], parts.items(), strict=True):
        _draw(one, part)
        one.set_title(f"{case}: {style.traffic_name(part['traffic'].iloc[0], part['load'].iloc[0])}")
        one.set_xlim(0, LENGTH_US)
    axes[-1, 0].set_xlabel("time (µs)")
    handles: list[Any] = [Patch(fc=look["color"], ec="#888888", lw=0.5, label=words) for words, look in style.DOING.items()]
    handles.append(Line2D([], [], color=style.INK, marker=">", ms=5, lw=1.1, label="wakes a thread"))
    figure.legend(handles=handles, loc="outside upper left", ncols=4, handlelength=1.6)
    return figure


def _traffic(found: pd.DataFrame) -> tuple[str, str]:
    cases = found["case_id"].nunique()
    having = found.groupby(["traffic", "load"])["case_id"].nunique()
    known = sorted(style.traffics(found), key=_followed)
    return next((pair for pair in known if having.get(pair, 0) == cases), having.idxmax())


def _followed(pair: tuple[str, str]) -> tuple[bool, ...]:
    return (*(pair[1] != load for load in LOADS), vocabulary.traffic(pair[0]).kind == "stream")


def _picture(spans: pd.DataFrame, label: str) -> pd.DataFrame:
    """What lies in a case's picture, cut at its ends."""
    known = spans[spans["kind"] == "recorded"]
    spans = spans.assign(label=label, cpu_role=spans["cpu"].map(known.set_index("cpu")["role"]))
    begin, end = known["time_ns"].min(), (known["time_ns"] + known["duration_ns"]).min()
    since = max(begin, min(_frame_is_there(spans, begin) - 1e3 * BEFORE_US, end - 1e3 * LENGTH_US))
    at, until = (spans["time_ns"] - since) / 1e3, (spans["time_ns"] + spans["duration_ns"] - since) / 1e3
    here = (until >= 0) & (at <= LENGTH_US) & (spans["kind"] != "recorded")
    start = at.clip(lower=0)
    cut = spans.assign(start_us=start, length_us=until.clip(upper=LENGTH_US) - start, does=_does(spans))[here]
    return cut.loc[cut["cpu"].isin(_taking_part(cut)), COLUMNS].sort_values(["cpu", "start_us"])


def _moves(spans: pd.DataFrame) -> pd.Series:
    """What moves frames: where a kernel's softirqs are the switch, they do."""
    receives = (spans["kind"] == "softirq") & (spans["name"] == "net_rx") & (spans["mode"] != "guest")
    return spans["kind"].isin(MOVES) | (receives & (spans["cpu_role"] == "softirq"))


def _frame_is_there(spans: pd.DataFrame, begin: int) -> int:
    """When the first frame waits to be moved: when the thread that moves it is woken, or when it polls."""
    moves = spans[_moves(spans) & (spans["time_ns"] >= begin + 1e3 * BEFORE_US)].sort_values("time_ns")
    if moves.empty:
        return begin
    first = moves.iloc[0]
    host = spans[(spans["mode"] != "guest") & (spans["time_ns"] <= first["time_ns"])].sort_values("time_ns")
    thread = host.loc[(host["kind"] == "task") & (host["cpu"] == first["cpu"]), "thread"].iloc[-1:]
    woken = host.loc[(host["kind"] == "wake") & host["thread"].isin(thread) & (host["time_ns"] >= first["time_ns"] - 1e3 * LENGTH_US)]
    return int(first["time_ns"] if woken.empty or first["kind"] != "work" else woken["time_ns"].iloc[-1])


def _taking_part(cut: pd.DataFrame) -> set[int]:
    """CPUs that move frames or that endpoints have, and those on which threads of theirs are woken."""
    ends = (cut["kind"] == "guest") | ((cut["kind"] == "task") & (cut["role"] == "guest"))
    these = set(cut.loc[ends | _moves(cut) | cut["cpu_role"].isin(BUSY_ROLES), "cpu"])
    host = cut[cut["mode"] != "guest"]
    theirs = host.loc[(host["kind"] == "task") & (host["name"] != IDLE) & host["cpu"].isin(these), "thread"]
    return these | set(host.loc[(host["kind"] == "wake") & host["thread"].isin(theirs), "cpu"])


def _does(spans: pd.DataFrame) -> np.ndarray:
    """What is drawn of it, in the words of style.DOING; empty: nothing."""
    kind, idle = spans["kind"], (spans["kind"] == "task") & (spans["name"] == IDLE) & (spans["mode"] != "guest")
    known = {
        "asleep": kind == "sleep",
        "awake, idle": idle,
        "a thread runs": (kind == "task") & ~idle & (spans["mode"] != "guest"),
        "its guest runs": kind == "guest",
        "polls, finds nothing": kind == "empty_polls",
        "moves frames": _moves(spans),
        "interrupt or softirq": kind.isin(["irq", "softirq"]),
    }
    return np.select(list(known.values()), list(known), default="")


def _draw(axes: Axes, part: pd.DataFrame) -> None:
    places = {cpu: place for place, cpu in enumerate(sorted(part["cpu"].unique()))}
    for order, (does, look) in enumerate(style.DOING.items()):
        height = 0.34 if does == "interrupt or softirq" else 0.62
        for cpu, spans in part[part["does"] == does].groupby("cpu"):
            bars = spans[["start_us", "length_us"]].to_numpy()
            edge = {"edgecolor": "#888888", "lw": 0.4} if does == "asleep" else {"edgecolor": "none"}
            axes.broken_barh(bars, (places[cpu] - height / 2, height), facecolor=look["color"], zorder=2 + 0.1 * order, **edge)
    _draw_arrows(axes, part, places)
    roles = part.drop_duplicates("cpu").set_index("cpu")["cpu_role"]
    style.labels(axes, [f"CPU {cpu} ({roles[cpu]})" if roles[cpu] else f"CPU {cpu}" for cpu in places])


def _draw_arrows(axes: Axes, part: pd.DataFrame, places: dict[int, int]) -> None:
    """From each waking to the next time that the thread gets a CPU. A guest's own threads are its own affair."""
    wakes = part[(part["kind"] == "wake") & (part["mode"] != "guest")]
    runs = part[(part["kind"] == "task") & (part["mode"] != "guest")]
    look: dict[str, Any] = {"arrowstyle": "-|>", "color": style.INK, "lw": 1.1, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 9}
    for wake in wakes.head(MOST_ARROWS).itertuples():
        after = runs[(runs["thread"] == wake.thread) & (runs["start_us"] >= wake.start_us)]
        if not after.empty:
            begin, end = (wake.start_us, places[wake.cpu]), (after.iloc[0]["start_us"], places[after.iloc[0]["cpu"]])
            axes.annotate("", xy=end, xytext=begin, arrowprops=look, zorder=4)
