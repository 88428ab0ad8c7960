# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make test` prints at the end: all groups of tests are in it, and none that failed, or never ended, is called fine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[1] / "tools" / "test_summary.py"
TESTS = """
import pytest
def test_passes(): pass
def test_is_skipped(): pytest.skip("for want of a lab")
def test_is_expected_to_fail(): pytest.xfail("known")
"""


@pytest.fixture
def ran(tmp_path):
    """Run a group of tests as `make test` does; a summary of it and others."""
    folder = tmp_path / "tested"
    folder.mkdir()
    (folder / "begun").touch()

    def run(name: str, text: str) -> None:
        tests = tmp_path / f"test_{name}.py"
        tests.write_text(text)
        # Not the project's own options, nor those of the tests' runner.
        command = [sys.executable, "-m", "pytest", "-c", os.devnull, f"--rootdir={tmp_path}", f"--junitxml={folder / name}.xml", str(tests)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
        (folder / f"{name}.log").write_text(done.stdout)
        (folder / f"{name}.status").write_text(f"{done.returncode}\n")

    return folder, run


def summary(folder: Path, *names: str) -> tuple[int, list[str]]:
    done = subprocess.run([sys.executable, TOOL, folder, *names], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_all_groups_are_one_line_and_their_own(ran):
    folder, run = ran
    run("one", TESTS)
    run("other", TESTS + "import time\ndef test_is_slow(): time.sleep(0.3)\n")
    status, lines = summary(folder, "one", "other")
    assert status == 0
    assert "test_other.py::test_is_slow" in lines[2]
    assert lines[-3].startswith("one: 1 passed, 1 skipped, 1 xfailed in ")
    assert lines[-2].startswith("other: 2 passed, 1 skipped, 1 xfailed in ")
    assert lines[-1].strip("=").startswith(" 3 passed, 2 skipped, 2 xfailed in ")


def test_one_that_fails_is_named_and_fails_the_whole(ran):
    folder, run = ran
    run("one", TESTS)
    run("other", "import pytest\n@pytest.fixture\ndef bad(): assert 0\ndef test_fails(): assert 3 == 4\ndef test_errs(bad): pass\n")
    status, lines = summary(folder, "one", "other")
    assert status == 1
    # With the reason: the log of a run elsewhere may not be at hand.
    assert {"FAILED test_other.py::test_fails - assert 3 == 4", "other: exit status 1"} <= set(lines)
    assert any(line.startswith("ERROR test_other.py::test_errs - failed on setup with") for line in lines)
    assert lines[-1].strip("=").startswith(" 1 failed, 1 passed, 1 skipped, 1 xfailed, 1 error in ")


def test_one_that_never_ended_fails_the_whole(ran):
    folder, run = ran
    run("one", TESTS)
    status, lines = summary(folder, "one", "other")
    assert status == 1
    assert "other: no summary: it was ended" in lines
    assert lines[-1].strip("=").startswith(" 1 passed, 1 skipped, 1 xfailed, 1 error in ")
