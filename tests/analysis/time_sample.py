# SPDX-License-Identifier: GPL-2.0-or-later
"""SYNTHETIC validations of predicted times, of a processor that does not exist: no number here was ever measured."""

from datetime import UTC, datetime

from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import NS_PER_ITERATION, NS_PER_PACKET, TIME, Note, Row, Side, TimeValidation


def near(value: float, spread: float = 0.02) -> Estimate:
    return Estimate(value, value * (1 - spread), value * (1 + spread), 6)


def row(part: str, item: str, natively: float, modelled: float) -> Row:
    error = modelled / natively - 1
    return Row(part=part, item=item, event=TIME, unit=NS_PER_ITERATION if part == "microbenchmarks" else NS_PER_PACKET,
               reference=near(natively), modelled=near(modelled), error=Estimate(error, error - 0.01, error + 0.01, 3),
               error_unit="fraction")  # fmt: skip


ROWS = [
    row("microbenchmarks", "adds", 0.25, 0.25),
    row("microbenchmarks", "chase_l1", 1.0, 0.5),
    row("microbenchmarks", "syscall", 100.0, 110.0),
    row("switches", "testpmd_io", 60.0, 66.0),
    row("switches", "ovs_dpdk", 100.0, 130.0),
]


def document(**other: object) -> TimeValidation:
    """SYNTHETIC: an item off by half, a switch by 30 %, their order right."""
    keys = {
        "profile": "synthetic-1", "processor": "SYNTHETIC 1", "cpu_model": "SYNTHETIC processor", "why_other": None, "quantum_s": 5e-6,
        "native": Side(frequency_hz=4e9, kernel="1.0-SYNTHETIC", load=0.5), "lab": Side(frequency_hz=4e9, kernel="2.0-SYNTHETIC", load=None),
        "when": datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "parts": ["microbenchmarks", "switches"], "rows": ROWS,
        "notes": [Note(part="switches", item="ovs_dpdk", text="SYNTHETIC reason")],
    }  # fmt: skip
    return TimeValidation(**keys | other)
