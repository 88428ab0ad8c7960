# SPDX-License-Identifier: GPL-2.0-or-later
"""Page faults of each role's threads (/proc/<pid>/task/<tid>/stat): minor ones needed no disk, major ones did."""

from __future__ import annotations

from collections.abc import Iterable

from collectors.base import Recorded, Snapshot
from collectors.procfs import by_role, threads
from terms.schema import Number

# proc_pid_stat(5): minflt is field 10 and majflt field 12, counted from 1; the name (2) may hold spaces and brackets.
AFTER_NAME = {"page_faults_minor": 10 - 3, "page_faults_major": 12 - 3}


class PageFaults(Snapshot):
    command = "grep -sH '' /proc/[0-9]*/task/[0-9]*/stat"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = stat_fields(recorded.begin), stat_fields(recorded.end)
        names = {tid: name for tid, (name, _) in after.items()}
        for number, field in AFTER_NAME.items():
            old, new = ({tid: float(fields[field]) for tid, (_, fields) in side.items()} for side in (before, after))
            for role, gained in sorted(by_role(old, new, names, recorded.placement).items()):
                yield Number(number, gained, "events", role, None, "all", recorded.seconds, recorded.seconds)


def stat_fields(text: str) -> dict[int, tuple[str, list[str]]]:
    """Each thread's name, and the fields of its stat line behind the name (field 3, the state, is index 0)."""
    found = {}
    for tid, lines in threads(text).items():
        head, bracket, tail = lines[0].rpartition(")")
        if bracket:
            found[tid] = (head.partition("(")[2], tail.split())
    return found


COLLECTOR = PageFaults
