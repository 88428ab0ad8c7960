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

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vsprof.terms import units

RESAMPLES = 1000
TAILS = (0.025, 0.975)
SEED = 20160615
QUANTILE_975, QUANTILE_80 = 1.959964, 0.841621
"""Of the normal distribution."""
WORTH_COUNTING = 0.4
"""Of all pairs: where more of them differ, counting takes longer (of 1000 by 1000: 0.2 ms against 21 at 0.001, 17 against 19 at 0.39)."""

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

    @property
    def detectable(self) -> float | None:
        """For a ratio: the smallest difference that such data would show four times in five (0.07: 7 %); None without an interval.

        The interval's width gives the standard error of the logarithm; (z_0.975 + z_0.8) of them are told from 0 with a power of 80 %
        (J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, ch. 2).
        """
        if self.low is None or self.high is None or not (0 < self.low <= self.high < np.inf):
            return None
        error = np.log(self.high / self.low) / (2 * QUANTILE_975)
        return float(np.expm1((QUANTILE_975 + QUANTILE_80) * error))

    def shown(self) -> str:
        """Without a unit: `2.20 (95 % interval 2.12 to 2.27, n=3)`."""
        return f"{units.si(self.median, '')} ({self.interval()})"

    def interval(self) -> str:
        """`95 % interval 2.12 to 2.27, n=3`."""
        if self.low is None or self.high is None:
            return f"n={self.n}: no interval"
        return f"95 % interval {units.si(self.low, '')} to {units.si(self.high, '')}, n={self.n}"


NOTHING = Estimate(float("nan"), None, None, 0)


def median(sample: Sample) -> float:
    """Over repetitions, as of ``estimate``, without the work that its interval is; NaN without a value."""
    runs = _countable(sample)
    return _median(runs) if runs else float("nan")


def estimate(sample: Sample) -> Estimate:
    """The sample's median over repetitions with its interval; repetitions without a value don't count."""
    runs = _countable(sample)
    if not runs:
        return NOTHING
    middle = _median(runs)
    if len(runs) == 1:
        return Estimate(middle, None, None, 1)
    low, high = np.nanquantile(_resampled_medians(runs), TAILS)
    # Few, skewed windows can pull every resample to one side; an interval that excludes its own median helps nobody.
    return Estimate(middle, float(min(low, middle)), float(max(high, middle)), len(runs))


def over(number: float, one: Estimate) -> Estimate:
    """``number`` / ``one``: where one is low the quotient is high."""
    low, high = (None if end is None else number / end for end in (one.high, one.low))
    return Estimate(number / one.median, low, high, one.n)


def ratio(sample: Sample, base: Sample, *, paired: bool = False) -> Estimate:
    """How many times `base` the sample is: the ratio of their medians.

    Its interval is from two independent bootstraps: all pairs of the two sets of resampled medians are taken, in logarithms, so that
    ratio(a, b) and ratio(b, a) are exact reciprocals. `paired`: repetition i of both ran side by side; each resample draws the same
    repetitions of both, so that what moved both alike (a host that grew slower) does not widen the interval. A repetition without a value
    on one side is then left out on both. Without positive medians on both sides there is no ratio.
    """
    top, bottom = _countable_pairs(sample, base) if paired else (_countable(sample), _countable(base))
    n = min(len(top), len(bottom))
    if n == 0:
        return NOTHING
    over, under = _median(top), _median(bottom)
    if over <= 0 or under <= 0:
        return Estimate(float("nan"), None, None, n)
    if n == 1:
        return Estimate(over / under, None, None, 1)
    width = max(len(run) for run in (*top, *bottom))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = [np.log(np.maximum(_resampled_medians(runs, width), 0)) for runs in (top, bottom)]
        low, high = np.exp(_quantiles(logs[0] - logs[1]) if paired else _quantiles_of_pairs(*logs))
    return Estimate(over / under, float(min(low, over / under)), float(max(high, over / under)), n)


def effect(sample: Sample, base: Sample) -> float:
    """Cliff's delta: how often a repetition of the sample lies above one of `base`, less how often below; -1 to 1, NaN without values.

    Unlike a ratio it says whether the two overlap at all: 1 or -1 means that they don't (N. Cliff, Dominance statistics, Psychological
    Bulletin 114, 1993).
    """
    one, other = _countable(sample), _countable(base)
    if not (one and other):
        return float("nan")
    return float(np.sign(np.subtract.outer(_values(one), _values(other))).mean())


