# SPDX-License-Identifier: GPL-2.0-or-later
"""What a window without packets is to the benchmark of collectors. That of real traffic is tests/native/test_observer.py."""

import pytest

from vsprof.bench import observer
from vsprof.terms.errors import RunFailed


def test_no_packet_without_the_collector_is_told(monkeypatch):
    monkeypatch.setattr(observer, "_with", lambda *_: 5.0)
    monkeypatch.setattr(observer, "_without", lambda *_: 0.0)
    with pytest.raises(RunFailed, match=r"no packet arrived in 0\.5 s without the collector"):
        observer._pair(None, "thief", None, 0.5)
