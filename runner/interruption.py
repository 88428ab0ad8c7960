# SPDX-License-Identifier: GPL-2.0-or-later
"""Ctrl-C, SIGTERM and SIGHUP as a ``KeyboardInterrupt`` that is never lost.

Python drops an exception that a handler raises in a callback (around a fork, in ``__del__``, in one of ctypes): the command would go on as
if nothing had been asked of it. And a callback that is cut short keeps its lock: logging's after a fork, which other threads then wait for.
"""

import atexit
import concurrent.futures.thread
import functools
import logging
import os
import signal
import sys
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["heed"]

ENDS = (signal.SIGTERM, signal.SIGHUP)
"""What ends a command as Ctrl-C does."""
SOON = 0.05
"""Seconds until it is raised once more, where it could not be heard: by then whoever made a process knows of it, and can end it."""
CALLBACKS_AT_FORK = (logging, concurrent.futures.thread)
"""Modules that take a lock before a fork: imported first, so that their callbacks run between those of this module."""

_forking: set[int] = set()
"""Threads that are making a process."""


def heed() -> None:
    """From now on these signals raise ``KeyboardInterrupt`` in the main thread, once; a second Ctrl-C does so again. Those that are ignored
    stay ignored, as under nohup."""
    for number in (signal.SIGINT, *ENDS):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    signal.signal(signal.SIGALRM, _raise)
    if not isinstance(sys.unraisablehook, _Unheard):
        sys.unraisablehook = _Unheard(sys.unraisablehook)
    _once()


@functools.cache
def _once() -> None:
    # Such callbacks can't be taken back: they are given once. At the end of the program nobody is left to whom it could be raised.
    atexit.register(signal.signal, signal.SIGALRM, signal.SIG_IGN)
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forking.clear)


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    # They come together, and in twos: what is taken away now must not be interrupted, too. A user may still insist, by Ctrl-C.
    signal.signal(signal.SIGINT, _raise)
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    _raise(number, frame)


def _raise(number: int, frame: types.FrameType | None) -> None:
    if _forking:
        _soon()
    else:
        raise KeyboardInterrupt


def _soon() -> None:
    signal.setitimer(signal.ITIMER_REAL, SOON)


@dataclass(frozen=True)
class _Unheard:
    """What Python tells of an exception that it dropped."""

    others: Callable[["sys.UnraisableHookArgs"], object]
    """Who is told of any but ours."""

    def __call__(self, dropped: "sys.UnraisableHookArgs") -> None:
        if dropped.exc_type is KeyboardInterrupt:
            _soon()
        else:
            self.others(dropped)


def _before_fork() -> None:
    _forking.add(threading.get_ident())


def _after_fork() -> None:
    _forking.discard(threading.get_ident())