def _quantiles(logs: np.ndarray) -> tuple[float, float]:
    """Nearest ranks, mirrored: quantile(-x) is -quantile(x) exactly, and infinities don't turn into NaN."""
    logs = logs[~np.isnan(logs)]
    if not logs.size:
        return -np.inf, np.inf
    rank = int(TAILS[0] * logs.size)
    ordered = np.partition(logs, (rank, logs.size - 1 - rank))
    return ordered[rank], ordered[logs.size - 1 - rank]


def _quantiles_of_pairs(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Those of all differences one[i] - other[j]. Few repetitions have few medians; each pair of these counts as often as it comes."""
    (values, counts), (others, times) = (np.unique(logs, return_counts=True) for logs in (one, other))
    if values.size * others.size > WORTH_COUNTING * one.size * other.size:
        return _quantiles(np.subtract.outer(one, other).ravel())
    logs, weights = np.subtract.outer(values, others).ravel(), np.multiply.outer(counts, times).ravel()
    known = ~np.isnan(logs)
    if not known.any():
        return -np.inf, np.inf
    order = np.argsort(logs[known])
    logs, ranks = logs[known][order], np.cumsum(weights[known][order])
    rank = int(TAILS[0] * ranks[-1])
    low, high = np.searchsorted(ranks, (rank, ranks[-1] - 1 - rank), side="right")
    return logs[low], logs[high]


def _countable(sample: Sample) -> list[np.ndarray]:
    """The repetitions that have a value, without their uncounted windows."""
    runs = [np.asarray(run, dtype=float).reshape(-1, 2) for run in sample]
    # Looked at together first: a report has hundreds of thousands of repetitions, and nearly all are whole.
    if runs and np.isnan(np.concatenate(runs)).any():
        runs = [run[~np.isnan(run).any(axis=1)] for run in runs]
    runs = [run for run in runs if run.size]
    return [run for run, sums in zip(runs, _sums(runs), strict=True) if sums[-1] != 0]


def _countable_pairs(sample: Sample, base: Sample) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The repetitions that have a value in both."""
    both = [(_countable([one]), _countable([other])) for one, other in zip(sample, base, strict=True)]
    both = [pair for pair in both if all(pair)]
    return [one for (one,), _ in both], [other for _, (other,) in both]


def _sums(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Shape (repetitions, columns): the sums over each one's windows."""
    return np.add.reduceat(np.concatenate(runs), np.cumsum([0, *map(len, runs[:-1])])) if runs else np.empty((0, 0))


def _values(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Shape (repetitions,)."""
    sums = _sums(runs)
    return sums[:, 0] / sums[:, 1]


def _median(runs: Sequence[np.ndarray]) -> float:
    return float(np.median(_values(runs)))


def _resampled_medians(runs: Sequence[np.ndarray], width: int = 0) -> np.ndarray:
    """Shape (RESAMPLES,): the median of each resample."""
    sums = resampled(runs, width)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.median(sums[..., 0] / sums[..., 1], axis=1)


def resampled(runs: Sequence[np.ndarray], width: int = 0) -> np.ndarray:
    """Shape (RESAMPLES, repetitions, columns): in each resample the sums over windows of the repetitions drawn.

    runs: arrays of shape (windows, columns). With the same number of runs and the same `width` (of windows; at least that of the longest
    run) two samples draw the same repetitions.
    """
    lengths = np.array([len(run) for run in runs])
    width = max(width, lengths.max())
    padded = np.zeros((len(runs), width + 1, runs[0].shape[1]))
    for place, run in enumerate(runs):
        padded[place, : len(run)] = run
    drawn = _drawn(tuple(lengths.tolist()), width)
    # By columns, for numpy adds short rows slowly.
    return np.stack([column.ravel()[drawn].sum(axis=2) for column in np.moveaxis(padded, 2, 0)], axis=2)


@functools.lru_cache(maxsize=8)
def _drawn(lengths: tuple[int, ...], width: int) -> np.ndarray:
    """Shape (RESAMPLES, repetitions, width): which windows each resample draws, numbered through all repetitions of `width` + 1 windows.

    The last of a repetition is no window, but a zero: a shorter repetition draws only as many windows as it has. Kept, because a report
    draws the same for hundreds of metrics.
    """
    random = np.random.default_rng(SEED)
    chosen = random.integers(len(lengths), size=(RESAMPLES, len(lengths)))
    counts = np.array(lengths)[chosen][..., None]
    windows = (random.random((RESAMPLES, len(lengths), width)) * counts).astype(np.int32)
    windows[np.arange(width) >= np.broadcast_to(counts, windows.shape)] = width
    return chosen[..., None].astype(np.int32) * (width + 1) + windows


def tails(resamples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The 95 % interval of each column of resamples, shape (RESAMPLES, columns)."""
    return tuple(np.array([_quantiles(column) for column in resamples.T]).T)
