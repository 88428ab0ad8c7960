# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of two runs of the same work."""

from vsprof.bench.repeat import COUNTERS, Run, explain

ALIKE = dict.fromkeys(COUNTERS, 7)


def test_runs_that_agree_need_no_words():
    assert explain(Run(ALIKE, 0), Run(dict(ALIKE), 3)) == ""


def test_misses_may_differ_by_interrupts():
    words = explain(Run(ALIKE, 0), Run({**ALIKE, "llc_misses": 9}, 3))
    assert words.startswith("the same instructions; interrupts between the marks (0 and 3)")


def test_instructions_may_not_go_without_a_word():
    assert explain(Run(ALIKE, 0), Run({**ALIKE, "instructions": 8}, 1)).startswith("not the same instructions")
