# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines that the modelled processor missed in all caches of the CPU's own NUMA node, per unit of data, by the role of the thread that
asked: filled from memory of the own node (left), from memory of another one (middle), from a cache of another one (right), whose core
or LLC had the line. Number and interval are the packet path's: host-other is drawn and left out of them, but in vm2host, where the host
is an endpoint. Polls that found nothing are taken out unless it says otherwise here."""

from functools import partial

from vsprof.analysis import figures, style
from vsprof.analysis.sources import MODEL

WORDS = {"memory_local": "lines from own memory", "memory_remote": "from another's memory", "remote_cache": "from another's caches"}
NEEDS = tuple(WORDS)
SOURCE = "model"
table = partial(figures.per_data, source=MODEL, counters=NEEDS)
"""One row a case, traffic, counter (of NEEDS) and role ("all" and "path": sums); lines per unit of data."""
plot = partial(style.work_by_role, words=WORDS)
