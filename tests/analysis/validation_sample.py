# SPDX-License-Identifier: GPL-2.0-or-later
"""SYNTHETIC validations of the processor model, of a processor that does not exist: no number here was ever measured."""

from datetime import UTC, datetime

from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import CPI, EVENTS, PER_ITERATION, PER_PACKET, Note, Row, Validation

NO_PMU = "there is no SYNTHETIC PMU"


def one(value: float, n: int = 1) -> Estimate:
    return Estimate(value, None, None, n)


def three(value: float, spread: float = 0.01) -> Estimate:
    return Estimate(value, value * (1 - spread), value * (1 + spread), 3)


def micro(item: str, event: str, reference: Estimate, modelled: float, error: float, error_unit: str = "fraction") -> Row:
    return Row(part="microbenchmarks", item=item, event=event, unit=PER_ITERATION, reference=reference, modelled=one(modelled),
               error=one(error), error_unit=error_unit)  # fmt: skip


def switch(item: str, event: str, unit: str, reference: Estimate | None, modelled: Estimate, error: Estimate | None = None) -> Row:
    return Row(part="switches", item=item, event=event, unit=unit, reference=reference, modelled=modelled, error=error,
               error_unit=error and "fraction")  # fmt: skip


MICRO = [
    micro("chase_l2", "l1d_misses", one(1.0), 1.0, 0.0),
    micro("chase_l2", "cycles", one(12.0), 15.0, 0.25),
    micro("chase_l2", "llc_misses", one(0.0004), 0.0, -0.0004, "events"),
    micro("branch_random", "branch_misses", one(0.5), 0.51, 0.02),
]
COUNTED = [
    switch("ovs_dpdk", "packets", "packets per second", three(9e6), three(9e4)),
    switch("ovs_dpdk", "instructions", PER_PACKET, three(1300.0), three(1313.0), Estimate(0.01, -0.005, 0.025, 3)),
    switch("ovs_dpdk", "cycles", PER_PACKET, three(700.0), three(630.0), Estimate(-0.1, -0.12, -0.08, 3)),
    switch("ovs_dpdk", "cpi", CPI, three(0.538), three(0.48), Estimate(-0.108, -0.13, -0.09, 3)),
    switch("kernel_ovs", "packets", "packets per second", three(6e6), three(7e4)),
    switch("kernel_ovs", "cycles", PER_PACKET, three(1000.0), three(1200.0), Estimate(0.2, 0.18, 0.22, 3)),
    switch("kernel_ovs", "l2_misses", PER_PACKET, None, three(1.1)),
]
TWICE = [
    Row(part="repeat", item="chase_llc", event="instructions", unit=EVENTS, reference=one(5e6), modelled=one(5e6), error=one(0.0),
        error_unit="events"),
    Row(part="repeat", item="chase_llc", event="llc_misses", unit=EVENTS, reference=one(7.0), modelled=one(9.0), error=one(2.0),
        error_unit="events"),
]  # fmt: skip


def hardware(**other: object) -> Validation:
    """SYNTHETIC: the model beside a processor's counts."""
    keys = {
        "profile": "synthetic-1", "processor": "SYNTHETIC 1", "why_no_hardware": None, "cpu_model": "SYNTHETIC processor",
        "when": datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "parts": ["microbenchmarks", "switches", "repeat"],
        "rows": [*MICRO, *COUNTED, *TWICE],
        "notes": [Note(part="repeat", item="chase_llc", text="SYNTHETIC reason")],
    }  # fmt: skip
    return Validation(**keys | other)


def by_profile(**other: object) -> Validation:
    """SYNTHETIC: the model beside what must happen; of switches the model alone."""
    must = [row.model_copy(update={"reference": one(row.reference.median, 0)}) for row in MICRO]
    alone = [row.model_copy(update={"reference": None, "error": None, "error_unit": None}) if row.of_processor else row for row in COUNTED]
    return hardware(**{"why_no_hardware": NO_PMU, "rows": [*must, *alone, *TWICE], **other})
