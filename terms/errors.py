# SPDX-License-Identifier: GPL-2.0-or-later
"""Every error and warning that vsprof prints: the value seen, and the next move.

One function a message, so that all texts can be read (and mended) in one place. Code elsewhere raises what
these functions return; it writes no texts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class VsprofError(Exception):
    """Something failed; the command ends with exit status 1."""

    exit_status = 1


class BadInput(VsprofError):
    """What the user asked for can't be done as asked; exit status 2, and nothing was written."""

    exit_status = 2


class RunFailed(VsprofError):
    """One run failed; it is recorded as failed and the campaign goes on."""
