# SPDX-License-Identifier: GPL-2.0-or-later
"""The tiny programs: they run, and the one of so many instructions has so many, by single-stepping it."""

import ctypes
import os
import platform
import subprocess

import pytest

from vsprof.collectors.perf_stat import programs

pytestmark = pytest.mark.skipif(platform.machine() != programs.MACHINE, reason="the programs are for x86-64")
TRACE_ME, SINGLE_STEP = 0, 9


def program(tmp_path, content: bytes) -> str:
    path = tmp_path / "program"
    path.write_bytes(content)
    path.chmod(0o755)
    return str(path)


def steps(path: str) -> int:
    """How many instructions a program executes, counted by the kernel's ptrace."""
    libc = ctypes.CDLL(None, use_errno=True)
    pid = os.fork()
    if pid == 0:
        if libc.ptrace(TRACE_ME, 0, 0, 0) == 0:
            os.execv(path, [path])
        os._exit(99)
    number = 0
    _, status = os.waitpid(pid, 0)
    while os.WIFSTOPPED(status):
        if libc.ptrace(SINGLE_STEP, pid, 0, 0) != 0:
            os.kill(pid, 9)
        number += 1
        _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 99:
        pytest.skip("this machine does not let a process trace its own child")
    assert os.WEXITSTATUS(status) == 0
    return number


@pytest.mark.parametrize("instructions", [6, 100, 5000])
def test_it_has_as_many_instructions_as_it_says(tmp_path, instructions):
    assert steps(program(tmp_path, programs.counted(instructions))) == instructions


def test_the_whole_million_runs(tmp_path):
    path = program(tmp_path, programs.counted())
    assert subprocess.run([path], check=False, timeout=10).returncode == 0


def test_reading_a_counter_ends_by_the_book(tmp_path):
    """With a PMU it writes two times; without, or where it is not allowed, it ends as its docstring says."""
    ran = subprocess.run([program(tmp_path, programs.rdpmc(1000))], capture_output=True, check=False, timeout=10)
    assert ran.returncode in (0, 1, 2, 3, -11)
    assert len(ran.stdout) == (32 if ran.returncode == 0 else 0)
