# SPDX-License-Identifier: GPL-2.0-or-later
"""On which NUMA nodes a testbed's process has its hugepages, as its kernel says: what was asked for is not yet what happened."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from vsprof.testbeds.base import Testbed

PAGE_BYTES = 2 << 20
"""Of the hugepages that vsprof uses."""
_FIELD = re.compile(r"\b(file|N\d+)=(\S+)")


@dataclass(frozen=True, slots=True)
class Mapping:
    """Hugepages of one file in a process's memory, from address ``begin`` on: how many of them are on which node."""

    begin: int
    file: str
    pages: dict[int, int]


def mappings(host: Testbed, pid: int) -> list[Mapping]:
    """All hugepages that process ``pid`` has mapped."""
    # Of the whole the pages of 4 KiB would be by far the most lines.
    return read(host.run(f"grep -s ' huge ' /proc/{pid}/numa_maps", check=False).stdout)


def read(text: str) -> list[Mapping]:
    """Read lines of /proc/<pid>/numa_maps (proc(5)). A page that nobody has touched is on no node yet, and is not counted."""
    found = []
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        pages = {int(name[1:]): int(count) for name, count in fields.items() if name != "file"}
        found.append(Mapping(int(line.split()[0], 16), fields.get("file", ""), pages))
    return found


def by_node(mapped: Iterable[Mapping]) -> dict[int, int]:
    """Pages by node, of all together."""
    found: Counter[int] = Counter()
    for one in mapped:
        found.update(one.pages)
    return dict(sorted(found.items()))
