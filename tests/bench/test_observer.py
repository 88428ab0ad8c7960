# SPDX-License-Identifier: GPL-2.0-or-later
"""What a window without packets is to the benchmark of collectors. That of real traffic is tests/native/test_observer.py."""

import pytest

from vsprof.bench import observer
from vsprof.terms.errors import RunFailed


@pytest.mark.parametrize(("with_it", "without"), [(5.0, 0.0), (0.0, 5.0)])
def test_a_window_without_packets_is_told(monkeypatch, with_it, without):
    monkeypatch.setattr(observer, "_with", lambda *_: with_it)
    monkeypatch.setattr(observer, "_without", lambda *_: without)
    with pytest.raises(RunFailed, match=r"no packet arrived in a window of 0\.5 s"):
        observer._turn(None, "thief", None, 0.5)


def test_a_turn_has_two_windows_with_the_collector_and_two_without(monkeypatch):
    seen = []
    monkeypatch.setattr(observer, "_with", lambda *_: seen.append("with") or 4.0)
    monkeypatch.setattr(observer, "_without", lambda *_: seen.append("without") or 5.0)
    assert observer._turn(None, "thief", None, 0.5) == pytest.approx(0.8)
    assert seen in (["with", "without", "without", "with"], ["without", "with", "with", "without"])
