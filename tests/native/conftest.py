# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a test of the native testbed is skipped where it can't run."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def native_can_run(lab_can_run: None) -> None:
    """Skips, with the reason, where this host can't be a testbed; its programs are those of the lab's image."""
    if os.geteuid() != 0:
        pytest.skip("the testbed native takes root")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("the testbed native takes 2 CPUs")
