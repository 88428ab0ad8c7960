# SPDX-License-Identifier: GPL-2.0-or-later
"""How long the runs to come will take, by the runs that were measured."""

import statistics
from collections.abc import Mapping, Sequence


class Pace:
    """Cases differ by minutes: each counts as its own runs took, and as any run did while it has none."""

    def __init__(self, cases: Sequence[str], took: Mapping[str, Sequence[float]]) -> None:
        """``cases``: of each run to come, in their order. ``took``: seconds of earlier runs, by case."""
        self.runs, self.done = len(cases), 0
        self._cases = tuple(cases)
        self._took = {case: list(seconds) for case, seconds in took.items()}

    def end_run(self, seconds: float) -> None:
        """The run that came next has taken so long."""
        self._took.setdefault(self._cases[self.done], []).append(seconds)
        self.done += 1

    def left(self, seconds: float, runs: int = 1) -> float | None:
        """Seconds until all runs are done, the next ``runs`` of which began ``seconds`` ago; None before any was measured."""
        every = [one for some in self._took.values() for one in some]
        if not every:
            return None
        expected = [statistics.median(self._took.get(case) or every) for case in self._cases[self.done :]]
        return max(0.0, sum(expected[:runs]) - seconds) + sum(expected[runs:])
