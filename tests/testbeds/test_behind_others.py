# SPDX-License-Identifier: GPL-2.0-or-later
"""Emulated CPUs that get less of this machine's for a while: threads of this process stand for them."""

import contextlib
import os
import threading

import pytest

from vsprof.testbeds.emulator import machine
from vsprof.testbeds.emulator.machine import BEHIND, Machine

HIGHEST_NICENESS = 19


@pytest.fixture
def emulator(monkeypatch, tmp_path):
    """A machine of three CPUs, and the niceness of each."""
    done = threading.Event()
    cpus = [threading.Thread(target=done.wait) for _ in range(3)]
    for cpu in cpus:
        cpu.start()
    made = Machine(None, None, tmp_path)
    answer = [{"cpu-index": number, "thread-id": cpu.native_id} for number, cpu in enumerate(cpus)]
    monkeypatch.setattr(made, "qmp", lambda command: answer)
    yield made, lambda: [os.getpriority(os.PRIO_PROCESS, cpu.native_id) for cpu in cpus]
    done.set()


@pytest.mark.skipif(os.geteuid() != 0, reason="to give a thread its priority back takes root")
def test_they_have_their_priority_again_whatever_happened(emulator):
    made, niceness = emulator
    before = niceness()
    with contextlib.suppress(ZeroDivisionError), made.behind_others([1, 2]):
        # The tests themselves may run behind others.
        assert niceness() == [before[0], *(min(nice + BEHIND, HIGHEST_NICENESS) for nice in before[1:])]
        raise ZeroDivisionError
    assert niceness() == before


def test_without_the_right_to_take_it_back_nothing_changes(emulator, monkeypatch):
    made, niceness = emulator
    before = niceness()
    monkeypatch.setattr(machine, "_may_raise", lambda: False)
    with made.behind_others([1]):
        assert niceness() == before


def test_an_emulator_that_ends_meanwhile_is_no_error_of_ours(emulator, monkeypatch):
    made, _ = emulator
    monkeypatch.setattr(machine, "_may_raise", lambda: True)
    with made.behind_others([]):
        pass
    gone = max(int(name) for name in os.listdir("/proc") if name.isdigit()) + 100_000
    monkeypatch.setattr(machine.os, "getpriority", lambda which, thread: 0)
    monkeypatch.setattr(machine.os, "setpriority", _gone_at_the_end())
    monkeypatch.setattr(made, "qmp", lambda command: [{"cpu-index": 0, "thread-id": gone}])
    with made.behind_others([0]):
        pass


def _gone_at_the_end():
    calls = []

    def setpriority(which, thread, nice):
        calls.append(thread)
        if len(calls) > 1:
            raise ProcessLookupError

    return setpriority
