# SPDX-License-Identifier: GPL-2.0-or-later
"""The no-drop and the partial-drop rate (NDR, PDR) of a path, searched by MLRsearch in short trials.

MLRsearch (https://pypi.org/project/MLRsearch/, draft-ietf-bmwg-mlrsearch) chooses the rates to try. A trial is *bad* if it lost a larger
share of its frames than the goal allows. A rate is a *lower bound*, that is, carried, when of ``sum_seconds`` of trials at it no more than
the share ``exceed_ratio`` is bad, and an *upper bound* when more is; trials that could change nothing any more are left out. The search
ends when the highest lower bound below all upper bounds lies within ``width`` of the lowest of these. It is the rate found.

Both rates are searched at once where both are wanted: they share their trials, so the no-drop rate never comes out above the partial-drop
rate.

A search that does not get there has bounds and a reason, and no rate.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from vsprof.terms.schema import Number
from vsprof.workloads import messages

LOSS_RATIOS = {"ndr": 0.0, "pdr": 0.005}
"""By load, the share of its frames that a trial may lose: those of FD.io CSIT, whose words NDR and PDR are."""
KEPT_PACE = 0.99
"""What of the frames that were due a sender must have sent to have kept its pace. Where it sent fewer, those that it did not send count as
lost: it was too slow, or its queue to the switch was full, and nothing tells the two apart."""
WINDOW = "search"
"""The window name of a search's numbers."""
FILE = "search.json"


class Settings(BaseModel):
    """What a search is to do: the key ``search`` of a traffic. ``modelled_…``: where time is modelled, of which a second takes minutes.
    ``limit_seconds`` are of the time in which trials are."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trial_seconds: float = Field(1, ge=0.1, le=600)
    sum_seconds: float = Field(5, ge=0.1, le=3600)
    modelled_trial_seconds: float = Field(0.02, ge=0.001, le=10)
    modelled_sum_seconds: float = Field(0.06, ge=0.001, le=60)
    modelled_exceed_ratio: float = Field(0, ge=0, lt=1)
    """Nothing but the path itself loses frames there."""
    exceed_ratio: float = Field(0.5, ge=0, lt=1)
    width: float = Field(0.05, ge=0.001, lt=1)
    min_pps: int = Field(1000, ge=1)
    max_pps: int = Field(10_000_000, le=10_000_000)
    limit_seconds: float = Field(300, gt=0, le=86400)

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        for prefix in ("", "modelled_"):
            trial, whole = (getattr(self, f"{prefix}{name}_seconds") for name in ("trial", "sum"))
            if whole < trial:
                raise ValueError(messages.sum_below_trial(prefix, whole, trial))
        # Closer together no rate lies between them that the width could tell apart.
        if self.min_pps > self.max_pps * (1 - self.width):
            raise ValueError(messages.rates_too_close(self.min_pps, self.max_pps, self.width))
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
    modelled: bool = False
    """Whether its trials were in modelled time; the seconds are of it then."""
    highest_pps: int | None = None
    """The highest rate that it might offer; None, as results of an earlier vsprof have it: ``max_pps``."""
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


@dataclass(frozen=True)
class Trials:
    """How trials are made."""

    attempt: Try
    now: Callable[[], float] = time.monotonic
    """Seconds, of the time in which they are."""
    modelled: bool = False
    highest_pps: int | None = None
    """No higher rate need be tried, for the sender reaches none; None where that is not known."""
    warm: bool = False
    """Whether frames have flowed already, so that the first trial is as good as any."""


class Bounds(NamedTuple):
    """What a search of one goal came to; None: no such bound, or no throughput at the lower one."""

    lower_pps: int | None
    upper_pps: int | None
    throughput_pps: float | None


def find(loads: Sequence[str], settings: Settings, means: Trials) -> dict[str, Found]:
    """Search the rates of ``loads`` at once, by trials that ``means`` makes; what that raises ends the search."""
    # MLRsearch takes half a second to import, among all that a command has imported, and few commands search.
    from vsprof.workloads import mlrsearch  # noqa: PLC0415

    highest = _highest(settings, means)
    made = mlrsearch.run(loads, settings, means, highest)
    shared = {
        "settings": settings, "modelled": means.modelled, "highest_pps": highest, "seconds": made.seconds, "why": made.stopped,
        "trials": made.trials[0 if means.warm else 1 :],
    }  # fmt: skip
    return {load: _found(LOSS_RATIOS[load], bounds, shared) for load, bounds in made.bounds.items()}


def _highest(settings: Settings, means: Trials) -> int:
    """The highest rate that may be offered. Bounds further apart than the width must fit below it, however slow the sender is."""
    least = math.ceil(settings.min_pps / (1 - settings.width)) + 1
    return settings.max_pps if means.highest_pps is None else min(settings.max_pps, max(means.highest_pps, least))


def lengths(settings: Settings, modelled: bool) -> tuple[float, float, float]:
    """Of a trial, and of all trials at a rate [seconds]; and the share of these that may be bad."""
    if modelled:
        return settings.modelled_trial_seconds, settings.modelled_sum_seconds, settings.modelled_exceed_ratio
    return settings.trial_seconds, settings.sum_seconds, settings.exceed_ratio


def _found(loss_ratio: float, bounds: Bounds, shared: Mapping[str, Any]) -> Found:
    found = Found(
        loss_ratio=loss_ratio, lower_pps=bounds.lower_pps, upper_pps=bounds.upper_pps, throughput_pps=bounds.throughput_pps, **shared
    )
    return found if found.why else found.model_copy(update={"why": _why_no_rate(found)})


def _why_no_rate(found: Found) -> str:
    """Of a search that came to its end."""
    settings = found.settings
    if found.lower_pps is None:
        trials = found.at(found.upper_pps)
        return messages.fails_at_the_lowest(settings.min_pps, found.bad(trials), len(trials), found.loss_ratio)
    return messages.carried_the_highest(_offered(found)) if found.upper_pps is None else ""


def numbers(found: Found) -> Iterable[Number]:
    """What a search came to, and what it was to do."""
    lower, upper = found.at(found.lower_pps), found.at(found.upper_pps)
    rates = {
        "search_rate": (found.rate_pps, found.why),
        "search_lower_bound": (found.lower_pps, messages.no_bound("lower")),
        "search_upper_bound": (found.upper_pps, messages.no_bound("upper")),
        "search_throughput": (found.throughput_pps, messages.no_throughput()),
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
        yield Number(f"search_upper_{name}", share, "fraction", window=WINDOW, note="" if due else messages.no_bound("upper"))


def _offered(found: Found) -> int:
    """The highest rate that it might try."""
    return found.settings.max_pps if found.highest_pps is None else found.highest_pps


def _asked(found: Found) -> Iterable[Number]:
    settings = found.settings
    trial_s, sum_s, exceed_ratio = lengths(settings, found.modelled)
    for name, value in (("loss_goal", found.loss_ratio), ("exceed_ratio", exceed_ratio), ("width_goal", settings.width)):
        yield Number(f"search_{name}", value, "fraction", window=WINDOW)
    for name, value in (("trial_goal", trial_s), ("sum_goal", sum_s), ("limit", settings.limit_seconds)):
        yield Number(f"search_{name}", value, "seconds", window=WINDOW)
    for name, value in (("lowest_rate", settings.min_pps), ("highest_rate", _offered(found))):
        yield Number(f"search_{name}", value, "packets/s", window=WINDOW)
