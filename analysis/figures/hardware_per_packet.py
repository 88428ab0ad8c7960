# SPDX-License-Identifier: GPL-2.0-or-later
"""Who does the work, by the processor's own counters: instructions and core cycles per unit of data, by the role of the CPU that ran;
then metrics of one's own that ask to be drawn here. User, kernel and guest are added up. Number and interval are the packet path's:
host-other is drawn and left out of them, but in vm2host, where the host is an endpoint. Polls that found nothing are taken out where the
run has idle windows. Parts are drawn in proportion, so that they sum to the number: medians alone need not."""

import pandas as pd
from matplotlib.figure import Figure

from vsprof.analysis import figures, style, vocabulary
from vsprof.analysis.hardware import PER_PACKET
from vsprof.analysis.load import Result
from vsprof.analysis.sources import HARDWARE

NEEDS = ("instructions", "cycles")
SOURCE = "hardware"
TAKES = f"*{PER_PACKET}"


def table(result: Result) -> pd.DataFrame:
    """One row a case, traffic, counter (instructions, cycles) and role ("all" and "path": sums), per unit of data."""
    return figures.per_data(result, HARDWARE, [*NEEDS, *_own()])


def plot(table: pd.DataFrame) -> Figure:
    own = {name: name.replace("_", " ") for name in _own() if name in set(table["counter"])}
    sent = table[table["traffic"].isin(list(vocabulary.per_data()))]
    return style.work_by_role(sent, {"instructions": "instructions", "cycles": "core cycles", **own})


def _own() -> list[str]:
    """Metrics of one's own that ask for this figure, without their ending."""
    return [name.removesuffix(PER_PACKET) for name in vocabulary.drawn_by("hardware_per_packet") if name.endswith(PER_PACKET)]
