# SPDX-License-Identifier: GPL-2.0-or-later
"""What frame-probe counts with, in C and without DPDK: compiled with the sanitizers, and run."""

import shutil
import subprocess
from pathlib import Path

import pytest

PROBE = Path(__file__).resolve().parents[3] / "dataplane" / "probe"
PATIENCE_SECONDS = 60


def test_the_parts_count_right(tmp_path):
    if missing := [name for name in ("gcc", "make") if not shutil.which(name)]:
        pytest.skip(f"no {' and no '.join(missing)} here: the probe's tests in C are not run")
    command = ["make", "-C", PROBE, f"BUILD={tmp_path}", "check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr
