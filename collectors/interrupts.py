# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardware interrupts by kind on each CPU (/proc/interrupts): timer ticks, wake-ups from another CPU, devices."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.procfs import TABLE, gained, per_cpu_table
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

# Linux, arch/x86/kernel/irq.c: the rows that are no device's.
KINDS = {
    "LOC": "local_timer",
    "RES": "reschedule",
    "CAL": "function_call",
    "TLB": "tlb_shootdown",
    "IWI": "irq_work",
    "NMI": "nmi",
    "PMI": "pmu",
}
DEVICES = "device"


class Interrupts(Reader):
    words = "hardware interrupts"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "interrupts_*": NumberWords("hardware interrupts of this kind", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {"/proc/interrupts": TABLE}

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        for kind, counts in gained(_by_kind(recorded.begin), _by_kind(recorded.end)).items():
            for cpu, count in enumerate(counts):
                role = recorded.placement.role_of_cpu(cpu)
                yield Number(f"interrupts_{kind}", count, "events", role, cpu, "kernel", recorded.seconds, recorded.seconds)


def _by_kind(text: str) -> Mapping[str, list[int]]:
    """Counts per CPU of the named kinds, and of all devices together (the numbered rows)."""
    kinds: dict[str, list[int]] = {}
    for row, (counts, _) in per_cpu_table(text).items():
        kind = DEVICES if row.isdigit() else KINDS.get(row)
        if kind:
            kinds[kind] = [a + b for a, b in zip(kinds.get(kind, [0] * len(counts)), counts, strict=True)]
    return kinds


COLLECTOR = Interrupts
