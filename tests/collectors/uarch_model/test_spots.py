# SPDX-License-Identifier: GPL-2.0-or-later
"""The hot spots of a core in columns, against what a loop over them gives."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.collectors.uarch_model.spots import KINDS, Spots, distinct, looked_up

SPOTS = [
    ["ffffffff81001010", 652, 0, 1, 2, 0, 0, 0, 0, 0, 3, 2],
    ["7f0000001500", 660, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0],
    ["ffffffff81001010", -1, 3, 5, 0, 0, 0, 0, 0, 0, 1 << 40, 1],
]
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 2), st.integers(0, 1 << 50)), max_size=40)


def test_a_column_each():
    read = Spots.of({"spots": SPOTS, "stacks": [[0, "ffffffff81000000"], [1, "55ec0077861b"]]})
    assert read.addresses.tolist() == [0xFFFFFFFF81001010, 0x7F0000001500, 0xFFFFFFFF81001010]
    assert (read.threads.tolist(), read.modes.tolist(), read.stacks.tolist()) == ([652, 660, -1], [0, 1, 3], [2, 0, 1])
    assert read.counts.T.tolist() == [row[3:-1] for row in SPOTS]
    assert read.callers == [(0, 0), (0, 0xFFFFFFFF81000000), (1, 0x55EC0077861B)]


def test_a_core_without_spots_has_empty_columns():
    read = Spots.of({"spots": []})
    assert read.callers == [(0, 0)]
    assert read.summed(read.threads) == ([], [])
    assert looked_up(lambda thread: thread, read.threads)[0] == []


@pytest.mark.parametrize("wrong", [[["ffff", 1, 0]], [["no address", *SPOTS[0][1:]]], [[*SPOTS[0][:-1], "x"]]])
def test_what_the_plug_in_does_not_write_is_refused(wrong):
    with pytest.raises(ValueError):  # noqa: PT011
        Spots.of({"spots": wrong})


@given(ROWS)
def test_equal_rows_are_summed_in_the_order_in_which_they_come(rows):
    sums: dict[tuple[int, int], int] = defaultdict(int)
    for a, b, count in rows:
        sums[a, b] += count
    spots = Spots.of({"spots": [["0", a, b, count, *[0] * (len(KINDS) - 1), 0] for a, b, count in rows]})
    first, found = spots.summed(spots.threads, spots.modes)
    assert [(rows[place][0], rows[place][1], row[0]) for place, row in zip(first, found, strict=True)] == [
        (*key, sums[key]) for key in sums
    ]


def test_what_is_looked_up_is_asked_once_and_equal_answers_are_one():
    asked = []

    def half(value: int) -> int:
        asked.append(value)
        return value // 2

    answers, place = looked_up(half, np.array([7, 4, 7, 6, 4, 5]))
    assert asked == [7, 4, 6, 5]
    assert [answers[one] for one in place] == [3, 2, 3, 3, 2, 2]
    assert answers == [3, 2]


def test_rows_are_distinct_by_all_columns():
    first, row = distinct(np.array([1, 1, 2, 1]), np.array([1 << 63, 5, 5, 5], np.uint64))
    assert first.tolist() == [0, 1, 2]
    assert row.tolist() == [0, 1, 2, 1]
