# SPDX-License-Identifier: GPL-2.0-or-later
"""What an interval can't show is flagged, and nothing is flagged for nothing."""

import json

import numpy as np
import pytest

from vsprof.analysis import load, series

SERIES = 1000


def flagged(check, of: int, relative: float) -> float:
    """The part of normal series of `of` values that a check flags."""
    random = np.random.default_rng(3)
    return float(np.mean([bool(np.any(check(random.normal(1, relative, of)))) for _ in range(SERIES)]))


@pytest.mark.parametrize("of", [6, 9, 15, 30])
@pytest.mark.parametrize("relative", [0.01, 0.2])
def test_normal_values_are_hardly_ever_two_groups(of, relative):
    assert flagged(lambda values: series.two_groups(values) is not None, of, relative) <= 0.02


@pytest.mark.parametrize("of", [6, 9, 15, 30])
def test_values_without_a_drift_hardly_ever_drift(of):
    assert flagged(lambda values: series.drift(values) != 0, of, 0.05) <= 0.02


@pytest.mark.parametrize("of", [6, 12, 30])
def test_two_speeds_are_two_groups(of):
    """As a machine with 12 and 4.5 Mpps gave them."""
    random = np.random.default_rng(4)
    values = np.where(np.arange(of) % 3 == 0, 4.5, 12.0) * random.normal(1, 0.02, of)
    apart = series.two_groups(values)
    assert apart is not None
    assert list(apart) == [place % 3 == 0 for place in range(of)]


def test_a_drift_is_told_with_its_size():
    values = np.linspace(100, 130, 8)
    assert series.drift(values) == pytest.approx(30 / 115)
    assert series.drift(values[::-1]) == pytest.approx(-30 / 115)


def test_few_values_can_not_tell():
    assert series.drift([1, 2, 3]) == 0
    assert series.two_groups([1, 1, 9, 9]) is None
    assert series.drift([]) == 0


def test_a_gap_that_does_not_matter_is_none():
    assert series.two_groups([100, 100.001, 100, 104, 104.001, 104]) is None


def result_with(sample, tmp_path, order, **shape):
    """A sample whose runs began in `order`: (case's place, repetition)."""
    sample.write(tmp_path, **shape)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    cases = [case["case_id"] for case in manifest["cases"]]
    for place, (case, repetition) in enumerate(order):
        run = next(run for run in manifest["runs"] if run["case_id"] == cases[case] and run["repetition"] == repetition)
        run.update(started=f"2026-01-01T00:{place:02d}:00+00:00", order=place)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return load.load(tmp_path)


def test_a_case_that_always_ran_first_is_told(sample, tmp_path):
    result = result_with(sample, tmp_path, [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3)])
    [told] = series.order(result)
    assert "kernel-ovs · vhost-net ran before ovs-dpdk · vhost-user" in told
    assert "3 repetitions" in told


def test_an_order_that_changes_is_no_news(sample, tmp_path):
    assert series.order(result_with(sample, tmp_path, [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)])) == []


def test_cases_that_did_not_run_in_turns_are_told(sample, tmp_path):
    result = result_with(sample, tmp_path, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)])
    assert result.order == []
    assert "did not run interleaved" in series.order(result)[0]


def test_repetitions_of_several_servers_may_overlap_for_each_is_on_one(sample, tmp_path):
    order = [(0, 1), (0, 2), (1, 1), (1, 2), (0, 3), (1, 3)]
    assert result_with(sample, tmp_path / "one", order).order == []
    path = tmp_path / "several"
    result_with(sample, path, order)
    manifest = json.loads((path / "manifest.json").read_text())
    for run in manifest["runs"]:
        run["server"] = f"server{run['repetition'] % 2}"
    (path / "manifest.json").write_text(json.dumps(manifest))
    cases = [case["case_id"] for case in manifest["cases"]]
    assert load.load(path).order == [cases] * 3


def test_a_flag_says_which_runs(sample, tmp_path):
    """Of six repetitions the last two are at a third of the others' speed."""
    order = [(case, repetition) for repetition in range(1, 7) for case in ((0, 1), (1, 0))[repetition % 2]]
    result = result_with(sample, tmp_path, order, repetitions=6)
    rows = (result.frame["name"] == "packet_rate_received") & (result.frame["case_id"] == result.cases.index[0])
    rows &= result.frame["repetition"] > 4
    result.frame.loc[rows, "value"] /= 3
    [told] = [flag for flag in series.flags(result) if "UDP flood, saturation" in flag]
    assert "4 of 12 windows lie apart" in told
    assert "#5" in told
    assert "#6" in told
