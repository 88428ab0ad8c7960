# SPDX-License-Identifier: GPL-2.0-or-later
"""From addresses to functions: the kernel's from its own list, those of programs from their files.

Debian's programs are stripped. What they export has names; for the rest, the table by which exceptions are unwound
(.eh_frame_hdr, Linux Standard Base Core 5.0, 10.6.2) still tells where each function begins: ``ovs-vswitchd+0x1a2b30``.
"""

import bisect
import functools
import heapq
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from numpy.typing import NDArray

from vsprof.collectors.uarch_model.processes import UNKNOWN, Mapped, Processes
from vsprof.collectors.uarch_model.spots import KINDS, Spots, looked_up
from vsprof.testbeds.base import Testbed

KERNEL_SYMBOLS = "awk '$2 ~ /^[tTwW]$/ { print $1, $3, $4 }' /proc/kallsyms"
KERNEL_HALF = 1 << 63
MODULES = 0xFFFFFFFFC0000000
"""Where x86-64 Linux begins to load modules (Documentation/arch/x86/x86_64/mm.rst)."""
MODES = ("host_kernel", "host_user", "guest_kernel", "guest_user")
MOST_FUNCTIONS = 150
"""Kept of each core: so many with most samples, and with most misses of each kind."""
_Key = tuple[int, str, str, str]
"""Thread, mode, object, function."""


@dataclass(frozen=True)
class Table:
    """Functions by address."""

    begins: list[int]
    names: list[tuple[str, str]]
    """Object and function."""

    @classmethod
    def of(cls, entries: Iterable[tuple[int, tuple[str, str]]]) -> Self:
        ordered = sorted(dict(entries).items())
        return cls([begin for begin, _ in ordered], [name for _, name in ordered])

    def find(self, address: int) -> tuple[str, str] | None:
        at = bisect.bisect_right(self.begins, address) - 1
        return self.names[at] if at >= 0 else None


LAYOUT = "cat /proc/version; awk '{ print $1, $6 }' /proc/modules"
"""What tells one kernel, as it lies in memory, from another. Needs root, or all addresses are 0."""
BUILT_IN = "cat /proc/version; grep -m 1 ' _stext$' /proc/kallsyms"
"""The same without its modules."""
_known_kernels: dict[tuple[str, str], str] = {}


def asked_once(host: Testbed, command: str, layout: str = LAYOUT) -> str:
    """What a slow ``command`` prints that depends on the kernel's layout alone: runs resume the same kernel, and other campaigns do."""
    key = host.run(layout).stdout, command
    if key not in _known_kernels:
        _known_kernels[key] = host.remembered("\n".join(key), lambda: host.run(command).stdout)
    return _known_kernels[key]


class Symbols:
    """What the addresses of one host mean."""

    def __init__(self, host: Testbed) -> None:
        self._host = host
        self.kernel = kernel_table(asked_once(host, KERNEL_SYMBOLS))

    def functions(self, cores: Sequence[Spots], processes: Processes) -> list[dict[str, Any]]:
        """The hot spots of a window's cores by core, thread, mode and function."""
        found = []

        @functools.cache
        def name(address: int, process: int, mode: int) -> tuple[str, str]:
            return self.name(address, MODES[mode], process, processes)

        for index, spots in enumerate(cores):
            names, name_of = looked_up(name, spots.addresses, whose(spots, processes), spots.modes)
            first, rows = spots.summed(spots.threads, spots.modes, name_of)
            keys = ((int(spots.threads[place]), MODES[spots.modes[place]], *names[name_of[place]]) for place in first)
            for (thread, mode, where, function), counts in _hottest(dict(zip(keys, rows, strict=True))).items():
                kept = {kind: count for kind, count in zip(KINDS, counts, strict=True) if count}
                found.append({"core": index, "thread": thread, "mode": mode, "object": where, "function": function, **kept})
        return found

    def places(self, function: str, file: str, maps: Mapping[int, list[Mapped]]) -> list[tuple[int, int]]:
        """Where ``function`` of a ``file`` (the begin of its name) begins, and the next function, in each process that has it mapped."""
        found = []
        for part in {one for mapped in maps.values() for one in mapped if Path(one.path).name.startswith(file)}:
            if (local := self._host.file(part.path)) is None:
                continue
            table = program(local)
            last = part.offset + part.end - part.begin
            for begin, end, (_, name) in zip(table.begins, [*table.begins[1:], last], table.names, strict=True):
                if name == function and part.offset <= begin < last:
                    found.append((part.begin + begin - part.offset, part.begin + min(end, last) - part.offset))
        return found

    def name(self, address: int, mode: str, process: int, processes: Processes) -> tuple[str, str]:
        """The object and the function of an address, in a word of MODES; a program's by what ``process`` has mapped."""
        if address >= KERNEL_HALF:
            return self._kernel_name(address, mode)
        if mode == "guest_user":
            return "guest programs", "(unknown)"
        return self._program_name(address, processes.part(address, process))

    def _kernel_name(self, address: int, mode: str) -> tuple[str, str]:
        guest = mode.startswith("guest")
        # The guest runs the same kernel at the same addresses, but its modules lie wherever they were loaded.
        if guest and address >= MODULES:
            return "guest kernel modules", "(unknown)"
        where, function = self.kernel.find(address) or ("kernel", f"{address:#x}")
        return (f"guest {where}" if guest else where), function

    def _program_name(self, address: int, part: Mapped | None) -> tuple[str, str]:
        if part is None:
            return "programs that ended", "(unknown)"
        local = self._host.file(part.path) if part.path.startswith("/") else None
        if local is None:
            return part.path or "code without a file", "(unknown)"
        found = program(local)
        at = address - part.begin + part.offset
        return found.find(at) or (Path(part.path).name, "(unknown)")


