# SPDX-License-Identifier: GPL-2.0-or-later
"""How far the model is off what it is compared with, and the samples that this is made of."""

from collections.abc import Iterable

import numpy as np

from vsprof.analysis import stats
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import FEW


def error(model: stats.Sample, reference: stats.Sample) -> tuple[Estimate, str]:
    """A fraction; of what hardly happens, the difference in events."""
    seen, base = stats.estimate(model).median, stats.estimate(reference).median
    if base < FEW:
        return once(seen - base), "events"
    ratio = stats.ratio(model, reference)
    low, high = (None if bound is None else bound - 1 for bound in (ratio.low, ratio.high))
    if high is None or not np.isfinite(high):
        # Of a model that says zero there is no ratio, and of one whose interval has no end, no interval.
        low = high = None
    return Estimate(seen / base - 1, low, high, ratio.n), "fraction"


def sample(values: Iterable[float]) -> stats.Sample:
    """Each value a repetition of its own."""
    return [np.array([[value, 1.0]]) for value in values]


def estimate(values: Iterable[float]) -> Estimate:
    """What measurements say, each a repetition of its own."""
    return stats.estimate(sample(values))


def once(value: float) -> Estimate:
    """What one measurement says."""
    return estimate([value])
