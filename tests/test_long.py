# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests marked long, where there is an end to the time for them: the others come first, and none is left out in silence."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = """
import pytest
@pytest.mark.long
def test_is_long(): pass
def test_is_short(): pass
"""


@pytest.mark.parametrize(
    ("seconds", "order", "counts"),
    [
        (None, ["test_is_long PASSED", "test_is_short PASSED"], "2 passed"),
        (600, ["test_is_short PASSED", "test_is_long PASSED"], "2 passed"),
        (-600, ["test_is_short PASSED", "test_is_long SKIPPED"], "1 passed, 1 skipped"),
    ],
    ids=["no-end", "not-over", "over"],
)
def test_long_tests_are_begun_while_there_is_time(tmp_path, seconds, order, counts):
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_these.py").write_text(TESTS)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "VSPROF_LONG"))}
    if seconds is not None:
        environment["VSPROF_LONG_UNTIL"] = str(int(time.time()) + seconds)
    command = [sys.executable, "-m", "pytest", "-v", "-rs", "-c", os.devnull, f"--rootdir={tmp_path}", "test_these.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    lines = [line.partition("::")[2] for line in done.stdout.splitlines() if "::" in line]
    assert [" ".join(line.split()[:2]) for line in lines] == order, done.stdout
    assert f" {counts}" in done.stdout.splitlines()[-1]
    assert ("the time for these is over (LONG_MINUTES)" in done.stdout) == ("skipped" in counts)
