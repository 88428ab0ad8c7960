# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians and ratios with 95 % intervals, by a hierarchical bootstrap.

A *sample* is one metric of one case: a list with one array a repetition, each of shape (windows, 2): what was
counted, and what it is counted per. A repetition's value is sum / sum over its windows, so that a long or busy
window weighs as much as it should; the case's value is the median over its repetitions.

Interval: percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13), which
resamples repetitions, then the windows inside each (Davison and Hinkley, Bootstrap Methods, 1997, sec. 3.8):
windows of one run share a boot and a placement, and are not independent. The seed is fixed: the same result
always gives the same report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from terms import units

RESAMPLES = 1000
TAILS = (0.025, 0.975)
SEED = 20160615

Sample = Sequence[np.ndarray]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median (or a ratio of two) with its interval; `low` and `high` are None where there is none."""

    median: float
    low: float | None
    high: float | None
    n: int
    """Repetitions it rests on (of a ratio: the smaller number of the two)."""

    @property
    def decided(self) -> bool:
        """For a ratio: True if the interval excludes 1, that is, the two cases differ."""
        return self.low is not None and self.high is not None and (self.low > 1 or self.high < 1)

    def shown(self, unit: str, digits: int = 3) -> str:
        """`33.4 kpps (95 % interval 32.9 kpps to 34.0 kpps, n=3)`."""
        if np.isnan(self.median):
            return f"– (n={self.n})"
        middle = units.si(self.median, unit, digits)
        if self.low is None or self.high is None:
            return f"{middle} (n={self.n}: no interval)"
        low, high = (units.si(bound, unit, digits) for bound in (self.low, self.high))
        return f"{middle} (95 % interval {low} to {high}, n={self.n})"


NOTHING = Estimate(float("nan"), None, None, 0)


def estimate(sample: Sample) -> Estimate:
    """The sample's median over repetitions with its interval; repetitions without a value don't count."""
    runs = _countable(sample)
    if not runs:
        return NOTHING
    middle = float(np.median([_value(run) for run in runs]))
    if len(runs) == 1:
        return Estimate(middle, None, None, 1)
    low, high = np.nanquantile(_resampled_medians(runs), TAILS)
    # Few, skewed windows can pull every resample to one side; an interval that excludes its own median helps nobody.
    return Estimate(middle, float(min(low, middle)), float(max(high, middle)), len(runs))


def ratio(sample: Sample, base: Sample) -> Estimate:
    """How many times `base` the sample is, from two independent bootstraps.

    All pairs of the two sets of resampled medians are taken, in logarithms, so that ratio(a, b) and ratio(b, a)
    are exact reciprocals. Without positive medians on both sides there is no ratio.
    """
    top, bottom = _countable(sample), _countable(base)
    n = min(len(top), len(bottom))
    if n == 0:
        return NOTHING
    over, under = estimate(top).median, estimate(bottom).median
    if over <= 0 or under <= 0:
        return Estimate(float("nan"), None, None, n)
    if n == 1:
        return Estimate(over / under, None, None, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.maximum(_resampled_medians(top), 0)), np.log(np.maximum(_resampled_medians(bottom), 0))
        low, high = np.exp(_quantiles(np.subtract.outer(*logs).ravel()))
    return Estimate(over / under, float(min(low, over / under)), float(max(high, over / under)), n)


@dataclass(frozen=True, slots=True)
class Split:
    """A ratio of two cases as the product of two ratios: `whole` = `first` x `second`, exactly."""

    whole: Estimate
    first: Estimate
    second: Estimate

    @property
    def share(self) -> float:
        """The part of the whole ratio's logarithm that is the first one's; beyond 0 to 1 where the two pull apart."""
        return float(np.log(self.first.median) / np.log(self.whole.median))


NO_SPLIT = Split(NOTHING, NOTHING, NOTHING)


def split(sample: Sample, base: Sample) -> Split:
    """Split the ratio of a quotient a/c exactly into those of b/c and a/b: cycles/packet = instructions/packet x CPI.

    A repetition is an array (windows, 3) of a, b and c. Medians do not multiply, geometric means over repetitions do: those
    are taken here, in every resample, too.
    """
    top, bottom = (_countable(one, 3) for one in (sample, base))
    n = min(len(top), len(bottom))
    if n == 0 or any((run.sum(axis=0) <= 0).any() for run in (*top, *bottom)):
        return NO_SPLIT
    middle = _log_parts(np.array([run.sum(axis=0) for run in top])) - _log_parts(np.array([run.sum(axis=0) for run in bottom]))
    if n == 1:
        return Split(*(Estimate(float(np.exp(one)), None, None, 1) for one in middle))
    with np.errstate(divide="ignore", invalid="ignore"):
        over, under = _log_parts(_resampled_sums(top)), _log_parts(_resampled_sums(bottom))
    return Split(*(_log_estimate(middle[part], np.subtract.outer(over[part], under[part]), n) for part in range(3)))


def _log_parts(sums: np.ndarray) -> np.ndarray:
    """From sums (…, repetitions, 3) the mean logarithms over repetitions of a/c, b/c and a/b: shape (3, …)."""
    a, b, c = np.moveaxis(np.log(sums).mean(axis=-2), -1, 0)
    return np.array([a - c, b - c, a - b])


def _log_estimate(middle: float, logs: np.ndarray, n: int) -> Estimate:
    low, high = _quantiles(logs[np.isfinite(logs)])
    return Estimate(float(np.exp(middle)), float(np.exp(min(low, middle))), float(np.exp(max(high, middle))), n)


def _quantiles(logs: np.ndarray) -> tuple[float, float]:
    """Nearest ranks, mirrored: quantile(-x) is -quantile(x) exactly, and infinities don't turn into NaN."""
    logs = logs[~np.isnan(logs)]
    if not logs.size:
        return -np.inf, np.inf
    rank = int(TAILS[0] * logs.size)
    ordered = np.partition(logs, (rank, logs.size - 1 - rank))
    return ordered[rank], ordered[logs.size - 1 - rank]


def _countable(sample: Sample, columns: int = 2) -> list[np.ndarray]:
    """The repetitions that have a value, without their uncounted windows. The last column is what is divided by."""
    runs = [np.asarray(run, dtype=float).reshape(-1, columns) for run in sample]
    runs = [run[~np.isnan(run).any(axis=1)] for run in runs]
    return [run for run in runs if run.size and run[:, -1].sum() != 0]


def _value(run: np.ndarray) -> float:
    counted, per = run.sum(axis=0)
    return counted / per


def _resampled_medians(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Shape (RESAMPLES,): the median of each resample."""
    sums = _resampled_sums(runs)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.median(sums[..., 0] / sums[..., 1], axis=1)


def _resampled_sums(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Shape (RESAMPLES, repetitions, columns): in each resample the sums over windows of the repetitions drawn."""
    random = np.random.default_rng(SEED)
    lengths = np.array([len(run) for run in runs])
    padded = np.zeros((len(runs), lengths.max(), runs[0].shape[1]))
    for place, run in enumerate(runs):
        padded[place, : len(run)] = run
    chosen = random.integers(len(runs), size=(RESAMPLES, len(runs)))
    counts = lengths[chosen][..., None]
    windows = (random.random((RESAMPLES, len(runs), lengths.max())) * counts).astype(int)
    drawn = padded[chosen[..., None], windows]
    # A shorter repetition draws only as many windows as it has.
    drawn = drawn * (np.arange(lengths.max()) < counts)[..., None]
    return drawn.sum(axis=2)
