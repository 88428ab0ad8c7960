# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests share: why a test that needs the lab is skipped where the lab can't run."""

from __future__ import annotations

import pytest

from terms import errors
from testbeds.emulator import needs


@pytest.fixture(scope="session")
def lab_can_run() -> None:
    """Skips, with the reason, on a machine that can't build or run the emulated lab."""
    try:
        needs.for_building().check()
    except errors.BadInput as error:
        pytest.skip(str(error))
