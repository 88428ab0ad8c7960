# SPDX-License-Identifier: GPL-2.0-or-later
"""How long to wait for a testbed, which may be an emulator that shares this machine with others."""

import time
from collections.abc import Callable, Mapping

HeldUp = Callable[[], Mapping[int, float]]
"""By thread of an emulator, how long [s] it has waited for a CPU of this machine so far."""


class Patience:
    """A time-out of ``seconds`` from now on. Those in which a thread of an emulator waited for a CPU of this machine do not count: they are
    no sign that the host hangs."""

    def __init__(self, seconds: float, held_up: HeldUp = dict) -> None:
        self._seconds, self._held_up = seconds, held_up
        self._began, self._before = time.monotonic(), held_up()

    def left(self) -> float:
        """Seconds that are left; below 0 where it is over."""
        waited = max((now - self._before.get(thread, 0.0) for thread, now in self._held_up().items()), default=0.0)
        return self._seconds + waited - (time.monotonic() - self._began)

    def over(self) -> bool:
        return self.left() < 0
