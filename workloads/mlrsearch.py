# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``workloads.search`` asks of MLRsearch, and in whose words. Apart from it, because the library takes half a second to import."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsFloat

from MLRsearch import AbstractMeasurer, Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal

from vsprof.workloads import messages
from vsprof.workloads.search import LOSS_RATIOS, Bounds, Settings, Trial, Trials, lengths

PRECEDING_TARGETS, EXPANSION = 2, 2
"""MLRsearch's own defaults for how it gets near the goal; they change the time that a search takes, not what its bounds mean."""
NEVER_S = 1e9
"""MLRsearch's own limit, which is of this machine's time: there is none."""


@dataclass(frozen=True)
class Made:
    """A search that has ended. ``stopped``: why before its end; empty where it came there. ``seconds``: of the time in which trials are."""

    bounds: dict[str, Bounds]
    """By load."""
    trials: tuple[Trial, ...]
    """All of them, the one of the warm-up first."""
    seconds: float
    stopped: str


class _Late(Exception):
    """The time is up."""


class _Measurer(AbstractMeasurer):
    """MLRsearch's way to ask for a trial. Keeps all of them. Its own limit is of this machine's time, so ours is kept here."""

    def __init__(self, means: Trials, limit_seconds: float) -> None:
        self._means, self._limit_seconds = means, limit_seconds
        self._began = means.now()
        self.trials: list[Trial] = []

    def seconds(self) -> float:
        """Since it was made."""
        return self._means.now() - self._began

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        if self.seconds() >= self._limit_seconds:
            raise _Late
        trial = self._means.attempt(int(intended_load), intended_duration)
        self.trials.append(trial)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=trial.sent + trial.unsent,
            offered_count=trial.sent,
            loss_count=trial.lost,
        )


def run(loads: Sequence[str], settings: Settings, means: Trials, highest_pps: int) -> Made:
    """Search the rates of ``loads`` at once, none above ``highest_pps``; what the trials of ``means`` raise ends the search."""
    goals = {load: _goal(load, settings, means.modelled) for load in loads}
    # In the warm-up the switch learns the flow; MLRsearch drops its result.
    warmup_s = 0 if means.warm else lengths(settings, means.modelled)[0]
    limits = {"min_load": settings.min_pps, "max_load": highest_pps, "search_duration_max": NEVER_S}
    search = MultipleLossRatioSearch(Config(goals=list(goals.values()), warmup_duration=warmup_s, **limits))
    measurer = _Measurer(means, settings.limit_seconds)
    stopped = ""
    try:
        search.search(measurer, debug=lambda text: None)
    except _Late:
        stopped = messages.not_in_time(settings.limit_seconds)
    except RuntimeError as error:
        stopped = messages.gave_up(error)
    seconds = measurer.seconds()
    return Made({load: _bounds(search, goal) for load, goal in goals.items()}, tuple(measurer.trials), seconds, stopped)


def _bounds(search: MultipleLossRatioSearch, goal: SearchGoal) -> Bounds:
    found = GoalResult.from_bounds(search.database.get_relevant_bounds(search.scaling.goal_to_final_target[goal]))
    lower, upper = found.relevant_lower_bound, found.relevant_upper_bound
    return Bounds(_pps(lower), _pps(upper), None if lower is None else float(found.conditional_throughput))


def _goal(load: str, settings: Settings, modelled: bool) -> SearchGoal:
    trial_s, sum_s, exceed_ratio = lengths(settings, modelled)
    return SearchGoal(
        loss_ratio=LOSS_RATIOS[load],
        exceed_ratio=exceed_ratio,
        relative_width=settings.width,
        initial_trial_duration=trial_s,
        final_trial_duration=trial_s,
        duration_sum=sum_s,
        preceding_targets=PRECEDING_TARGETS,
        expansion_coefficient=EXPANSION,
        # That even the lowest rate is too high is a result.
        fail_fast=False,
    )


def _pps(load: SupportsFloat | None) -> int | None:
    """As the trials at this load were asked for."""
    return None if load is None else int(float(load))
