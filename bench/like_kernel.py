# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of Debian's kernels the lab is booted with, where its times are set against this machine's: the nearest one.

A system call, a thread's switch and a packet's way through a bridge are the kernel's code, and that changes from release to release.
"""

import re
from collections.abc import Mapping
from itertools import accumulate

from vsprof.testbeds.base import KERNELS
from vsprof.testbeds.emulator import kernels

STABLE = {"bookworm": "6.1", "trixie": "6.12"}
"""What these suites keep for as long as they live."""
NEWEST = "trixie-backports"
"""The suite whose kernel moves on, and is newer than all of ``STABLE``."""
LAST = {2: 6, 3: 19, 4: 20, 5: 19}
"""The last minor number of each major one, as released on kernel.org."""
SINCE = 19
"""The same of each later major one."""
Say = kernels.Say


def place(release: str) -> int | None:
    """How many releases of Linux, from 2.0 on, came before the one that ``uname -r`` names so; None if it names none."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if not found:
        return None
    major, minor = map(int, found.groups())
    return list(accumulate((LAST.get(number, SINCE) + 1 for number in range(2, major)), initial=0))[-1] + minor


def nearest(own: int, others: Mapping[str, int]) -> str:
    """The suite whose kernel is fewest releases away from ``own``; the older one of two. All are places."""
    return min(others, key=lambda suite: (abs(others[suite] - own), others[suite]))


def choose(own: str, say: Say) -> str:
    """The suite, for a machine whose kernel is ``own``; the lab's own where that names no release.

    Fetches the newest kernel only where that may be it. Raises ``VsprofError`` when that fails.
    """
    here = place(own)
    if here is None:
        say(f"this machine's kernel names no release of Linux ({own!r}): the lab has its own")
        return KERNELS[0]
    others = {suite: place(release) for suite, release in STABLE.items()}
    if here > max(others.values()):
        others[NEWEST] = place(kernels.get(NEWEST, say).release)
    return nearest(here, others)
