# SPDX-License-Identifier: GPL-2.0-or-later
"""Both collectors on this very machine, where it has perf and lets this user record all CPUs."""

import subprocess

import pytest

from vsprof.collectors import perf_text
from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_record import PerfRecord
from vsprof.collectors.sched import EVENTS, FIELDS, Sched
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import Placement


def recorded(collector) -> Recorded:
    if why := collector.unavailable():
        pytest.skip(why)
    collector.setup()
    collector.engage()
    try:
        return Recorded("", collector.measure(0.5), float("nan"), Placement())
    finally:
        collector.disengage()


@pytest.fixture
def work():
    """Something to be seen: a stripped program that computes, and gives its CPU away at each turn of the pipe."""
    process = subprocess.Popen(["sh", "-c", "while :; do head -c 300000 /dev/zero | gzip > /dev/null; done"])
    yield
    process.kill()
    process.wait()


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize("stack_bytes", [0, 8192])
def test_samples_of_this_machine(here, stack_bytes):
    collector = PerfRecord(here, frequency=499, stack_bytes=stack_bytes)
    window = recorded(collector)
    numbers = list(PerfRecord.numbers(window))
    gzip = [count for count in PerfRecord.functions(window) if count.object == "gzip"]
    assert sum(number.value for number in numbers if number.name.startswith("samples")) > 20
    assert gzip
    # Its functions have no names, but the tables for unwinding tell where each begins.
    assert all(count.function.startswith("gzip+0x") or not count.function.startswith("(") for count in gzip)
    assert collector.facts()["kernel_symbols"] == "known" or any(c.function == "(unknown)" for c in PerfRecord.functions(window))


@pytest.mark.usefixtures("work")
def test_the_scheduler_of_this_machine(here):
    window = recorded(Sched(here))
    numbers = list(Sched.numbers(window))
    lost = next(number.value for number in numbers if number.name == "lost_events")
    switches = [number.value for number in numbers if number.name == "switches_sleeping" and number.role == "host-other"]
    assert (switches == [] and lost) or switches[0] > 0


def test_a_recording_leaves_nothing_behind(here, monkeypatch, tmp_path):
    monkeypatch.setattr(perf_text, "FOLDER", f"{tmp_path}/XXXXXX")
    recorded(Sched(here))
    with pytest.raises(RunFailed):
        perf_text.record(here, "-e no-such-event", 0.1, ["ip"])
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_perf_can_not_read_says_in_which_way(here, tmp_path):
    if why := Sched(here).unavailable():
        pytest.skip(why)
    damaging = tmp_path / "damaging"
    damaging.write_text('#!/bin/sh\nperf record "$@" && truncate -s 1000 data\n')
    damaging.chmod(0o755)
    with pytest.raises(RunFailed, match="broken or missing trace data") as caught:
        perf_text.record(here, EVENTS, 0.1, FIELDS, tool=str(damaging))
    assert "not valid for" not in str(caught.value)
