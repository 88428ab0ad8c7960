# SPDX-License-Identifier: GPL-2.0-or-later
"""What the lab's CPUs do while a window of modelled time lasts, in a line each: for whoever watches a campaign."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vsprof.collectors.base import Clock, Glance
from vsprof.terms.units import significant

LEAST_S = 0.0005
"""Of modelled time between two looks, for what lies between to be worth a number."""


class Live:
    """Called about once a second; tells ``say`` what was done since the call before."""

    def __init__(self, clock: Clock, roles: Mapping[int, str], say: Callable[[str], None]) -> None:
        """``roles``: of each CPU."""
        self._clock, self._roles, self._say = clock, roles, say
        self._before: Glance | None = None

    def __call__(self) -> None:
        before, now = self._before, self._clock.glance()
        if before is None or now.seconds < before.seconds:
            self._before = now
        elif now.seconds - before.seconds >= LEAST_S:
            self._before = now
            self._say("\n".join(lines(before, now, self._roles)))


def lines(before: Glance, now: Glance, roles: Mapping[int, str]) -> list[str]:
    """First the packets, where a kernel receives any; then a line a CPU: its role, how busy it was, and its cycles per instruction."""
    seconds = now.seconds - before.seconds
    packets = (now.packets - before.packets) / seconds
    found = [f"{significant(packets)} packets/s received by kernels"] if packets else []
    for cpu, role in sorted(roles.items()):
        cycles, instructions = (getattr(now, name)[cpu] - getattr(before, name)[cpu] for name in ("cycles", "instructions"))
        busy = min(1.0, cycles / (seconds * now.frequency_hz))
        cpi = f"CPI {cycles / instructions:.2f}" if instructions else "idle"
        found.append(f"CPU {cpu}  {role:10}  {busy:4.0%} busy  {cpi}")
    return found
