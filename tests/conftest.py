# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests share: why a test is skipped that needs the lab, or this host as a testbed, where neither can run."""

import os
import time

import pytest
from hypothesis import settings

from vsprof.runner import interruption
from vsprof.terms import errors
from vsprof.testbeds.emulator import needs

# How long an example takes is the machine's load, not the code's fault.
settings.register_profile("vsprof", deadline=None)
settings.load_profile("vsprof")


LONG_UNTIL = "VSPROF_LONG_UNTIL"
"""In the environment: when, in seconds since 1970, tests marked long are no longer begun."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if LONG_UNTIL in os.environ:
        items.sort(key=lambda item: item.get_closest_marker("long") is not None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("long") and time.time() > float(os.environ.get(LONG_UNTIL, "inf")):
        pytest.skip("marked long, and the time for these is over (LONG_MINUTES)")


@pytest.fixture(autouse=True)
def own_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that a test calls in its own process leaves the signals alone: pytest-timeout has SIGALRM."""
    monkeypatch.setattr(interruption, "heed", lambda: None)


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
