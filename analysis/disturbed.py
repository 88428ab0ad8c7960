# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hypervisor did to the CPUs while a result was measured, as the collector ``disturbance`` saw it between windows: whether it moved
them apart and together, and whether a neighbour slowed them. A median over windows of both kinds is of neither."""

import pandas as pd

from vsprof.analysis import messages
from vsprof.analysis.load import Result

COLLECTOR = "disturbance"
APART = 2.0
"""How many times as long as at best a line of the cache takes where the CPUs are far apart: 26 and 141 ns were seen, and 62 and 228."""
SLOWED = 1.5
"""The same of the loop, where a neighbour has part of the core: two threads that use all of one have about half each."""
FEW = 0.02
"""A share of the windows that changes no median."""
MEDIAN_OF = ["case_id", "traffic", "load"]


def limits(result: Result) -> list[str]:
    """A sentence for each of the two that came and went; nothing where no window was looked at."""
    rows = result.numbers
    rows = rows[(rows["collector"] == COLLECTOR) & rows["value"].notna()]
    said = []
    for name, factor, tell in (
        ("line_transfer_seconds", APART, messages.cpus_moved),
        ("calibration_loop_seconds", SLOWED, messages.cpus_slowed),
    ):
        seen = rows[rows["name"] == name]
        over = seen["value"] > factor * _best(result, seen)
        if len(seen) and over.groupby([seen[key].astype(str) for key in MEDIAN_OF]).mean().max() >= FEW:
            said.append(tell(seen["value"][~over].median(), seen["value"][over].median(), _by_case(result, seen, over)))
    return said


def _best(result: Result, seen: pd.DataFrame) -> "pd.Series[float]":
    """For each window, the least that was seen on its machine: the runs of a sweep may be shared among several servers."""
    server = {run["run_id"]: run.get("server", "") for run in result.manifest["runs"]}
    return seen.groupby(seen["run_id"].astype(str).map(server).fillna(""))["value"].transform("min")


def _by_case(result: Result, seen: pd.DataFrame, over: "pd.Series[bool]") -> dict[str, tuple[int, int]]:
    """Of each case, how many windows were so, of how many."""
    counted = over.groupby(seen["case_id"].astype(str), sort=False).agg(["sum", "size"])
    return {str(result.cases.loc[case, "label"]): (int(one["sum"]), int(one["size"])) for case, one in counted.iterrows()}
