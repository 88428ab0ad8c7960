# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of a host: what code each has mapped where, and whose each thread is."""

import itertools
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

LIST = "grep -sH ' r-xp ' /proc/[0-9]*/maps; echo ---; ls -d /proc/[0-9]*/task/[0-9]* 2> /dev/null; true"
"""A shell command that prints what ``Processes`` reads."""
UNKNOWN = -1
"""The process of a thread that was not there when the list was made."""
PAGE_BITS = 12
"""Mappings begin and end at pages of 4 KiB."""


@dataclass(frozen=True)
class Mapped:
    """A piece of a file in a process's memory."""

    begin: int
    end: int
    offset: int
    path: str


class Processes:
    """What ``LIST`` printed. Raises ``ValueError`` where it is something else."""

    def __init__(self, printed: str) -> None:
        maps, _, tasks = printed.partition("---\n")
        self.maps: Mapping[int, list[Mapped]] = _read_maps(maps)
        self._everywhere = list(itertools.chain.from_iterable(self.maps.values()))
        self._process_of = {int(fields[4]): int(fields[2]) for fields in (line.split("/") for line in tasks.splitlines())}
        self._parts: dict[tuple[int, int], Mapped | None] = {}
        """What was found by page and process: addresses are far more."""

    def of_thread(self, thread: int) -> int:
        return self._process_of.get(thread, UNKNOWN)

    def part(self, address: int, process: int) -> Mapped | None:
        """What lies at ``address``: in the memory of ``process``, or else of any other. A block of a library that processes share has the
        address of the process that it was translated for (see core.h)."""
        page = address >> PAGE_BITS, process
        if page not in self._parts:
            parts = itertools.chain(self.maps.get(process, []), self._everywhere)
            self._parts[page] = next((part for part in parts if part.begin <= address < part.end), None)
        return self._parts[page]


def _read_maps(text: str) -> dict[int, list[Mapped]]:
    maps: dict[int, list[Mapped]] = defaultdict(list)
    for line in text.splitlines():
        where, _, rest = line.partition(":")
        fields = rest.split(maxsplit=5)
        begin, end = (int(part, 16) for part in fields[0].split("-"))
        maps[int(where.split("/")[2])].append(Mapped(begin, end, int(fields[2], 16), fields[5] if len(fields) > 5 else ""))
    return dict(maps)
