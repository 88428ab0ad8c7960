# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a guest that is none: memfds which a vhost-user back-end maps as well."""

import mmap
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence

KIB, MIB = 1 << 10, 1 << 20
FIRST = 0x1_0000_0000
"""Guest physical address of the first region."""
GAP = 0x4000_0000
"""Between regions, unless they touch."""
USER = 0x7E00_0000_0000
"""What is added to a guest physical address to make a user address. The back-end only ever translates these."""


class OutOfRange(Exception):
    """An address that no region has."""


class Region:
    """``size`` bytes from guest physical address ``start`` on."""

    def __init__(self, start: int, size: int, huge: bool = False) -> None:
        self.start, self.size = start, size
        self.fd = os.memfd_create("guest", os.MFD_CLOEXEC | (os.MFD_HUGETLB if huge else 0))
        os.ftruncate(self.fd, size)
        self.map = mmap.mmap(self.fd, size)
        self.view = memoryview(self.map)
        # Where nothing has been taken yet.
        self.top = 0

    @property
    def end(self) -> int:
        return self.start + self.size

    def close(self) -> None:
        # The mapping goes with its last view.
        os.close(self.fd)


class Memory:
    """Regions of shared memory, and a simple allocator: pieces of powers of two, taken and given back."""

    def __init__(self, sizes: Sequence[int] = (2 * MIB, 4 * MIB), *, touching: bool = False, huge: bool = False) -> None:
        """``touching``: each region begins where the one before ends, so that a buffer may lie in both; ``huge``: of hugepages."""
        self.regions: list[Region] = []
        self.buffers = len(sizes) - 1
        """The region that pieces are taken from unless told."""
        self._free: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        start = FIRST
        for size in sizes:
            self.regions.append(Region(start, size, huge))
            start += size if touching else size + GAP

    def take(self, size: int, region: int | None = None) -> int:
        """The guest physical address of ``size`` bytes in a region, aligned to 64. Raises ``OutOfRange`` if it is full."""
        size = _rounded(size)
        region = self.buffers if region is None else region
        if free := self._free[region, size]:
            return free.pop()
        found = self.regions[region]
        if found.top + size > found.size:
            raise OutOfRange(f"region {region} of {found.size} bytes is full")
        found.top += size
        return found.start + found.top - size

    def give(self, address: int, size: int) -> None:
        number = next(number for number, region in enumerate(self.regions) if region.start <= address < region.end)
        self._free[number, _rounded(size)].append(address)

    def write(self, address: int, data: bytes) -> None:
        done = 0
        for part in self._parts(address, len(data)):
            part[:] = data[done : done + len(part)]
            done += len(part)

    def read(self, address: int, size: int) -> bytes:
        return b"".join(bytes(part) for part in self._parts(address, size))

    def view(self, address: int, size: int) -> memoryview:
        """Bytes that lie in one region, to be read and written in place."""
        [part] = self._parts(address, size)
        return part

    def table(self, regions: Sequence[int] | None = None) -> tuple[list[tuple[int, int, int, int]], list[int]]:
        """What SET_MEM_TABLE says of all regions, or of those with the numbers given, and their files."""
        told = self.regions if regions is None else [self.regions[number] for number in regions]
        return [(one.start, one.size, user(one.start), 0) for one in told], [one.fd for one in told]

    def close(self) -> None:
        for region in self.regions:
            region.close()

    def _parts(self, address: int, size: int) -> Iterator[memoryview]:
        while size:
            region = next((one for one in self.regions if one.start <= address < one.end), None)
            if region is None:
                raise OutOfRange(f"{address:#x} is in no region")
            length = min(size, region.end - address)
            offset = address - region.start
            yield region.view[offset : offset + length]
            address, size = address + length, size - length


def user(address: int) -> int:
    return address + USER


def _rounded(size: int) -> int:
    return max(64, 1 << (size - 1).bit_length())
