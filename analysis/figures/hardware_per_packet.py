# SPDX-License-Identifier: GPL-2.0-or-later
"""Who does the work, by the processor's own counters: instructions (left) and core cycles (right) per unit of data, by the role of
the CPU that ran. User, kernel and guest are added up. Number and interval are the packet path's: host-other is drawn and left out of
them, but in vm2host, where the host is an endpoint. Polls that found nothing are taken out where the run has idle windows.
Parts are drawn in proportion, so that they sum to the number: medians alone need not."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import hardware, style, vocabulary
from analysis.load import Result

NEEDS = ("instructions", "cycles")
SOURCE = "hardware"
WALL_CLOCK = False


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, counter (instructions, cycles) and role ("all" and "path": sums), per unit of data."""
    found = hardware.summary(result, hardware.per_data(*NEEDS))
    return found.assign(counter=found["metric"].str.removeprefix(hardware.PREFIX).str.replace(r"_per_[a-z]+$", "", regex=True))


def plot(table: pd.DataFrame) -> Figure:
    pairs = [pair for pair in style.traffics(table) if vocabulary.data(pair[0])]
    return style.work_by_role(table, pairs, {"instructions": "instructions", "cycles": "core cycles"})
