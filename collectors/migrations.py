# SPDX-License-Identifier: GPL-2.0-or-later
"""How often each role's threads moved to another CPU (/proc/<pid>/task/<tid>/sched). Pinned threads must show zero."""

from __future__ import annotations

import re
from collections.abc import Iterable

from collectors.base import Recorded, Snapshot
from collectors.procfs import by_role, threads
from terms.schema import Number

_NAME = re.compile(r"^(?P<name>.*) \(\d+, #threads: \d+\)$")


class Migrations(Snapshot):
    command = "grep -sHE '#threads:|^se.nr_migrations' /proc/[0-9]*/task/[0-9]*/sched"

    def unavailable(self) -> str | None:
        has = self.host.run("grep -q nr_migrations /proc/1/sched", check=False).status == 0
        return None if has else "the kernel has no /proc/<pid>/sched (CONFIG_SCHED_DEBUG)"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        (old, _), (new, names) = _migrations(recorded.begin), _migrations(recorded.end)
        for role, gained in sorted(by_role(old, new, names, recorded.placement).items()):
            yield Number("migrations", gained, "events", role, None, "all", recorded.seconds, recorded.seconds)


def _migrations(text: str) -> tuple[dict[int, float], dict[int, str]]:
    counts, names = {}, {}
    for tid, lines in threads(text).items():
        for line in lines:
            if match := _NAME.match(line):
                names[tid] = match["name"]
            elif ":" in line:
                counts[tid] = float(line.rpartition(":")[2])
    return counts, names


COLLECTOR = Migrations
