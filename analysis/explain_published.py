# SPDX-License-Identifier: GPL-2.0-or-later
"""Why our ratios differ from T1's published ones, figure by figure, as far as this result's own counters show a reason.

T1: ACANETS, "Understanding the Performance of DPDK as a Computer Architect", DPDK Summit San Jose 2016. Its notes give ratios alone: no
processor, frame size, number of CPUs, nor which counter a rate was of. A reason below is one that our numbers show at work here; that it is
the reason there, nobody can tell from here, and nothing below says so.
"""

from __future__ import annotations

from functools import partial

from vsprof.analysis import looks, published

T1 = {"base.switch": "kernel-ovs", "other.switch": "ovs-dpdk", "other.topology": "vm2vm"}
"""Its own pair."""
FIGURES = {one.id: one.figure for one in published.every()}
LOOKS = [looks.Row(f"Published: {FIGURES[name]}.", only=T1, **row) for name, row in looks.ROWS["published"].items()]
NONE = "T1 compares two VMs over kernel OVS and over OVS-DPDK; this result does not have both."
markdown = partial(looks.explained, looks=LOOKS, none=NONE)
"""The differences as a list, or why there is nothing to set beside T1."""
