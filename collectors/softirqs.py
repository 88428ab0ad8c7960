# SPDX-License-Identifier: GPL-2.0-or-later
"""Softirqs by kind on each CPU (/proc/softirqs): net_rx is where a kernel switch's receive work starts."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.procfs import TABLE, gained, per_cpu_table
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords


class Softirqs(Reader):
    words = "softirqs"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "softirq_*": NumberWords("softirqs of this kind", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {"/proc/softirqs": TABLE}

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = ({kind: counts for kind, (counts, _) in per_cpu_table(text).items()} for text in (recorded.begin, recorded.end))
        for kind, counts in gained(before, after).items():
            for cpu, count in enumerate(counts):
                role = recorded.placement.role_of_cpu(cpu)
                yield Number(f"softirq_{kind.lower()}", count, "events", role, cpu, "kernel", recorded.seconds, recorded.seconds)


COLLECTOR = Softirqs
