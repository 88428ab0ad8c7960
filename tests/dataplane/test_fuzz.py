# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzz targets of the parts that know nothing of DPDK: all that was kept of earlier runs, and a short run that goes on from there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).with_name("fuzz")
DATAPLANE = FUZZ.parents[2] / "dataplane"
TARGETS = sorted(path.stem for path in FUZZ.glob("*.c") if path.stem != "replay")
SECONDS = 4


def make(what: str, build: Path, **more: object) -> str:
    options = [f"{name}={value}" for name, value in {"BUILD": build, **more}.items()]
    ran = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", str(DATAPLANE), what, *options],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr[-5000:]
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_all_inputs_that_were_kept_hold(target, tmp_path):
    kept = len(list((FUZZ / "corpus" / target).iterdir()))
    assert kept > 20
    assert make(f"replay-run-{target}", tmp_path) == f"{kept} inputs\n"


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_finds_nothing(target, tmp_path):
    if shutil.which("clang") is None:
        pytest.skip("there is no clang, which has libFuzzer: `make fuzz` installs it")
    said = make(f"fuzz-run-{target}", tmp_path, FUZZ_SECONDS=SECONDS)
    assert int(re.search(r"number_of_executed_units: (\d+)", said)[1]) > 1000
