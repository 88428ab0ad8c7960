# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that are alive at the same time and take turns by windows, for a testbed that can be frozen.

On a real host a neighbour slows whatever runs for seconds at a time. Windows that follow one another meet it alike; whole runs, minutes
apart, do not. So all runs of a repetition are set up, each on a testbed of its own, and then each has a window in turn while the others'
processes stand still; forwards, then backwards (A B B A), so that a drift meets all alike.

A run goes on in a greenlet until it gives its turn: all are in one thread. So an interruption reaches the run that has its turn, and a
process that is to end with the thread that started it ends with vsprof alone.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from greenlet import GreenletExit, getcurrent, greenlet

from vsprof.testbeds.base import Testbed

if TYPE_CHECKING:
    from vsprof.runner.run import Plan

MOST = 6
"""Runs at once."""
BYTES_OF_A_RUN = 4 << 30
"""Memory that one takes at most: 2 GiB of hugepages, and as much again for its processes."""
SETTLE_S = 0.05
"""From thawing to a window: caches are full of others' lines, and one side of each ring has begun before the other."""


class Turn:
    """A run's turn; as it stands here, of one that has no others beside it."""

    given = False
    """Whether it ever was."""
    waited_s = 0.0
    """How long it was the others' turn."""

    def give(self, host: Testbed) -> None:
        """Let each of the others have a window; returns when it is this run's turn again. ``host`` stands still meanwhile."""


class _Shared(Turn):
    def __init__(self) -> None:
        self._others = getcurrent()

    def give(self, host: Testbed) -> None:
        began = time.monotonic()
        self.given = True
        try:
            host.freeze()
            self._others.switch()
        finally:
            # Also where it is not to go on: what is frozen can't be taken away in order.
            host.thaw()
            self.waited_s += time.monotonic() - began
        time.sleep(SETTLE_S)


def do(runs: Sequence[Callable[[Turn], None]]) -> None:
    """Do all of them. What one raises ends the others, too; a run that merely failed is to return."""
    left = [greenlet(run) for run in runs]
    turns = {one: _Shared() for one in left}
    try:
        while left:
            for one in left:
                # A greenlet is false until it has begun, and takes its arguments then.
                one.switch() if one else one.switch(turns[one])
            left = [one for one in left if not one.dead][::-1]
    except BaseException:
        with contextlib.ExitStack() as rest:
            for one in left:
                rest.callback(_end, one)
        raise


def _end(run: greenlet) -> None:
    """Have it taken away. Where that fails, it must not hide why it was to end."""
    with contextlib.suppress(Exception):
        run.throw(GreenletExit)


def groups(plans: "Iterable[Plan]", most: int) -> "Iterator[list[Plan]]":
    """Plans that are done beside one another: those of a repetition, at most so many at once, in their order. All send their traffics in
    the order of the first, so that windows of the same traffic follow one another."""
    for _, block in itertools.groupby(plans, key=lambda plan: plan.repetition):
        left = list(block)
        for size in _sizes(len(left), most):
            group, left = left[:size], left[size:]
            yield [replace(plan, traffics=group[0].traffics) for plan in group]


def _sizes(runs: int, most: int) -> list[int]:
    """Of as few groups as can be, as equal as can be."""
    groups = -(-runs // most)
    return [runs // groups + (number < runs % groups) for number in range(groups)]
