# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of vhost-switch that know nothing of DPDK: built by the host's own compiler under AddressSanitizer and UBSan, and run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

DATAPLANE = Path(__file__).resolve().parents[2] / "dataplane"


def test_each_unit_test_holds(tmp_path):
    ran = subprocess.run(
        ["make", "--no-print-directory", "-s", "-C", str(DATAPLANE), "check", f"BUILD={tmp_path}"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not ran.stderr, "the compiler warned"
    listed = re.findall(r'\{"(\w+)", \1\}', Path(__file__).with_name("test_parts.c").read_text())
    assert ran.stdout.splitlines() == [f"{name}: holds" for name in listed]
