# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs do while a window lasts, and what the switch forwarded in it: for whoever watches a campaign.

These numbers are for the eye. Those of a result are computed from raw/ alone, see ``runner.parse``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vsprof.collectors.base import Clock, Collector, Glance
from vsprof.runner import parse
from vsprof.terms.placement import Placement

LEAST_S = 0.0005
"""Of modelled time between two looks, for what lies between to be worth a number."""


@dataclass(frozen=True, slots=True)
class CpuLoad:
    """What one CPU did."""

    cpu: int
    role: str
    busy: float
    """Share of the time, 0 to 1."""
    cpi: float | None
    """Cycles per instruction; None where nobody counts them, or there were none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a window."""

    window: str
    """Which one: the traffic, and its number."""
    over: bool
    """Whether this is the whole window, not a part of it."""
    packets: float | None
    """Per second: that the switch sent to the receiver's port in a window that is over, else that kernels received. None: not counted."""
    cpus: tuple[CpuLoad, ...]


Look = Callable[[Seen], None]


class Watch:
    """Follows the windows of one traffic, for ``look``: in modelled time about once a second, and each when it is over."""

    def __init__(self, look: Look, traffic: str, switch: str, port: str, placement: Placement, clock: Clock | None) -> None:
        """``port``: the receiver's, at the switch of this name. ``clock``: None where nobody may talk to the host in a window."""
        self._look, self._traffic, self._switch, self._port = look, traffic, switch, port
        self._placement, self._clock = placement, clock

    def begin(self, number: int, count: int) -> None:
        """Window ``number`` of ``count`` begins."""
        self._window = f"{self._traffic}, window {number} of {count}"
        self._first: Glance | None = None
        self._before: Glance | None = None

    def __call__(self) -> None:
        """The window goes on."""
        assert self._clock is not None
        before, now = self._before, self._clock.glance()
        if before is None or now.seconds < before.seconds:
            self._first = self._before = now
        elif now.seconds - before.seconds >= LEAST_S:
            self._before = now
            # Kernels receive none where guests forward by themselves: then the rate is not known yet.
            rate = (now.packets - before.packets) / (now.seconds - before.seconds) or None
            self._look(Seen(self._window, False, rate, loads(before, now, self._placement.cpu_roles)))

    def end(self, folder: Path, collectors: Mapping[str, Collector]) -> None:
        """The window is over, and recorded in ``folder``."""
        rate = switch_rate(folder, self._switch, self._port)
        cpus = self._seen_by_clock() if self._clock else loads_of_host(folder, collectors, self._placement)
        self._look(Seen(self._window, True, rate, cpus))

    def _seen_by_clock(self) -> tuple[CpuLoad, ...]:
        first, last = self._first, self._before
        long_enough = first and last and last.seconds - first.seconds >= LEAST_S
        return loads(first, last, self._placement.cpu_roles) if first and last and long_enough else ()


def loads(before: Glance, now: Glance, roles: Mapping[int, str]) -> tuple[CpuLoad, ...]:
    """What each CPU did between two glances."""
    found = []
    for cpu, role in sorted(roles.items()):
        cycles, instructions = (getattr(now, name)[cpu] - getattr(before, name)[cpu] for name in ("cycles", "instructions"))
        busy = min(1.0, cycles / ((now.seconds - before.seconds) * now.frequency_hz))
        found.append(CpuLoad(cpu, role, busy, cycles / instructions if instructions else None))
    return tuple(found)


def loads_of_host(folder: Path, collectors: Mapping[str, Collector], placement: Placement) -> tuple[CpuLoad, ...]:
    """What each CPU with a role did in the window recorded in ``folder``, as far as a collector knows."""
    busy: dict[int, float] = {}
    for name, collector in collectors.items():
        # What can't be read is told when the run is parsed.
        with contextlib.suppress(ValueError, LookupError, OSError):
            busy.update(collector.busy(parse.shared(folder, name, placement)))
    return tuple(CpuLoad(cpu, role, busy[cpu], None) for cpu, role in sorted(placement.cpu_roles.items()) if cpu in busy)


def switch_rate(folder: Path, switch: str, port: str) -> float | None:
    """Packets per second that the switch sent out of ``port`` in the window recorded in ``folder``; None where it does not say."""
    with contextlib.suppress(ValueError, LookupError, OSError):
        return parse.rate_out_of(folder, switch, port)
    return None
