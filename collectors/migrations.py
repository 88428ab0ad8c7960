# SPDX-License-Identifier: GPL-2.0-or-later
"""How often each role's threads were moved to another CPU (/proc/<pid>/task/<tid>/sched)."""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.procfs import THREADS, by_role, threads
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

FIELD = "se.nr_migrations"


class Migrations(Reader):
    words = "migrations"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "migrations": NumberWords("moves of a thread to another CPU", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {f"{THREADS}/sched": rf"^{re.escape(FIELD)}"}

    def unavailable(self) -> str | None:
        tried = self.host.run("grep -q nr_migrations /proc/1/sched", check=False)
        return None if tried.status == 0 else "this kernel was built without /proc/<pid>/sched (CONFIG_SCHED_DEBUG)"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = (_counts(text) for text in (recorded.begin, recorded.end))
        for role, gained in sorted(by_role(before, after, recorded.placement).items()):
            yield Number("migrations", gained, "events", role, None, "all", recorded.seconds, recorded.seconds)


def _counts(text: str) -> dict[int, float]:
    return {tid: float(lines[0].rpartition(":")[2]) for tid, lines in threads(text).items()}


COLLECTOR = Migrations
