# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzz targets: all that was kept of earlier runs, and a short run that goes on from there.

VSPROF_FUZZ_SECONDS=number and VSPROF_FUZZ_BUILD=folder make it a long run, whose findings stay: `make fuzz`.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import sanitized

FUZZ = Path(__file__).with_name("fuzz")
DATAPLANE = FUZZ.parents[2] / "dataplane"
TARGETS = sorted(path.stem for path in FUZZ.glob("*.c") if path.stem != "replay")
"""Those of the parts that know nothing of DPDK."""
SECONDS = int(os.environ.get("VSPROF_FUZZ_SECONDS", "4"))


def make(what: str, build: Path, **more: object) -> str:
    options = [f"{name}={value}" for name, value in {"BUILD": build, **more}.items()]
    ran = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", str(DATAPLANE), what, *options],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr[-5000:]
    return ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def replays(host) -> None:
    sanitized.build_replays(host)


@pytest.fixture(scope="module")
def fuzzers(tmp_path_factory) -> Path:
    """The folder in which they were built."""
    need_clang()
    build = Path(os.environ.get("VSPROF_FUZZ_BUILD") or tmp_path_factory.mktemp("fuzzers"))
    sanitized.build_fuzzers(build)
    return build


@pytest.mark.parametrize("target", TARGETS)
def test_all_inputs_that_were_kept_hold(target, tmp_path):
    kept = len(list((FUZZ / "corpus" / target).iterdir()))
    assert kept > 20
    assert make(f"replay-run-{target}", tmp_path) == f"{kept} inputs\n"


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_finds_nothing(target, tmp_path):
    need_clang()
    assert executed(make(f"fuzz-run-{target}", tmp_path, FUZZ_SECONDS=SECONDS)) > 1000


@pytest.mark.long
@pytest.mark.dataplane
@pytest.mark.parametrize("target", sanitized.TARGETS)
def test_all_inputs_that_were_kept_hold_with_dpdk(host, replays, target):
    kept = len(list((FUZZ / "corpus" / target).iterdir()))
    assert kept > 20
    assert sum(int(number) for number in re.findall(r"(\d+) inputs", sanitized.replay(host, target, FUZZ / "corpus" / target))) == kept


@pytest.mark.long
@pytest.mark.dataplane
@pytest.mark.timeout(SECONDS + 900)
@pytest.mark.parametrize("target", sanitized.TARGETS)
def test_a_short_run_with_dpdk_finds_nothing(host, fuzzers, target):
    said = sanitized.fuzz(host, target, SECONDS, fuzzers)
    print(said[-2000:])
    assert executed(said) > 1000


def need_clang() -> None:
    if shutil.which("clang") is None:
        pytest.skip("there is no clang, which has libFuzzer: `make fuzz` installs it")


def executed(said: str) -> int:
    return int(re.search(r"number_of_executed_units: (\d+)", said)[1])
