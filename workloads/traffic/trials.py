# SPDX-License-Identifier: GPL-2.0-or-later
"""The trials of a search: short floods at a given rate, each counted at every hop until its last frame has drained.

In modelled time a trial is a burst: the sender is told beforehand how many frames to send, and nobody is asked anything until they have
come and gone. Then every hop is read, while nothing flows, so that a frame lost is a frame counted, and reading costs none.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import Burst, Frames
from vsprof.workloads.search import Trial, Trials
from vsprof.workloads.topologies.base import Topology
from vsprof.workloads.traffic import counted
from vsprof.workloads.traffic.base import ModelledTime
from vsprof.workloads.traffic.counted import CountedFlood

FramesAt = Callable[[int | None], Frames]
"""The frames of a flood at a rate; None: as fast as it goes."""
FASTEST_FRAMES = 10_000
"""Sent as fast as it goes before the trials of modelled time, in some 10 ms: then caches are warm, and the sender's pace known."""
ABOVE_FASTEST = 1.1
"""No rate need be tried that is this many times what the sender reaches: more than it can leave unsent without failing the trial."""
LOOKS = 10
"""How often a burst whose packets come no more is asked whether it has ended. Two vhost workers that share a CPU pause for milliseconds."""


def real(topology: Topology, frames: FramesAt, say: Callable[[str], None]) -> Trials:
    """Trials in the time of the machine, or of the emulator."""

    def attempt(rate_pps: int, seconds: float) -> Trial:
        """Raises ``RunFailed`` if nothing at all was sent: that says nothing of the path."""
        say(messages.trial(rate_pps))
        trial = CountedFlood(topology, lambda route: frames(rate_pps))
        time.sleep(seconds)
        trial.check()
        printed = trial.end()
        hops = counted.packets(printed)
        if hops["sent"] <= 0:
            raise messages.endpoint_failed(topology.sender.name, messages.nothing_sent(rate_pps), "")
        return Trial(rate_pps=rate_pps, due=trial.floods[0].due(printed), **hops)

    return Trials(attempt)


@contextlib.contextmanager
def modelled(topology: Topology, frames: FramesAt, clock: ModelledTime, say: Callable[[str], None]) -> Iterator[Trials]:
    """Trials in modelled time, which lasts as long as this. Raises ``RunFailed`` as they do."""
    bursts = _Bursts(topology, frames, clock)
    with clock.modelled_time():
        say(messages.fastest())
        fastest = bursts.send(FASTEST_FRAMES, None)
        highest = math.ceil(ABOVE_FASTEST * fastest.sent / fastest.seconds)

        def attempt(rate_pps: int, seconds: float) -> Trial:
            say(messages.trial(rate_pps))
            before = bursts.hops
            sent = bursts.send(max(1, round(rate_pps * seconds)), rate_pps)
            behind = {hop: bursts.hops[hop] - before[hop] for hop in counted.BEHIND}
            return Trial(rate_pps=rate_pps, due=round(rate_pps * sent.seconds), sent=sent.sent, **behind)

        yield Trials(attempt, clock.now, modelled=True, highest_pps=highest, warm=True)


class _Bursts:
    """Bursts, one after another, and ``hops``: what each hop had counted when the last one was through."""

    def __init__(self, topology: Topology, frames: FramesAt, clock: ModelledTime) -> None:
        self._topology, self._clock = topology, clock
        self._flood = topology.sender.flood(frames(None))
        self._flood.prepare()
        self.hops = counted.hops(topology)

    def send(self, count: int, rate_pps: int | None) -> Burst:
        """Send one, and wait until its last frame has drained. Raises ``RunFailed`` if it does not end, or none was sent."""
        self._flood.burst(count, rate_pps)
        sent = self._flood.burst_sent() if self._flood.awaits_bursts else self._await_end(rate_pps)
        if sent is None:
            raise messages.endpoint_failed(self._topology.sender.name, messages.no_end(count), "")
        if sent.sent <= 0:
            raise messages.endpoint_failed(self._topology.sender.name, messages.nothing_sent(rate_pps), "")
        self.hops = counted.hops(self._topology)
        return sent

    def _await_end(self, rate_pps: int | None) -> Burst | None:
        """Let it be sent and drain; None if it does not end."""
        for _ in range(LOOKS):
            self._clock.await_packets(rate_pps)
            if sent := self._flood.burst_sent():
                # What came no more when it was asked may have paused.
                self._clock.await_quiet(rate_pps)
                return sent
        return None
