# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench-dataplane` saw on this host, and what it makes of it.

Rates and their ratios are told for two places of the CPUs: *near*, where the switch's and the endpoints' have a cache in common, and *far*,
where they have not. A hypervisor moves a virtual machine's CPUs from one to the other within minutes, and everything takes another time
there: what a switch and its endpoints share are lines of the cache.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vsprof.analysis.stats import Estimate
from vsprof.bench.compared import estimate
from vsprof.bench.slices import Slice

Found = dict[str, tuple[Estimate, str]]
Key = tuple[str, int, str]
"""A ratio's or contender's name, the size of a frame, and where the CPUs were."""
Pair = tuple[str, int]
"""A ratio's name, and the size of a frame."""
PLACES = ("near", "far")
ALONE = 1.1
"""A slice had its core for itself where the calibration loops beside it took at most so many times the quickest of all. Of 150 loops here
the quickest five took the same time within 1 %, the others 1.3 to 2 times as long: a neighbour was on the core, it seems."""
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Turn:
    """A ratio's four slices."""

    ratio: str
    value: float
    place: str
    """Of the CPUs; empty if they were moved meanwhile."""
    slices: Mapping[str, Sequence[Slice]]
    """By contender."""


def _lists() -> dict[Key, list[list[Slice]]]:
    return defaultdict(list)


@dataclass
class Seen:
    """What the rounds saw; lists have one entry a round."""

    ratios: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))
    slices: dict[Key, list[list[Slice]]] = field(default_factory=_lists)
    misses: dict[tuple[str, int], list[Mapping[str, float]]] = field(default_factory=lambda: defaultdict(list))
    stages_cost: list[float] = field(default_factory=list)
    moved: list[float] = field(default_factory=list)
    """The share of the turns during which the CPUs were moved, which count for nothing."""
    stolen: list[float] = field(default_factory=list)
    slowed: list[float] = field(default_factory=list)
    line_ns: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """By place: nanoseconds that a line took from one CPU to the other, at the median of the round's looks."""
    tsc_hertz: float = 0.0

    def take(self, frame: int, turns: Iterable[Turn]) -> None:
        """A round's turns with frames of that size."""
        ratios: dict[Key, list[float]] = defaultdict(list)
        slices: dict[Key, list[Slice]] = defaultdict(list)
        for turn in (turn for turn in turns if turn.place):
            ratios[turn.ratio, frame, turn.place].append(turn.value)
            for contender, its in turn.slices.items():
                slices[contender, frame, turn.place] += its
        for key, values in ratios.items():
            self.ratios[key].append(statistics.median(values))
        for key, seen in slices.items():
            self.slices[key].append(seen)

    def estimates(self) -> Found:
        """All, by name."""
        return {**self._ratios(), **self._cost(), **self._disturbance(), **self._alone(), **self._absolute()}

    def _ratios(self) -> Found:
        return {f"{name}_{frame}_{place}": (estimate(values), "ratio") for (name, frame, place), values in _in_order(self.ratios)}

    def _cost(self) -> Found:
        return {"stage_counters_cost": (estimate(self.stages_cost), "fraction of the rate")} if self.stages_cost else {}

    def _disturbance(self) -> Found:
        found: Found = {}
        for name, values, unit in (
            ("time_stolen_by_the_hypervisor", self.stolen, "fraction of time"),
            ("slowest_calibration_loops", self.slowed, "fraction longer"),
            ("turns_in_which_cpus_moved", self.moved, "fraction of turns"),
            *((f"line_from_cpu_to_cpu_{place}", values, "ns") for place, values in self.line_ns.items()),
        ):
            if values:
                found[name] = (estimate(values), unit)
        return found

    def _alone(self) -> Found:
        """How many slices had their core for themselves, and vhost-switch's cost in these alone; nothing where no loop was timed."""
        every = [one for rounds in self.slices.values() for each in rounds for one in each]
        most = ALONE * min((one.loop_s for one in every), default=math.inf)
        if math.isinf(most):
            return {}
        share = sum(one.loop_s <= most for one in every) / len(every)
        found: Found = {"slices_with_a_core_of_their_own": (estimate([share]), "fraction of slices")}
        for (name, frame, place), rounds in _in_order(self.slices):
            alone = [[one.busy_cycles_per_packet for one in each if one.loop_s <= most and one.busy_cycles_per_packet] for each in rounds]
            if any(alone):
                cost = estimate([statistics.median(each) for each in alone if each])
                found[f"{name}_busy_cycles_per_packet_{frame}_{place}_alone"] = (cost, "TSC cycles")
        return found

    def _absolute(self) -> Found:
        found: Found = {}
        for (name, frame, place), rounds in _in_order(self.slices):
            key = f"{frame}_{place}"
            rates = [statistics.median(one.packets_per_second for one in each) for each in rounds]
            found[f"{name}_mpps_{key}"] = (estimate([rate / 1e6 for rate in rates]), "Mpackets/s")
            if self.tsc_hertz:
                found[f"{name}_cycles_per_packet_{key}"] = (estimate([self.tsc_hertz / rate for rate in rates]), "TSC cycles")
            for what, unit in (("busy_cycles_per_packet", "TSC cycles"), ("behind", "fraction of the endpoints' rounds")):
                told = [[value for one in each if (value := getattr(one, what)) is not None] for each in rounds]
                if all(told):
                    found[f"{name}_{what}_{key}"] = (estimate([statistics.median(each) for each in told]), unit)
        for (name, frame), counted in self.misses.items():
            for event in dict.fromkeys(event for one in counted for event in one):
                found[f"{name}_{event}_per_packet_{frame}"] = (estimate([one[event] for one in counted if event in one]), "events")
        return found


@dataclass(frozen=True, slots=True)
class Enough:
    """When the rounds end, and what the next one measures."""

    least: int
    half_width: float | None
    """Of each ratio's interval, as a part of it, with the CPUs in one place or the other; None: they are ``least``."""
    most: int

    def left(self, rounds: int, seen: Seen, every: Collection[Pair]) -> set[Pair]:
        """What of ``every`` ratio is still to be measured; nothing: it is enough. Where the CPUs will be nobody knows: those that are wide
        near, or those that are wide far, whichever are fewer now."""
        if rounds < self.least:
            return set(every)
        if self.half_width is None or rounds >= self.most:
            return set()
        near, far = ({pair for pair in every if not self._narrow(seen, pair, place)} for place in PLACES)
        return min(near, far, key=len)

    def _narrow(self, seen: Seen, pair: Pair, place: str) -> bool:
        values = seen.ratios.get((*pair, place), [])
        return len(values) >= self.least and half_width(estimate(values)) <= (self.half_width or 0)


def half_width(one: Estimate) -> float:
    """The longer side of an interval, as a part of the median; without an interval it has no end."""
    if one.low is None or one.high is None:
        return float("inf")
    return max(one.high - one.median, one.median - one.low) / one.median


def _in_order(by_key: Mapping[Key, list[Value]]) -> list[tuple[Key, list[Value]]]:
    """Near before far, small frames before large ones: turns come in an order of chance."""
    return sorted(by_key.items(), key=lambda item: (PLACES.index(item[0][2]), item[0][1], item[0][0]))
