# SPDX-License-Identifier: GPL-2.0-or-later
"""Why one case takes more or fewer cycles per unit of data than the other, by the processor's own counters: each bar is by how much its
part alone multiplies them. The bars of a group multiply to the bar of all cycles: instructions and CPI; what CPI's pipeline slots went to,
and what they leave unexplained, to CPI; the roles to all cycles. Whiskers: 95 % intervals; a pale bar's interval includes 1. Polls that
found nothing are taken out."""

from functools import partial

from vsprof.analysis.figures import decomposition

NEEDS = ("cycles_per_packet", "instructions_per_packet")
SOURCE = "hardware"
MIDDLE, plot = decomposition.MIDDLE, decomposition.plot
table = partial(decomposition.table, source=SOURCE)
