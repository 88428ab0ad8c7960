# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that take turns: who goes on when, and who stands still meanwhile. On this host for real: tests/native/test_turns.py."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.runner import turns
from vsprof.runner.run import Plan
from vsprof.terms.errors import RunFailed


class Host:
    """A testbed that is frozen, or not; one at a time may be awake."""

    awake: ClassVar[set[str]] = set()

    def __init__(self, name: str) -> None:
        self.name = name

    def freeze(self) -> None:
        self.awake.remove(self.name)

    def thaw(self) -> None:
        self.awake.add(self.name)
        assert self.awake == {self.name}


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(turns, "SETTLE_S", 0)
    monkeypatch.setattr(Host, "awake", set())


def run(name: str, windows: int, done: list[str], fails_at: int | None = None, error: BaseException | None = None):
    """What a run does: it is set up, has windows, and is taken away whatever happens."""
    host = Host(name)

    def go(turn: turns.Turn) -> None:
        host.thaw()
        try:
            for number in range(1, windows + 1):
                turn.give(host)
                if number == fails_at:
                    raise error
                done.append(f"{name}{number}")
            turn.give(host)
        finally:
            assert Host.awake == {name}
            host.freeze()
            done.append(f"{name} away")

    return go


def test_windows_follow_one_another_forwards_and_backwards():
    done: list[str] = []
    turns.do([run(name, 3, done) for name in "ABC"])
    assert done == [*["C1", "B1", "A1", "A2", "B2", "C2", "C3", "B3", "A3"], "A away", "B away", "C away"]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_each_run_is_done_whatever_number_of_windows_it_has(windows):
    done: list[str] = []
    turns.do([run(chr(65 + place), number, done) for place, number in enumerate(windows)])
    for place, number in enumerate(windows):
        name = chr(65 + place)
        assert [one for one in done if one[0] == name] == [*(f"{name}{window}" for window in range(1, number + 1)), f"{name} away"]


def test_neighbours_are_of_the_same_window():
    done: list[str] = []
    turns.do([run(name, 12, done) for name in "AB"])
    windows = [one for one in done if "away" not in one]
    assert [one[1:] for one in windows] == [str(number) for number in range(1, 13) for _ in "AB"]
    assert "".join(one[0] for one in windows) == "BAABBAABBAABBAABBAABBAAB"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RunFailed("disk full")], ids=["ctrl-c", "error"])
def test_what_one_raises_ends_all_and_each_is_taken_away_awake(error):
    done: list[str] = []
    with pytest.raises(type(error)):
        turns.do([run("A", 3, done), run("B", 3, done, fails_at=2, error=error), run("C", 3, done)])
    assert sorted(done[-3:]) == ["A away", "B away", "C away"]
    assert "A3" not in done
    assert not Host.awake


@pytest.mark.parametrize("error", [RunFailed("it stays"), OSError("no such group")], ids=["failed", "os"])
def test_one_that_could_not_be_taken_away_hides_nothing(error):
    done: list[str] = []

    def stubborn(turn):
        try:
            run("S", 3, done)(turn)
        finally:
            raise error

    with pytest.raises(KeyboardInterrupt):
        turns.do([stubborn, run("B", 3, done, fails_at=1, error=KeyboardInterrupt()), run("C", 3, done)])
    assert {"S away", "B away", "C away"} <= set(done)


def test_the_others_turns_are_none_of_a_runs_own_time(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda seconds: None))
    seen = {}

    def takes(name, seconds):
        def go(turn):
            host = Host(name)
            host.thaw()
            turn.give(host)
            clock[0] += seconds
            turn.give(host)
            host.freeze()
            seen[name] = turn.waited_s

        return go

    turns.do([takes("A", 3), takes("B", 5)])
    assert seen == {"A": 5, "B": 3}


def plans(repetitions: int, cases: int) -> list[Plan]:
    return [
        Plan(f"r{number:03d}", f"case {number}", number // cases + 1, (f"first of {number}", "other"))
        for number in range(repetitions * cases)
    ]


def test_groups_are_of_a_repetition_and_send_their_traffics_in_one_order():
    found = list(turns.groups(plans(2, 5), 3))
    assert [[plan.run_id for plan in group] for group in found] == [
        ["r000", "r001", "r002"], ["r003", "r004"], ["r005", "r006", "r007"], ["r008", "r009"],
    ]  # fmt: skip
    assert {plan.traffics for plan in found[1]} == {("first of 3", "other")}


def test_groups_are_as_few_and_as_equal_as_can_be():
    assert [turns._sizes(runs, 6) for runs in (0, 1, 6, 7, 10, 13)] == [[], [1], [6], [4, 3], [5, 5], [5, 4, 4]]


def test_alone_each_has_its_own_order():
    assert [plan for [plan] in turns.groups(plans(2, 3), 1)] == plans(2, 3)
