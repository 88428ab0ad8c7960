# SPDX-License-Identifier: GPL-2.0-or-later
"""Time-outs of a host whose emulator may have to wait for a CPU."""

import pytest

from vsprof.testbeds import patience as module
from vsprof.testbeds.patience import Patience


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_host_that_is_not_emulated_has_so_many_seconds(clock):
    patience = Patience(10)
    clock[0] += 9
    assert (patience.left(), patience.over()) == (1, False)
    clock[0] += 2
    assert patience.over()


def test_what_a_thread_waited_for_a_cpu_does_not_count(clock):
    waited = {1: 5.0, 2: 50.0}
    patience = Patience(10, lambda: dict(waited))
    clock[0] += 12
    assert patience.over()
    # The one that waited longest decides, and what they had waited before is nobody's.
    waited[1] += 3
    waited[2] += 1
    assert patience.left() == 1


def test_a_thread_that_began_later_counts_from_its_beginning(clock):
    waited = {1: 5.0}
    patience = Patience(10, lambda: dict(waited))
    waited[2] = 4.0
    del waited[1]
    clock[0] += 12
    assert patience.left() == 2
