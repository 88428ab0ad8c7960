# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-flood's rings, in C and without DPDK, against vhost-switch's side of them: compiled with the sanitizers, and run."""

import shutil
import subprocess
from pathlib import Path

import pytest

FLOOD = Path(__file__).resolve().parents[3] / "dataplane" / "flood"
PATIENCE_SECONDS = 60


def test_both_sides_of_a_ring_understand_each_other(tmp_path):
    if missing := [name for name in ("gcc", "make") if not shutil.which(name)]:
        pytest.skip(f"no {' and no '.join(missing)} here: the tests of frame-flood's rings are not run")
    command = ["make", "-C", FLOOD, f"BUILD={tmp_path}", "check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr
