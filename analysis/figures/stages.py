# SPDX-License-Identifier: GPL-2.0-or-later
"""Where cycles per packet of vhost-switch's poll-mode thread go: dequeue (out of the sender's ring), parse, lookup (which port), enqueue
(into the receiver's ring), other (frames that wait for room). TSC cycles as the switch itself counts them in bursts with packets;
polls that found nothing are not among them. What a stage waits for, such as a cache line, is in its cycles."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import metrics, style
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

NEEDS = ("timed_packets", *(f"stage_{stage}_cycles" for stage in metrics.STAGES))


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic and stage ("all": the sum); TSC cycles per packet."""
    names = {f"stage_{stage}_cycles_per_packet": stage for stage in metrics.STAGES} | {"pmd_cycles_per_packet": "all"}
    found = SOFTWARE.summary(result, list(names))
    found = found.assign(stage=found["metric"].map(names))
    counted = set(found[found["stage"] != "all"]["case_id"])
    # OVS-DPDK knows its cycles per packet, and no stages; an idle window's stray packets say nothing.
    return found[found["case_id"].isin(counted) & metrics.flowing(found)].reset_index(drop=True)


def plot(table: pd.DataFrame) -> Figure:
    figure, panels = style.by_traffic(table, height=style.bar_height(table["label"].nunique()))
    for one, part, _ in panels:
        style.stacked(one, part, "stage", "TSC cycles per packet")
    return style.legend_above(figure, style.STAGES)
