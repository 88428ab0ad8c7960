# SPDX-License-Identifier: GPL-2.0-or-later
"""Packing events into groups, and giving them windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.collectors.events.entries import Event
from vsprof.collectors.perf_stat import groups
from vsprof.collectors.perf_stat.groups import Round

NAMES = [*"abcdefgh"]
EVENTS = {name: Event.model_validate({"EventName": name, "EventCode": "0x1"}) for name in (*NAMES, "cyc", "ins")}
ANCHORS = ("cyc", "ins")


def test_every_group_has_the_anchors_and_no_more_than_there_is_room_for():
    assert groups.pack([("a", "b"), ("c",), ("d",)], ANCHORS, 3, EVENTS) == [("cyc", "ins", "a", "b", "c"), ("cyc", "ins", "d")]


def test_what_one_metric_needs_stays_together():
    assert groups.pack([("a",), ("b", "c")], ANCHORS, 2, EVENTS) == [("cyc", "ins", "a"), ("cyc", "ins", "b", "c")]


def test_an_event_that_is_counted_already_is_not_counted_again():
    assert groups.pack([("a",), ("a", "b"), ("b", "ins")], ANCHORS, 2, EVENTS) == [("cyc", "ins", "a", "b")]


def test_a_metric_that_is_too_large_is_split():
    assert groups.pack([("a", "b", "c")], ANCHORS, 2, EVENTS) == [("cyc", "ins", "a", "b"), ("cyc", "ins", "c")]


def test_anchors_alone_are_a_group():
    assert groups.pack([ANCHORS], ANCHORS, 1, EVENTS) == [ANCHORS]
    assert groups.pack([], (), 1, EVENTS) == []


def test_events_of_few_counters_are_not_more_than_those():
    limited = {**EVENTS, **{name: Event.model_validate({"EventName": name, "EventCode": "1", "Counter": "0,1"}) for name in "abc"}}
    assert groups.pack([("a",), ("b",), ("c",), ("d",)], (), 8, limited) == [("a", "b", "d"), ("c",)]


@pytest.mark.parametrize(
    ("constraint", "watchdog", "expected"),
    [
        ("", False, [("a", "b")]),
        ("NO_GROUP_EVENTS", False, [("a",), ("b",)]),
        ("NO_GROUP_EVENTS_NMI", False, [("a", "b")]),
        ("NO_GROUP_EVENTS_NMI", True, [("a",), ("b",)]),
    ],
)
def test_a_metric_can_ask_for_its_events_to_be_apart(constraint, watchdog, expected):
    assert groups.together(("a", "b"), constraint, watchdog) == expected


def test_modes_are_told_apart_where_there_are_windows_for_it():
    two = [("a",), ("b",)]
    assert groups.rounds(two, ("user", "kernel"), 4) == [Round(mode, one) for one in two for mode in ("user", "kernel")]
    assert groups.rounds(two, ("user", "kernel"), 3) == [Round("all", one) for one in two]


def test_what_no_window_gets_to():
    rounds = groups.rounds([("cyc", "a"), ("cyc", "b")], ("user",), 1)
    assert groups.never_due(rounds, 1) == ["b"]
    assert groups.never_due(rounds, 2) == []


def test_halves():
    assert groups.halves(("cyc", "a", "b", "c"), ("cyc",)) == [("cyc", "a"), ("cyc", "b", "c")]
    assert groups.halves(("cyc", "a"), ("cyc",)) == []


@given(
    wanted=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True).map(tuple), max_size=8),
    room=st.integers(1, 6),
)
def test_whatever_is_wanted_is_counted(wanted, room):
    packed = groups.pack(wanted, ANCHORS, room, EVENTS)
    assert {name for one in wanted for name in one} <= {name for one in packed for name in one}
    for one in packed:
        assert one[:2] == ANCHORS
        assert len(one) == len(set(one)) <= room + 2
    for one in wanted:
        if len(one) <= room:
            assert any(set(one) <= set(group) for group in packed)
