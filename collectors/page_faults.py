# SPDX-License-Identifier: GPL-2.0-or-later
"""Page faults of each role's threads (/proc/<pid>/task/<tid>/stat).

Minor: the page was in memory and had only to be mapped. Major: it had to be read from a disk.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.procfs import THREADS, by_role, without_paths
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

# proc_pid_stat(5): behind the name in parentheses, counted from the state, which is field 3.
_THREAD = re.compile(r"^(?P<tid>\d+) \(.*\) (?P<rest>.*)$")
FIELDS = {"faults_minor": 10 - 3, "faults_major": 12 - 3}


class PageFaults(Reader):
    words = "page faults"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "faults_minor": NumberWords("page faults of pages that are in memory", better="less"),
        "faults_major": NumberWords("page faults that read a disk", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {f"{THREADS}/stat": r"^[0-9]+ \("}

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = read(recorded.begin), read(recorded.end)
        for name, field in FIELDS.items():
            old, new = ({tid: float(fields[field]) for tid, fields in side.items()} for side in (before, after))
            for role, gained in sorted(by_role(old, new, recorded.placement).items()):
                yield Number(name, gained, "events", role, None, "all", recorded.seconds, recorded.seconds)


def read(text: str) -> dict[int, list[str]]:
    """Each thread's fields behind its name, which may itself have spaces and parentheses."""
    matches = filter(None, map(_THREAD.match, without_paths(text).splitlines()))
    found = {int(match["tid"]): match["rest"].split() for match in matches}
    # Cut off in the middle: the thread ended while it was read.
    return {tid: fields for tid, fields in found.items() if len(fields) > max(FIELDS.values())}


COLLECTOR = PageFaults
