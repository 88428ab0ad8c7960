# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor missed, by its own counters, per unit of data: in the caches L1D, L1I, L2 and LLC, in the first-level TLBs, page
walks (missed in the second level, too), and branches predicted wrong. All CPUs of the packet path together, in all modes; polls that
found nothing are taken out where the run has idle windows. What exactly a word counts differs by processor: the event catalogue says it.
The axis is logarithmic; a count of zero is written at its edge."""

from functools import partial

from vsprof.analysis.figures import misses
from vsprof.analysis.sources import HARDWARE

NEEDS = tuple(word for word in misses.NEEDS if word != "llc_hits_modified")
SOURCE = "hardware"
table = partial(misses.table, source=HARDWARE, counters=NEEDS)
plot = misses.plot