def _hottest(sums: Mapping[_Key, list[int]]) -> dict[_Key, list[int]]:
    """Those with most of any kind: a function that misses much may run too seldom for a sample."""
    best: dict[_Key, list[int]] = {}
    for kind in range(len(KINDS)):
        most = heapq.nlargest(MOST_FUNCTIONS, sums.items(), key=lambda item: item[1][kind])
        best.update((name, counts) for name, counts in most if counts[kind])
    return best


def whose(spots: Spots, processes: Processes) -> NDArray[np.int64]:
    """The process by which each spot's address is to be understood. The kernel's addresses are the same in all."""
    owners, owner_of = looked_up(processes.of_thread, spots.threads)
    return np.where(spots.addresses >= KERNEL_HALF, UNKNOWN, np.array(owners, np.int64)[owner_of])


def kernel_table(text: str) -> Table:
    """/proc/kallsyms, cut to address, name and ``[module]``."""
    entries = []
    for line in text.splitlines():
        address, name, *module = line.split()
        entries.append((int(address, 16), (module[0].strip("[]") if module else "kernel", name)))
    return Table.of(entries)


@functools.cache
def program(path: Path) -> Table:
    """The functions of a program or library by their place in the file; empty if it can't be read."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            segments = [(s["p_vaddr"], s["p_filesz"], s["p_offset"]) for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
            # Names last: they take the place of what the unwinding table knows without one.
            found = {**_unwound(elf, path.name), **_named(elf, path.name)}
    except (OSError, ELFError, struct.error, ValueError, MemoryError):
        # What is mapped need be no program; and a damaged one may claim any size.
        return Table([], [])
    return Table.of((place, name) for address, name in found.items() if (place := _in_file(address, segments)) is not None)


def _in_file(address: int, segments: list[tuple[int, int, int]]) -> int | None:
    return next((address - begin + offset for begin, size, offset in segments if begin <= address < begin + size), None)


def _named(elf: ELFFile, name: str) -> dict[int, tuple[str, str]]:
    tables = [s for s in elf.iter_sections() if isinstance(s, SymbolTableSection)]
    return {
        symbol["st_value"]: (name, symbol.name)
        for table in tables
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_value"]
    }


def _unwound(elf: ELFFile, name: str) -> dict[int, tuple[str, str]]:
    section = elf.get_section_by_name(".eh_frame_hdr")
    if section is None:
        return {}
    data, at = section.data(), section["sh_addr"]
    # Version 1; a 4-byte pointer; a 4-byte count; pairs of 4 bytes relative to the section: what every x86-64 linker writes.
    if len(data) < 12 or data[0] != 1 or data[2] != 0x03 or data[3] != 0x3B:
        return {}
    (count,) = struct.unpack_from("<I", data, 8)
    pairs = struct.iter_unpack("<ii", data[12 : 12 + 8 * count])
    return {at + begin: (name, f"{name}+{at + begin:#x}") for begin, _ in pairs}
