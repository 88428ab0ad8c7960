# SPDX-License-Identifier: GPL-2.0-or-later
"""What the switch's poll-mode thread does with its CPU: left, the share of cycles in iterations that found packets
(busy, in the switch's colour) and in those that found none (idle polling); right, cycles per packet, busy iterations alone, where
something was sent. Cycles are time-stamp counter cycles as the switch itself counts them. In modelled time the counter is the modelled
processor's. In the emulator's time it is the emulator's: shares and ratios mean something then, absolute sizes do not."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import metrics, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

NEEDS = ("pmd_busy_cycles", "pmd_idle_cycles", "pmd_packets")


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic and metric: pmd_busy and pmd_idle [fraction], pmd_cycles_per_packet [cycles/packet]."""
    found = SOFTWARE.summary(result, ["pmd_busy", "pmd_idle", "pmd_cycles_per_packet"])
    # A stray packet in an idle window says nothing of what packets cost.
    found = found[(found["metric"] != "pmd_cycles_per_packet") | metrics.flowing(found)]
    share = found["metric"].map({"pmd_busy": "busy", "pmd_idle": "idle polling"}).fillna("")
    pairs = list(zip(found["traffic"], found["load"], strict=True))
    rows = [style.traffic_name(*pair) for pair in pairs]
    if found["label"].nunique() > 1:
        rows = [f"{label}\n{name}" for label, name in zip(found["label"], rows, strict=True)]
    order = sorted(range(len(pairs)), key=lambda place: vocabulary.place(pairs[place]))
    return found.assign(share=share, row=rows).iloc[order].reset_index(drop=True)


def plot(table: pd.DataFrame) -> Figure:
    shares, costs = table[table["share"] != ""], table[table["share"] == ""]
    rows = table["row"].unique()
    longer = sum(style.wrapped(row).count("\n") > 1 for row in rows)
    figure, [[left, right]] = style.panels([style.bar_height(len(rows)) + 0.3 + 0.15 * longer], columns=2)
    for place, row in enumerate(rows):
        if (part := shares[shares["row"] == row].set_index("share")).empty:
            continue
        busy, idle = (float(part["median"].get(share, 0.0)) for share in ("busy", "idle polling"))
        left.barh(place, busy, 0.7, **style.case_look(part["switch"].iloc[0], part["access"].iloc[0]))
        left.barh(place, idle, 0.7, left=busy, color=style.STATES["idle"]["color"], edgecolor="white", linewidth=0.4, label="idle polling")
    style.labels(left, rows)
    left.set_title("share of the thread's cycles")
    left.set_xlim(0, 1)
    left.set_xlabel("share of cycles")
    if not costs.empty:
        # Where no packet came none has a cost, and the row stays: both panels have the same.
        style.bars(right, costs.set_index("row").reindex(rows), "", "TSC cycles per packet, busy iterations", rows)
    right.set_title("cost of a packet")
    right.set_yticklabels([])
    return style.legend_above(figure)
