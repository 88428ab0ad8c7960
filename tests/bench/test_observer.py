# SPDX-License-Identifier: GPL-2.0-or-later
"""What a window without packets is to the benchmark of collectors. That of real traffic is tests/native/test_observer.py."""

from types import SimpleNamespace

import pytest

from vsprof.bench import observer
from vsprof.terms.errors import RunFailed


def turns(around=None, most=1):
    return observer._turns(None, "thief", None, 0.5, around or observer.Undisturbed(), most)


@pytest.mark.parametrize(("with_it", "without"), [(5.0, 0.0), (0.0, 5.0)])
def test_a_window_without_packets_is_told(monkeypatch, with_it, without):
    monkeypatch.setattr(observer, "_with", lambda *_: with_it)
    monkeypatch.setattr(observer, "_without", lambda *_: without)
    with pytest.raises(RunFailed, match=r"no packet arrived in a window of 0\.5 s"):
        next(turns())


def test_a_turn_has_two_windows_with_the_collector_and_two_without(monkeypatch):
    seen = []
    monkeypatch.setattr(observer, "_with", lambda *_: seen.append("with") or 4.0)
    monkeypatch.setattr(observer, "_without", lambda *_: seen.append("without") or 5.0)
    assert next(turns()) == pytest.approx(0.8)
    assert seen in (["with", "without", "without", "with"], ["without", "with", "with", "without"])


def test_a_turn_during_which_the_cpus_were_moved_does_not_count(monkeypatch):
    monkeypatch.setattr(observer, "_with", lambda *_: 4.0)
    monkeypatch.setattr(observer, "_without", lambda *_: 5.0)
    places = iter(["near", "near", "near", "far", "far", "far"])
    around = observer.Undisturbed()
    around.place = lambda: next(places)
    assert list(turns(around, 3)) == [pytest.approx(0.8)] * 2
    assert around.moved == [False, True, False]


def test_what_counts_another_switch_is_not_measured(monkeypatch):
    class OfAnother:
        def __init__(self, host: None) -> None:
            pass

        def not_of_this_switch(self) -> str:
            return "vhost-switch does not run"

    monkeypatch.setitem(observer.COLLECTORS, "of_another", OfAnother)
    said = []
    assert observer._of_collector(SimpleNamespace(host=None), "of_another", 1, 0.5, observer.Undisturbed(), said.append) is None
    assert said == ["of_another not measured: vhost-switch does not run"]
