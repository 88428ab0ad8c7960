# SPDX-License-Identifier: GPL-2.0-or-later
"""The microbenchmarks' times: the real program runs, for a moment."""

import os
import subprocess

import pytest

from vsprof.bench import micro_guest, micro_times, microbenchmarks
from vsprof.bench.micro_times import Timed, Took
from vsprof.collectors.uarch_model import profiles
from vsprof.terms.errors import RunFailed

PROFILE = profiles.load("zen4")


@pytest.fixture(scope="module")
def program():
    microbenchmarks.build()
    return microbenchmarks.PROGRAM


def short(name: str) -> Timed:
    """An item as it is, but for a moment."""
    item = next(one for one in [*micro_times.items(PROFILE), micro_guest.EXIT] if one.name == name)
    return Timed(item.name, item.kind, min(item.argument, 4096) if item.kind != "pages" else 16, 100)


@pytest.mark.parametrize("name", [*(item.name for item in micro_times.items(PROFILE)), "exit"])
def test_each_item_takes_its_tries_and_time(name, program):
    if len(cpus := sorted(os.sched_getaffinity(0))) < 2:
        pytest.skip("two threads need two CPUs")
    item = short(name)
    ran = subprocess.run(
        [str(program), *item.words(cpus[-1], cpus[0], 3)], input="go\n", capture_output=True, text=True, timeout=60, check=True
    )
    took = micro_times.read(item, ran.stdout)
    assert len(took.nanoseconds) == 3
    assert all(0 < one < 1e8 for one in took.nanoseconds)


def test_it_waits_until_it_is_told(program):
    with subprocess.Popen(
        [str(program), *short("adds").words(0, 0, 1)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        assert process.poll() is None
        assert "took" in process.communicate("go\n", timeout=60)[0]


def test_what_it_does_not_know_is_its_usage(program):
    ran = subprocess.run([str(program), "time", "0", "0", "nothing", "0", "1", "1"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "adds" in ran.stderr


def test_times_are_of_an_iteration():
    took = micro_times.read(Timed("x", "adds", 0, 100), "ready\ntook 200 300 100\nmemcpy 4240c0\n")
    assert took == Took([2.0, 3.0, 1.0], "4240c0")
    assert (micro_times.shortest(took), micro_times.median(took)) == (1.0, 2.0)


@pytest.mark.parametrize("printed", ["", "ready\n", "ready\ntook 1\n"])
def test_anything_else_is_an_error(printed):
    with pytest.raises(RunFailed):
        micro_times.read(Timed("x", "adds", 0, 100), printed)


def test_other_code_of_the_c_library_is_noticed():
    alike, other = {"adds": [Took([1.0], "a")]}, {"adds": [Took([1.0], "b")]}
    assert not micro_times.copies_differ(alike, alike)
    assert micro_times.copies_differ(alike, other)


def test_sizes_follow_the_profile():
    items = {item.name: item for item in micro_times.items(PROFILE)}
    values = PROFILE.values
    l2, llc = (values[f"{name}.sets"] * values[f"{name}.ways"] * 64 for name in ("l2", "llc"))
    assert items["chase_l2"].argument < l2 < items["chase_llc"].argument < llc < items["chase_memory"].argument
    assert items["pages_stlb"].argument < values["stlb.entries"] < items["pages_walk"].argument
    # Else the lines of the pages would miss L1D, and that would be timed, too.
    assert items["pages_stlb"].argument * 64 <= values["l1d.sets"] * values["l1d.ways"] * 64


def test_near_is_by_the_profile(monkeypatch):
    latency = PROFILE.values["llc.latency_modified"] / PROFILE.frequency_hz * 1e9
    assert micro_times.is_near(1.2 * latency, PROFILE)
    assert not micro_times.is_near(6 * latency, PROFILE)
    lines = iter([6 * latency, 6 * latency, latency])
    monkeypatch.setattr(micro_times, "between_cpus", lambda: next(lines))
    monkeypatch.setattr(micro_times, "NEAR_PAUSE", 0)
    said = []
    assert micro_times.wait_until_near(PROFILE, said.append) == latency
    assert len(said) == 2


def test_exits_that_take_longer_by_themselves_than_on_this_machine_are_an_error(monkeypatch):
    monkeypatch.setattr(micro_guest, "_round", lambda *_: {"exit": Took([900.0, 1000.0, 1100.0], "")})
    with pytest.raises(RunFailed, match="an exit takes 1 ns on this machine"):
        micro_guest.modelled([micro_guest.EXIT], 1.0, PROFILE, 1.0, 1, lambda text: None)
