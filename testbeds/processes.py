# SPDX-License-Identifier: GPL-2.0-or-later
"""Children of this process that must not outlive it."""

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def dying_with_parent() -> Callable[[], None]:
    """What a child of this process does before it becomes its program: be killed when this one ends, even by SIGKILL (prctl(2),
    PR_SET_PDEATHSIG)."""
    parent, library = os.getpid(), ctypes.CDLL(None)

    def ask() -> None:
        library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # A parent that ended before that sends nothing any more.
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)

    return ask
