# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines that the modelled processor filled from memory per unit of data, by the role of the thread that asked: from memory of the
CPU's own NUMA node (left) and of another one (right). Fills from another core's cache are in neither. Number and interval are the
packet path's: host-other is drawn and left out of them, but in vm2host, where the host is an endpoint. Polls that found nothing are
taken out unless it says otherwise here."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import model, style
from analysis.load import Result

NEEDS = ("memory_local", "memory_remote")
SOURCE = "model"
WALL_CLOCK = False
WORDS = {"memory_local": "fills from the own node", "memory_remote": "fills from another node"}


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, counter (memory_local, memory_remote) and role ("all" and "path": sums); lines per unit of data."""
    found = model.summary(result, model.per_data(*NEEDS))
    return found.assign(counter=found["metric"].str.removeprefix("model_").str.replace(r"_per_[a-z]+$", "", regex=True))


def plot(table: pd.DataFrame) -> Figure:
    return style.work_by_role(table, style.traffics(table), WORDS)
