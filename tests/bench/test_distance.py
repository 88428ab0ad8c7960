# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs that have a cache in common, or have not."""

import os

import pytest

from vsprof.bench import distance, micro_times


def test_the_farthest_of_several_decides(monkeypatch):
    monkeypatch.setattr(distance.microbenchmarks, "build", lambda: None)
    took = {1: 25.0, 2: 26.0}
    monkeypatch.setattr(micro_times, "between_cpus", lambda cpu, partner: took[partner])
    ask = distance.Distance(0, [1, 2, 1, 0])
    assert ask() == "near"
    took[2] = 500.0
    assert [ask(), ask()] == ["far", "far"]
    assert ask.seen == {"near": [26.0], "far": [500.0, 500.0]}


def test_two_cpus_of_this_machine_are_some_nanoseconds_apart():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("this machine has one CPU: nothing lies between two")
    ask = distance.Distance(cpus[-1], cpus[:1])
    assert ask() in ("near", "far")
    ((took,),) = ask.seen.values()
    assert 1 < took < 100_000
