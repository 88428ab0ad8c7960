# SPDX-License-Identifier: GPL-2.0-or-later
"""How large the pages are in which a testbed's process has memory that it shares: what was asked for is not yet what happened."""

import re

from vsprof.testbeds import messages
from vsprof.testbeds.base import Testbed

HUGE, SMALL = "2M", "4K"
SIZES = (HUGE, SMALL)
GUEST, MBUFS = "guest_pages", "mbuf_pages"
"""The options that choose one of them."""
_FIELD = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_LARGE = ("Shared_Hugetlb", "Private_Hugetlb", "ShmemPmdMapped", "FilePmdMapped")
"""Of /proc/<pid>/smaps_rollup (proc_pid_smaps(5)): hugepages, and shared memory that the kernel put into large pages by itself. What a
process has for itself (AnonHugePages) is no frame's."""


def check_small(host: Testbed, pid: int, whose: str) -> None:
    """Raise ``RunFailed`` where process ``pid`` shares memory in larger pages than ``SMALL``. Nobody has ``HUGE`` ones without noticing:
    what asks for them does not start where there are none."""
    if kib := large_kib(host.run(f"cat /proc/{pid}/smaps_rollup").stdout):
        raise messages.larger_pages(whose, kib)


def large_kib(text: str) -> int:
    """Of what /proc/<pid>/smaps_rollup said: how much shared memory is in pages that are larger than 4 KiB [KiB]."""
    found = dict(_FIELD.findall(text))
    return sum(int(found.get(name, 0)) for name in _LARGE)
