# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians, ratios and their intervals, by properties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.analysis import stats

counts = st.floats(0.5, 1e6)
windows = st.lists(st.tuples(counts, st.floats(0.5, 100)), min_size=1, max_size=4).map(np.array)
samples = st.lists(windows, min_size=1, max_size=5)
few = settings(max_examples=40, deadline=None)


@few
@given(samples)
def test_an_interval_contains_its_median(sample):
    found = stats.estimate(sample)
    assert found.n == len(sample)
    if found.n == 1:
        assert found.low is None
        assert found.high is None
    else:
        assert found.low <= found.median <= found.high


@few
@given(samples, samples)
def test_swapping_the_cases_flips_the_ratio(one, other):
    there, back = stats.ratio(one, other), stats.ratio(other, one)
    assert there.median == pytest.approx(1 / back.median)
    if there.low is not None:
        assert there.low == pytest.approx(1 / back.high)
        assert there.high == pytest.approx(1 / back.low)


logs = st.lists(st.sampled_from([-np.inf, -2.5, -1.0, 0.0, 0.25, 3.0, np.nan]) | st.floats(-9, 9), min_size=1, max_size=60).map(np.array)


@few
@given(logs, logs, st.sampled_from([0.0, 1.0]))
def test_counted_pairs_have_the_quantiles_of_all_pairs(one, other, worth):
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(stats, "WORTH_COUNTING", worth)
        with np.errstate(invalid="ignore"):
            assert stats._quantiles_of_pairs(one, other) == stats._quantiles(np.subtract.outer(one, other).ravel())


@few
@given(samples, st.floats(0.01, 100))
def test_counting_in_another_unit_scales_the_estimate(sample, factor):
    plain, scaled = stats.estimate(sample), stats.estimate([run * (factor, 1) for run in sample])
    assert scaled.median == pytest.approx(plain.median * factor)
    if plain.low is not None:
        assert scaled.low == pytest.approx(plain.low * factor)


def test_a_repetition_is_sum_over_sum_of_its_windows():
    sample = [np.array([[10, 1], [50, 2]])]
    assert stats.estimate(sample).median == 20


def test_the_same_sample_always_gives_the_same_interval():
    sample = [np.array([[value, 1.0]]) for value in (1.0, 2.0, 3.0, 5.0)]
    assert stats.estimate(sample) == stats.estimate(sample)


def test_few_repetitions_give_about_their_range():
    found = stats.estimate([np.array([[value, 1.0]]) for value in (1.0, 2.0, 4.0)])
    assert (found.low, found.high) == (1, 4)


def test_a_case_against_itself_is_not_decided():
    sample = [np.array([[value, 1.0]]) for value in (1.0, 2.0, 4.0)]
    found = stats.ratio(sample, sample)
    assert found.median == 1
    assert not found.decided
    assert found.low < 1 < found.high


def test_uncounted_windows_and_repetitions_do_not_count():
    sample = [np.array([[4, 1], [math.nan, 1]]), np.array([[math.nan, 1]]), np.array([[6, 1]])]
    found = stats.estimate(sample)
    assert (found.median, found.n) == (5, 2)


def test_nothing_counted_is_no_estimate():
    assert stats.estimate([]).n == 0
    assert math.isnan(stats.ratio([np.array([[1, 1]])], []).median)


@few
@given(samples, samples)
def test_swapping_paired_cases_flips_the_ratio(one, other):
    both = list(zip(one, other, strict=False))
    one, other = ([pair[place] for pair in both] for place in (0, 1))
    there, back = stats.ratio(one, other, paired=True), stats.ratio(other, one, paired=True)
    assert there.median == pytest.approx(1 / back.median)
    if there.low is not None:
        assert there.low == pytest.approx(1 / back.high)


def test_what_moves_a_pair_alike_does_not_widen_its_interval():
    base = [np.array([[value, 1.0]]) for value in (1.0, 1.5, 2.0, 3.0)]
    twice = [run * (2, 1) for run in base]
    paired, apart = (stats.ratio(twice, base, paired=paired) for paired in (True, False))
    assert (paired.low, paired.median, paired.high) == pytest.approx((2, 2, 2))
    assert apart.high / apart.low > 2


def test_a_repetition_without_a_value_is_left_out_on_both_sides():
    base = [np.array([[1.0, 1.0]]), np.array([[100.0, 1.0]]), np.array([[1.0, 1.0]])]
    other = [np.array([[2.0, 1.0]]), np.array([[np.nan, 1.0]]), np.array([[2.0, 1.0]])]
    found = stats.ratio(other, base, paired=True)
    assert (found.median, found.n) == (2, 2)


def test_the_smallest_difference_that_could_have_shown():
    """A standard error of 0.1 in the logarithm: 2.8 of them."""
    found = stats.Estimate(1.0, math.exp(-0.196), math.exp(0.196), 6)
    assert found.detectable == pytest.approx(math.expm1(0.28), rel=1e-3)
    assert stats.Estimate(1.0, None, None, 1).detectable is None
    assert stats.Estimate(1.0, 0.0, 2.0, 3).detectable is None


@few
@given(samples, samples)
def test_an_effect_size_says_how_much_two_samples_overlap(one, other):
    found = stats.effect(one, other)
    assert -1 <= found <= 1
    assert stats.effect(other, one) == -found
    assert stats.effect(one, one) == 0


def test_samples_that_do_not_overlap_have_the_largest_effect():
    low, high = ([np.array([[value, 1.0]]) for value in values] for values in ((1, 2, 3), (4, 5)))
    assert stats.effect(high, low) == 1
    assert math.isnan(stats.effect([], low))


def test_zero_has_no_ratio():
    zero, one = [np.array([[0, 1]])] * 3, [np.array([[1, 1]])] * 3
    assert math.isnan(stats.ratio(one, zero).median)
    assert not stats.ratio(one, zero).decided


def test_one_repetition_says_that_it_has_no_interval():
    assert "n=1: no interval" in stats.estimate([np.array([[33_400, 1]])]).shown()
