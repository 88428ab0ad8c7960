# SPDX-License-Identifier: GPL-2.0-or-later
"""Who does the work: instructions (left) and estimated cycles (right) of the modelled processor per unit of data, by the role of the thread
that ran. Softirq: interrupts and softirqs that met no thread, and the kernel's threads for them. Number and interval are the packet path's:
host-other is drawn and left out of them, but in vm2host, where the host is an endpoint. Polls that found nothing are taken out unless it
says otherwise here. Parts are drawn in proportion, so that they sum to the number: medians alone need not."""

from functools import partial

from vsprof.analysis import figures, style
from vsprof.analysis.sources import MODEL

NEEDS = ("instructions", "cycles")
SOURCE = "model"
table = partial(figures.per_data, source=MODEL, counters=NEEDS)
"""One row a case, traffic, counter (instructions, cycles) and role ("all" and "path": sums), per unit of data."""
plot = partial(style.work_by_role, words={"instructions": "instructions", "cycles": "estimated cycles"})
