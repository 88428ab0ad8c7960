# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests share: which of them take turns, and why one is skipped that needs the lab, or this host as a testbed, where neither can run."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from vsprof.terms import errors
from vsprof.testbeds.emulator import needs

# How long an example takes is the machine's load, not the code's fault.
settings.register_profile("vsprof", deadline=None)
settings.load_profile("vsprof")

TAKES_THE_MACHINE = ("lab", "native", "dataplane")
"""Marks of tests that need both CPUs, or what this host has once (hugepages, the lab's image): one worker runs them all, one by one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(name) for name in TAKES_THE_MACHINE):
            item.add_marker(pytest.mark.xdist_group("machine"))


@pytest.fixture(scope="session")
def lab_can_run() -> None:
    """Skips, with the reason, on a machine that can't build or run the emulated lab."""
    try:
        needs.for_building().check()
    except errors.BadInput as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def native_can_run(lab_can_run: None) -> None:
    """Skips, with the reason, where this host can't be a testbed; its programs are those of the lab's image."""
    if os.geteuid() != 0:
        pytest.skip("the testbed native takes root")
    if (os.cpu_count() or 1) < 2:
        pytest.skip("the testbed native takes 2 CPUs")
