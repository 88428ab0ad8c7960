# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPUs do while a window lasts, and what the switch forwarded in it: for whoever watches a campaign.

These numbers are for the eye. Those of a result are computed from raw/ alone, see ``runner.parse``.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vsprof.collectors.base import Clock, Collector, Glance, Load
from vsprof.runner import parse
from vsprof.terms.placement import Placement

LEAST_S = 0.0005
"""Of modelled time between two looks, for what lies between to be worth a number."""

IMPOSSIBLE = 1.1
"""As a share of a CPU's time; CPUs may be apart by a little."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a window."""

    window: str
    """Which one: the traffic, and its number."""
    over: bool
    """Whether this is the whole window, not a part of it."""
    packets: float | None
    """Per second: that the switch sent to the receivers' ports in a window that is over, else that kernels received. None: not counted."""
    cpus: tuple[tuple[int, str, Load], ...]
    """Each with its role, and what it did; those of which something is known."""


Look = Callable[[Seen], None]


class Watch:
    """Follows the windows of one traffic, for ``look``: in modelled time about once a second, and each when it is over."""

    def __init__(self, look: Look, traffic: str, switch: str, ports: Sequence[str], placement: Placement, clock: Clock | None) -> None:
        """``ports``: the receivers', at the switch of this name. ``clock``: None where nobody may talk to the host in a window."""
        self._look, self._traffic, self._switch, self._ports = look, traffic, switch, ports
        self._placement, self._clock = placement, clock

    def begin(self, number: int, count: int) -> None:
        """Window ``number`` of ``count`` begins."""
        self._window = f"{self._traffic}, window {number} of {count}"
        self._before: Glance | None = None

    def __call__(self) -> None:
        """The window goes on."""
        assert self._clock is not None
        before, now = self._before, self._clock.glance()
        if before is None or now.seconds < before.seconds:
            self._before = now
        elif now.seconds - before.seconds >= LEAST_S:
            self._before = now
            # Kernels receive none where guests forward by themselves: then the rate is not known yet.
            rate = (now.packets - before.packets) / (now.seconds - before.seconds) or None
            self._look(Seen(self._window, False, rate, self._with_roles(loads(before, now))))

    def end(self, folder: Path, collectors: Mapping[str, Collector], counted: Path | None = None) -> None:
        """The window is over, and recorded in ``folder``; what the clock counted, in ``counted``."""
        found: dict[int, Load] = {}
        for name, collector in collectors.items():
            with _whatever_was_recorded():
                found.update(collector.loads(parse.shared(folder, name, self._placement)))
        if self._clock and counted:
            with _whatever_was_recorded():
                found.update(self._clock.loads(parse.own(counted, self._placement)))
        rate = None
        with _whatever_was_recorded():
            rate = parse.rate_out_of(folder, self._switch, self._ports)
        self._look(Seen(self._window, True, rate, self._with_roles(found)))

    def _with_roles(self, found: Mapping[int, Load]) -> tuple[tuple[int, str, Load], ...]:
        return tuple((cpu, role, found[cpu]) for cpu, role in sorted(self._placement.cpu_roles.items()) if cpu in found)


def _whatever_was_recorded() -> contextlib.AbstractContextManager[None]:
    """What can't be read ends no run here: it is told when the run is parsed."""
    return contextlib.suppress(ValueError, LookupError, TypeError, OSError)


def loads(before: Glance, now: Glance) -> dict[int, Load]:
    """What each CPU did between two glances. For probes the clock stands still: then nobody knows how busy their CPU was."""
    found = {}
    for cpu in range(len(now.cycles)):
        cycles, instructions = now.cycles[cpu] - before.cycles[cpu], now.instructions[cpu] - before.instructions[cpu]
        busy = cycles / ((now.seconds - before.seconds) * now.frequency_hz)
        found[cpu] = Load(min(1.0, busy) if busy < IMPOSSIBLE else None, cycles / instructions if instructions else None)
    return found
