# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor missed, by its own counters, per unit of data: in the caches L1D, L1I, L2 and LLC, in the first-level TLBs, page
walks (missed in the second level, too), and branches predicted wrong. All CPUs of the packet path together, in all modes; polls that
found nothing are taken out where the run has idle windows. What exactly a word counts differs by processor: the event catalogue says it.
The axis is logarithmic; a count of zero is written at its edge."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from analysis import hardware, model
from analysis.figures import misses
from analysis.load import Result
from analysis.sources import HARDWARE

MISSES = {word: kind for word, kind in model.MISSES.items() if word != "llc_hits_modified"}
NEEDS = tuple(MISSES)
SOURCE = "hardware"
WALL_CLOCK = False


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic and kind of miss; events per unit of data."""
    found = HARDWARE.summary(result, HARDWARE.per_data(*MISSES), role="path")
    counter = found["metric"].str.removeprefix(hardware.PREFIX).str.replace(r"_per_[a-z]+$", "", regex=True)
    return found.assign(miss=counter.map(MISSES))


def plot(table: pd.DataFrame) -> Figure:
    return misses.plot(table)
