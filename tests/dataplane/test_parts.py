# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of vhost-switch that know nothing of DPDK: built by the host's own compiler under AddressSanitizer and UBSan, and run."""

import re
import subprocess
from pathlib import Path

DATAPLANE = Path(__file__).resolve().parents[2] / "dataplane"


def made(what: str, build: Path) -> str:
    ran = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", str(DATAPLANE), what, f"BUILD={build}"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not ran.stderr, f"the compiler, or a sanitizer, warned: {ran.stderr}"
    return ran.stdout


def test_threads_that_share_the_addresses_have_no_race(tmp_path):
    assert made("threads", tmp_path) == "holds\n"


def test_each_unit_test_holds(tmp_path):
    said = made("check", tmp_path)
    listed = re.findall(r'\{"(\w+)", \1\}', Path(__file__).with_name("test_parts.c").read_text())
    assert said.splitlines() == [f"{name}: holds" for name in listed]
