# SPDX-License-Identifier: GPL-2.0-or-later
"""What a window without packets is to the benchmark of collectors. That of real traffic is tests/native/test_observer.py."""

import contextlib
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


@pytest.mark.parametrize(
    ("words", "named"),
    [("auto", ["one", "two", "three"]), ("two,one", ["two", "one"]), ("two one", ["two", "one"]), ("two, one", ["two", "one"])],
)
def test_collectors_are_named_as_experiments_name_them(words, named):
    assert observer._named_of(words, ["one", "two", "three"]) == named


def test_an_unknown_collector_is_refused(capsys):
    with pytest.raises(SystemExit):
        observer.main(["--collectors", "softirqs,no_such"])
    assert "--collectors: found no_such, use auto or some of " in capsys.readouterr().err


@pytest.mark.parametrize("end", [KeyboardInterrupt(), RunFailed("the switch ended")], ids=["ctrl-c", "failed"])
def test_what_was_measured_is_told_when_the_rest_is_not(monkeypatch, end):
    def of_collector(flow, name, *rest):
        if name == fails:
            raise end
        return f"of {name}"

    @contextlib.contextmanager
    def flowing(*words):
        yield SimpleNamespace(host=None)

    @contextlib.contextmanager
    def host(**words):
        yield None

    monkeypatch.setitem(observer.TESTBEDS, "native", host)
    monkeypatch.setattr(observer.offers, "of", lambda *words: SimpleNamespace(cases=[SimpleNamespace(switch="ovs-dpdk")]))
    monkeypatch.setattr(observer, "flowing", flowing)
    monkeypatch.setattr(observer, "_of_collector", of_collector)
    fails = "cpu_time"
    found, ended = observer.measure("native", None, ["softirqs", "cpu_time"], 1, 0.5, print)
    assert ended is end
    assert found == {"softirqs_throughput_ratio": ("of softirqs", "ratio")}
    fails = "softirqs"
    with pytest.raises(type(end)):
        observer.measure("native", None, ["softirqs", "cpu_time"], 1, 0.5, print)


def test_a_collector_whose_set_up_fails_half_way_is_torn_down(monkeypatch):
    torn_down, said = [], []

    class HalfWay:
        def __init__(self, host: None) -> None:
            pass

        def not_of_this_switch(self) -> None:
            return None

        unavailable = not_of_this_switch

        def setup(self) -> None:
            raise RunFailed("no room")

        def teardown(self) -> None:
            torn_down.append(True)

    monkeypatch.setitem(observer.COLLECTORS, "half_way", HalfWay)
    assert observer._of_collector(SimpleNamespace(host=None), "half_way", 1, 0.5, observer.Undisturbed(), said.append) is None
    assert torn_down
    assert said[-1] == "half_way not measured: no room"
