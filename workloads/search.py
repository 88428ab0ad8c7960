# SPDX-License-Identifier: GPL-2.0-or-later
"""The no-drop and the partial-drop rate (NDR, PDR) of a path, searched by MLRsearch in short trials.

MLRsearch (https://pypi.org/project/MLRsearch/, draft-ietf-bmwg-mlrsearch) chooses the rates to try. A trial is *bad* if it lost a larger
share of its frames than the goal allows. A rate is a *lower bound*, that is, carried, when of ``sum_seconds`` of trials at it no more than
the share ``exceed_ratio`` is bad, and an *upper bound* when more is; trials that could change nothing any more are left out. The search
ends when the highest lower bound below all upper bounds lies within ``width`` of the lowest of these. It is the rate found.

A search that does not get there has bounds and a reason, and no rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import SupportsFloat

from MLRsearch import AbstractMeasurer, Config, GoalResult, MeasurementResult, MultipleLossRatioSearch, SearchGoal
from pydantic import BaseModel, ConfigDict, Field, model_validator

from terms import search_messages as say
from terms.schema import Number

LOSS_RATIOS = {"ndr": 0.0, "pdr": 0.005}
"""By load, the share of its frames that a trial may lose: those of FD.io CSIT, whose words NDR and PDR are."""
KEPT_PACE = 0.99
"""What of the frames that were due a sender must have sent to have kept its pace. Where it sent fewer, those that it did not send count as
lost: it was too slow, or its queue to the switch was full, and nothing tells the two apart."""
PRECEDING_TARGETS, EXPANSION = 2, 2
"""MLRsearch's own defaults for how it gets near the goal; they change the time that a search takes, not what its bounds mean."""
WINDOW = "search"
"""The window name of a search's numbers."""
FILE = "search.json"


class Settings(BaseModel):
    """What a search is to do: the key ``search`` of a traffic."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trial_seconds: float = Field(1, ge=0.1, le=600)
    sum_seconds: float = Field(5, ge=0.1, le=3600)
    exceed_ratio: float = Field(0.5, ge=0, lt=1)
    width: float = Field(0.05, ge=0.001, lt=1)
    min_pps: int = Field(1000, ge=1)
    max_pps: int = Field(10_000_000, le=10_000_000)
    limit_seconds: float = Field(300, gt=0, le=86400)

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        if self.sum_seconds < self.trial_seconds:
            raise ValueError(f"sum_seconds {self.sum_seconds:g} is shorter than one trial, trial_seconds {self.trial_seconds:g}")
        # Closer together no rate lies between them that the width could tell apart.
        if self.min_pps > self.max_pps * (1 - self.width):
            raise ValueError(f"min_pps {self.min_pps} is not below max_pps {self.max_pps} by more than the width {self.width:g}")
        return self


class Trial(BaseModel):
    """What became of the frames of one trial, at each hop. What the last hops count of other frames is taken for no gain."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate_pps: int
    due: int
    """Frames that the rate made due, by the sender's own clock."""
    sent: int = Field(gt=0)
    into_switch: int
    out_of_switch: int
    received: int

    @property
    def unsent(self) -> int:
        """Frames that a sender that did not keep its pace owes; see KEPT_PACE."""
        return self.due - self.sent if self.sent < KEPT_PACE * self.due else 0

    @property
    def lost(self) -> int:
        return max(0, self.sent - self.received)

    @property
    def missing(self) -> float:
        """The share of the frames that did not arrive: lost, or not even sent."""
        return (self.lost + self.unsent) / (self.sent + self.unsent)


class Found(BaseModel):
    """What a search came to. ``why``: why there is no rate; empty if there is one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    loss_ratio: float
    settings: Settings
    trials: tuple[Trial, ...]
    lower_pps: int | None
    upper_pps: int | None
    throughput_pps: float | None
    """MLRsearch's conditional throughput: what arrived at the lower bound in the worst of its trials that count."""
    seconds: float
    why: str

    @property
    def rate_pps(self) -> int | None:
        return None if self.why else self.lower_pps

    def at(self, rate_pps: int | None) -> list[Trial]:
        """The trials at a rate."""
        return [trial for trial in self.trials if trial.rate_pps == rate_pps]

    def bad(self, trials: Sequence[Trial]) -> int:
        """How many of them are."""
        return sum(trial.missing > self.loss_ratio for trial in trials)


Try = Callable[[int, float], Trial]
"""Makes a trial at a rate [packets/s] for so many seconds."""


class _Measurer(AbstractMeasurer):
    """MLRsearch's way to ask for a trial. Keeps all of them."""

    def __init__(self, attempt: Try) -> None:
        self._attempt = attempt
        self.trials: list[Trial] = []

    def measure(self, intended_duration: float, intended_load: float) -> MeasurementResult:
        trial = self._attempt(int(intended_load), intended_duration)
        self.trials.append(trial)
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=trial.sent + trial.unsent,
            offered_count=trial.sent,
            loss_count=trial.lost,
        )


