# SPDX-License-Identifier: GPL-2.0-or-later
"""How long what is left will take."""

from vsprof.runner.pace import Pace


def test_nothing_is_known_before_a_run_was_measured():
    assert Pace(["a", "b"], {}).left(5) is None


def test_each_case_takes_as_long_as_its_own_runs_did():
    pace = Pace(["a", "b", "a", "b"], {})
    pace.end_run(10)
    pace.end_run(100)
    assert pace.left(4) == 6 + 100


def test_a_case_without_runs_takes_as_long_as_any():
    pace = Pace(["a", "b"], {"c": [30, 50]})
    assert pace.left(0) == 80


def test_a_run_that_takes_longer_than_the_others_leaves_what_follows():
    pace = Pace(["a", "a", "a"], {})
    pace.end_run(10)
    assert pace.left(60) == 10


def test_at_the_end_nothing_is_left():
    pace = Pace(["a"], {})
    pace.end_run(10)
    assert pace.left(3) == 0


def test_runs_of_a_resumed_campaign_count():
    assert Pace(["a"], {"a": [20]}).left(5) == 15
