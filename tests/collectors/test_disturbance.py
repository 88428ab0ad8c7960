# SPDX-License-Identifier: GPL-2.0-or-later
"""What is seen of the CPUs before a window and behind it."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from vsprof.collectors import disturbance
from vsprof.collectors.base import Recorded
from vsprof.collectors.disturbance import Disturbance
from vsprof.terms.placement import CpuPlan, Placement
from vsprof.testbeds.base import MODELLED, REAL, Completed

TWO_CPUS = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two CPUs")


LOOK = "cpu 1\nfirst 1\nloop {}\nline {}\nline {}\n"


class Host:
    """A testbed of which just what the collector asks is made up."""

    clock = REAL

    def __init__(self, *, hypervisor: bool = True, runs: bool = True, cpus: int = 4) -> None:
        self.hypervisor, self.runs, self.cpus = hypervisor, runs, cpus
        self.there: set[str] = set()

    def plan(self) -> CpuPlan:
        return CpuPlan.of(self.cpus)

    def push(self, content: bytes, path: str) -> None:
        self.there.add(path)

    def run(self, command: str, *, check: bool = True) -> Completed:
        self.there -= {command.removeprefix("rm -f ")}
        fine = self.hypervisor if "cpuinfo" in command else self.runs or not command.startswith("timeout")
        return Completed(command, 0 if fine else 126, "", "" if fine else "Permission denied\n")


def numbers(begin: str, end: str) -> dict[str, tuple[float | None, str]]:
    return {one.name: (one.value, one.note) for one in Disturbance.numbers(Recorded(begin, end, 1.0, Placement([])))}


@TWO_CPUS
def test_the_program_tells_how_long_a_line_and_a_loop_take():
    assert disturbance.compiled() is None
    cpus = sorted(os.sched_getaffinity(0))
    look = [disturbance.PROGRAM, str(cpus[-1]), str(cpus[0])]
    said = subprocess.run(look, capture_output=True, text=True, check=True, timeout=60).stdout
    found = {name: value for name, (value, _) in numbers(said, said).items()}
    if "first 0" in said:
        pytest.skip("takes leave to go before other programs (CAP_SYS_NICE)")
    # The best of today's processors need some nanoseconds from core to core, and a busy emulator is slower by a thousand.
    assert 1e-9 < found["line_transfer_seconds"] < 1e-3
    # 1024 additions, 16 a cycle at most.
    assert 5e-9 < found["calibration_loop_seconds"] < 1e-4


@pytest.mark.parametrize("words", [[], ["0"], ["x", "0"], ["0", "-1"], ["0", "99999"]])
def test_cpus_that_are_none_are_refused(words):
    assert disturbance.compiled() is None
    ran = subprocess.run([disturbance.PROGRAM, *words], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    assert "usage" in ran.stderr or "is no CPU" in ran.stderr


def test_a_cpu_that_the_machine_has_not_is_told():
    assert disturbance.compiled() is None
    ran = subprocess.run([disturbance.PROGRAM, "1000", "0"], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, "going to the CPU: Invalid argument" in ran.stderr) == (1, True)


def test_of_the_two_looks_and_of_the_partners_the_longest_counts():
    found = numbers(LOOK.format("120.0", "62.5", "61.0"), LOOK.format("119.5", "60.0", "228.4"))
    assert found == {"line_transfer_seconds": (pytest.approx(228.4e-9), ""), "calibration_loop_seconds": (pytest.approx(120e-9), "")}


@pytest.mark.parametrize("failed", ["", "cpu 1\nfirst 1\nloop 1.0\n", "disturbance: a thread on the other CPU: Invalid argument\n"])
def test_a_look_that_failed_costs_its_own_numbers_alone(failed):
    for looks in ((failed, LOOK.format(1, 1, 1)), (LOOK.format(1, 1, 1), failed)):
        assert set(numbers(*looks).values()) == {(None, "a look at the CPUs failed")}


def test_a_look_that_had_to_wait_for_those_who_poll_tells_nothing():
    waited = LOOK.replace("first 1", "first 0").format(1, 1, 1)
    assert {note for _, note in numbers(LOOK.format(1, 1, 1), waited).values()} == {
        "the look at the CPUs had no priority over those who poll there"
    }


def test_it_looks_from_the_switchs_cpu_at_those_of_the_endpoints():
    one = Disturbance(Host())
    assert one.facts() == {"cpu": 1, "partners": [2, 3]}
    assert f"{disturbance.ON_HOST} 1 2 3;" in one.look()
    # Of two CPUs the endpoints share the housekeeping one.
    assert Disturbance(Host(cpus=2)).facts() == {"cpu": 1, "partners": [0]}


def test_it_is_left_out_where_there_is_nothing_to_look_for_or_no_way_to():
    host = Host()
    assert Disturbance(host).unavailable() is None
    assert host.there == set()
    assert "no hypervisor" in Disturbance(Host(hypervisor=False)).unavailable()
    assert "does not run here: Permission denied" in Disturbance(Host(runs=False)).unavailable()
    modelled = Host()
    modelled.clock = MODELLED
    assert "modelled time" in Disturbance(modelled).unavailable()


def test_without_a_compiler_it_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(disturbance, "PROGRAM", tmp_path / "disturbance")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "it takes gcc" in Disturbance(Host()).unavailable()
    monkeypatch.setattr(disturbance.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr="cannot find -lc"))
    assert "cannot find -lc" in Disturbance(Host()).unavailable()
