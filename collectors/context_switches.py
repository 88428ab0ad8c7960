# SPDX-License-Identifier: GPL-2.0-or-later
"""Context switches of each role's threads, split by reason (/proc/<pid>/task/<tid>/status).

Voluntary: the thread waited for something. Involuntary: the scheduler took the CPU away.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.procfs import THREADS, by_role, threads
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

FIELDS = {"voluntary_ctxt_switches": "context_switches_voluntary", "nonvoluntary_ctxt_switches": "context_switches_involuntary"}


class ContextSwitches(Reader):
    words = "context switches by role"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "context_switches_voluntary": NumberWords("context switches of a thread that waits for something", better="less"),
        "context_switches_involuntary": NumberWords("context switches of a thread whose CPU the scheduler takes away", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {f"{THREADS}/status": "^(non)?voluntary_ctxt_switches:"}

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = (_fields(text) for text in (recorded.begin, recorded.end))
        for field, name in FIELDS.items():
            old, new = ({tid: float(f[field]) for tid, f in side.items()} for side in (before, after))
            for role, gained in sorted(by_role(old, new, recorded.placement).items()):
                yield Number(name, gained, "events", role, None, "all", recorded.seconds, recorded.seconds)


def _fields(text: str) -> dict[int, dict[str, str]]:
    read = {tid: dict(map(str.strip, line.split(":", 1)) for line in lines if ":" in line) for tid, lines in threads(text).items()}
    # A thread that ended while its file was read may have only one of the fields.
    return {tid: fields for tid, fields in read.items() if fields.keys() >= FIELDS.keys()}


COLLECTOR = ContextSwitches
