# SPDX-License-Identifier: GPL-2.0-or-later
"""What frame-probe counts with, in C and without DPDK: compiled with the sanitizers, and run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PROBE = HERE.parents[2] / "dataplane" / "probe"
PARTS = ("frame.c", "histogram.c", "stream.c")
FLAGS = ("-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
PATIENCE_SECONDS = 60


def test_the_parts_count_right(tmp_path):
    if not (gcc := shutil.which("gcc")):
        pytest.skip("no gcc here: the probe's tests in C are not run")
    sources = [HERE / "test_parts.c", *(PROBE / name for name in PARTS)]
    for command in ([gcc, *FLAGS, f"-I{PROBE}", *sources, "-o", "test_parts"], ["./test_parts"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
