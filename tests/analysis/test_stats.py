# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians, ratios and their intervals, by properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import stats

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


triples = st.lists(st.tuples(counts, counts, counts), min_size=1, max_size=3).map(np.array)
repeated = st.lists(triples, min_size=1, max_size=4)


@few
@given(repeated, repeated)
def test_the_parts_of_a_split_multiply_to_the_whole(one, other):
    found = stats.split(one, other)
    assert found.first.median * found.second.median == pytest.approx(found.whole.median)
    back = stats.split(other, one)
    assert back.whole.median == pytest.approx(1 / found.whole.median)
    for part in (found.whole, found.first, found.second):
        assert part.low is None or part.low <= part.median <= part.high


def test_a_split_needs_something_of_everything():
    some, none = [np.array([[4.0, 2.0, 1.0]])] * 3, [np.array([[4.0, 0.0, 1.0]])] * 3
    assert stats.split(some, none).whole.n == 0
    assert stats.split(some, []).whole.n == 0
    assert stats.split(some, some).whole.median == 1


def test_zero_has_no_ratio():
    zero, one = [np.array([[0, 1]])] * 3, [np.array([[1, 1]])] * 3
    assert math.isnan(stats.ratio(one, zero).median)
    assert not stats.ratio(one, zero).decided


def test_one_repetition_says_that_it_has_no_interval():
    assert "n=1: no interval" in stats.estimate([np.array([[33_400, 1]])]).shown("packets/s")
