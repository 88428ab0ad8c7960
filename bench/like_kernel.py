# SPDX-License-Identifier: GPL-2.0-or-later
"""Which of Debian's kernels the lab is booted with, where its times are set against this machine's: the nearest one.

A system call, a thread's switch and a packet's way through a bridge are the kernel's code, and that changes from release to release.
"""

from itertools import accumulate

from vsprof.testbeds.emulator import kernels

STABLE = {"bookworm": "6.1", "trixie": "6.12"}
"""What these suites keep for as long as they live."""
NEWEST = "trixie-backports"
"""The suite whose kernel moves on, and is newer than all of ``STABLE``."""
LAST = {2: 6, 3: 19, 4: 20, 5: 19}
"""The last minor number of each major one, as released on kernel.org. Since 5.x each major one has as many as this."""
SINCE = 19
Say = kernels.Say


def place(release: str) -> int:
    """How many releases of Linux, from 2.0 on, came before the one that ``uname -r`` names so. Raises ``ValueError`` on other text."""
    major, minor = (int("".join(filter(str.isdigit, part.partition("-")[0]))) for part in release.split(".")[:2])
    before = list(accumulate((LAST.get(number, SINCE) + 1 for number in range(2, major)), initial=0))
    return before[-1] + minor


def nearest(own: str, others: dict[str, str]) -> str:
    """The suite whose kernel is fewest releases away from ``own``; the older one of two. ``others``: releases by suite."""
    return min(sorted(others, key=lambda suite: place(others[suite])), key=lambda suite: abs(place(others[suite]) - place(own)))


def choose(own: str, say: Say) -> str:
    """The suite, for a machine whose kernel is ``own``. Fetches the newest kernel only where that may be it. Raises ``VsprofError``."""
    others = dict(STABLE)
    if place(own) > max(map(place, STABLE.values())):
        others[NEWEST] = kernels.get(NEWEST, say).release
    return nearest(own, others)
