# SPDX-License-Identifier: GPL-2.0-or-later
"""What is seen of the CPUs before a window and behind it."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from vsprof.collectors import disturbance
from vsprof.collectors.base import Recorded
from vsprof.collectors.disturbance import Disturbance
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import CpuPlan, Placement
from vsprof.testbeds.base import MODELLED, REAL, Completed

TWO_CPUS = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="takes two CPUs")


class Host:
    """A testbed of which just what the collector asks is made up."""

    clock = REAL

    def __init__(self, status: int = 0, cpus: int = 4) -> None:
        self.status, self.cpus = status, cpus

    def plan(self) -> CpuPlan:
        return CpuPlan.of(self.cpus)

    def run(self, command: str, *, check: bool = True) -> Completed:
        return Completed(command, self.status, "", "")


def numbers(text: str) -> dict[str, float]:
    return {one.name: one.value for one in Disturbance.numbers(Recorded("", text, 1.0, Placement([])))}


@TWO_CPUS
def test_the_program_tells_how_long_a_line_and_a_loop_take():
    Disturbance.build()
    cpus = sorted(os.sched_getaffinity(0))
    ran = subprocess.run(
        [disturbance.PROGRAM, str(cpus[-1]), str(cpus[0])], capture_output=True, text=True, check=True, timeout=60
    )  # fmt: skip
    found = numbers(2 * ran.stdout)
    # The best of today's processors need some nanoseconds from core to core, and a busy emulator is slower by a thousand.
    assert 1e-9 < found["line_transfer_seconds"] < 1e-3
    # 1024 additions, 16 a cycle at most.
    assert 5e-9 < found["calibration_loop_seconds"] < 1e-4


@pytest.mark.parametrize("words", [[], ["0"], ["x", "0"], ["0", "-1"], ["0", "99999"]])
def test_cpus_that_are_none_are_refused(words):
    Disturbance.build()
    ran = subprocess.run([disturbance.PROGRAM, *words], capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    assert "usage" in ran.stderr or "is no CPU" in ran.stderr


def test_a_cpu_that_the_machine_has_not_is_told():
    Disturbance.build()
    ran = subprocess.run([disturbance.PROGRAM, "1000", "0"], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, "going to the CPU: Invalid argument" in ran.stderr) == (1, True)


def test_of_the_two_looks_and_of_the_partners_the_longest_counts():
    found = numbers("cpu 1\nloop 120.0\nline 62.5\nline 61.0\ncpu 1\nloop 119.5\nline 60.0\nline 228.4\n")
    assert found == {"line_transfer_seconds": pytest.approx(228.4e-9), "calibration_loop_seconds": pytest.approx(120e-9)}


@pytest.mark.parametrize("text", ["", "cpu 1\nloop 1.0\nline 1.0\n", "cpu 1\nloop 1.0\nline 1.0\ncpu 1\nloop 1.0\n", "cpu 1\nloop nan\n"])
def test_less_than_two_looks_is_an_error(text):
    with pytest.raises(ValueError, match="before the window"):
        numbers(text)


def test_it_looks_from_the_switchs_cpu_at_those_of_the_endpoints():
    one = Disturbance(Host())
    assert one.facts() == {"cpu": 1, "partners": [2, 3]}
    assert one.prepare().startswith(f"{disturbance.ON_HOST} 1 2 3 > ")
    assert one.finish().endswith(f"{disturbance.ON_HOST} 1 2 3")
    # Of two CPUs the endpoints share the housekeeping one.
    assert Disturbance(Host(cpus=2)).facts() == {"cpu": 1, "partners": [0]}


def test_a_machine_without_a_hypervisor_has_nothing_to_look_for():
    assert Disturbance(Host()).unavailable() is None
    assert "no hypervisor" in Disturbance(Host(status=1)).unavailable()
    modelled = Host()
    modelled.clock = MODELLED
    assert "modelled time" in Disturbance(modelled).unavailable()


def test_a_compiler_that_is_missing_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(disturbance, "PROGRAM", tmp_path / "disturbance")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="It takes gcc"):
        Disturbance.build()
    monkeypatch.setattr(disturbance.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=1, stderr="cannot find -lc"))
    with pytest.raises(BadInput, match="cannot find -lc"):
        Disturbance.build()