def find(load: str, settings: Settings, attempt: Try) -> Found:
    """Search the rate of ``load``, by trials that ``attempt`` makes; what that raises ends the search."""
    measurer, goal = _Measurer(attempt), _goal(load, settings)
    limits = {"min_load": settings.min_pps, "max_load": settings.max_pps, "search_duration_max": settings.limit_seconds}
    # In the warm-up the switch learns the flow; MLRsearch drops its result.
    search = MultipleLossRatioSearch(Config(goals=[goal], warmup_duration=settings.trial_seconds, **limits))
    began = time.monotonic()
    stopped = ""
    try:
        search.search(measurer, debug=lambda text: None)
    except RuntimeError as error:
        # MLRsearch has no error of its own for its time limit.
        late = time.monotonic() - began >= settings.limit_seconds
        stopped = say.not_in_time(settings.limit_seconds) if late else say.gave_up(error)
    bounds = GoalResult.from_bounds(search.database.get_relevant_bounds(search.scaling.goal_to_final_target[goal]))
    found = Found(
        loss_ratio=goal.loss_ratio,
        settings=settings,
        # Without the warm-up.
        trials=tuple(measurer.trials[1:]),
        lower_pps=_pps(bounds.relevant_lower_bound),
        upper_pps=_pps(bounds.relevant_upper_bound),
        throughput_pps=None if bounds.relevant_lower_bound is None else float(bounds.conditional_throughput),
        seconds=time.monotonic() - began,
        why=stopped,
    )
    return found if stopped else found.model_copy(update={"why": _why_no_rate(found)})


def _goal(load: str, settings: Settings) -> SearchGoal:
    return SearchGoal(
        loss_ratio=LOSS_RATIOS[load],
        exceed_ratio=settings.exceed_ratio,
        relative_width=settings.width,
        initial_trial_duration=settings.trial_seconds,
        final_trial_duration=settings.trial_seconds,
        duration_sum=settings.sum_seconds,
        preceding_targets=PRECEDING_TARGETS,
        expansion_coefficient=EXPANSION,
        # That even the lowest rate is too high is a result.
        fail_fast=False,
    )


def _pps(load: SupportsFloat | None) -> int | None:
    """As the trials at this load were asked for."""
    return None if load is None else int(float(load))


def _why_no_rate(found: Found) -> str:
    """Of a search that came to its end."""
    settings = found.settings
    if found.lower_pps is None:
        trials = found.at(found.upper_pps)
        return say.fails_at_the_lowest(settings.min_pps, found.bad(trials), len(trials), found.loss_ratio)
    return say.carried_the_highest(settings.max_pps) if found.upper_pps is None else ""


def numbers(found: Found) -> Iterable[Number]:
    """What a search came to, and what it was to do."""
    lower, upper = found.at(found.lower_pps), found.at(found.upper_pps)
    rates = {
        "search_rate": (found.rate_pps, found.why),
        "search_lower_bound": (found.lower_pps, say.no_bound("lower")),
        "search_upper_bound": (found.upper_pps, say.no_bound("upper")),
        "search_throughput": (found.throughput_pps, say.no_throughput()),
    }
    for name, (rate, why_not) in rates.items():
        yield Number(name, rate, "packets/s", window=WINDOW, note=why_not if rate is None else "")
    yield Number("search_ended", float(not found.why), "fraction", window=WINDOW, note=found.why)
    counts = {"trials": found.trials, "lower_trials": lower, "upper_trials": upper}
    for name, trials in counts.items():
        yield Number(f"search_{name}", len(trials), "trials", window=WINDOW)
        yield Number(f"search_{name.replace('trials', 'bad')}", found.bad(trials), "trials", window=WINDOW)
    yield Number("search_seconds", found.seconds, "seconds", window=WINDOW)
    yield from _beyond(upper)
    yield from _asked(found)


def _beyond(trials: Sequence[Trial]) -> Iterable[Number]:
    """What became of the frames at the upper bound, as shares of those that were due; none without an upper bound."""
    due = sum(trial.sent + trial.unsent for trial in trials)
    missing = {
        "unsent": sum(trial.unsent for trial in trials),
        "lost_before_switch": sum(trial.sent - trial.into_switch for trial in trials),
        "lost_in_switch": sum(trial.into_switch - trial.out_of_switch for trial in trials),
        "lost_after_switch": sum(trial.out_of_switch - trial.received for trial in trials),
    }
    for name, frames in missing.items():
        share = frames / due if due else None
        yield Number(f"search_upper_{name}", share, "fraction", window=WINDOW, note="" if due else say.no_bound("upper"))


def _asked(found: Found) -> Iterable[Number]:
    settings = found.settings
    for name, value in (("loss_goal", found.loss_ratio), ("exceed_ratio", settings.exceed_ratio), ("width_goal", settings.width)):
        yield Number(f"search_{name}", value, "fraction", window=WINDOW)
    for name, value in (("trial_goal", settings.trial_seconds), ("sum_goal", settings.sum_seconds), ("limit", settings.limit_seconds)):
        yield Number(f"search_{name}", value, "seconds", window=WINDOW)
    for name, value in (("lowest_rate", settings.min_pps), ("highest_rate", settings.max_pps)):
        yield Number(f"search_{name}", value, "packets/s", window=WINDOW)
