# SPDX-License-Identifier: GPL-2.0-or-later
"""The kinds of errors. Their texts stand in messages.py of the package that raises them, one function a message: code elsewhere raises
what these functions return, and writes no texts of its own."""

from __future__ import annotations

from collections.abc import Sequence


class VsprofError(Exception):
    """Something failed; the command ends with exit status 1."""

    exit_status = 1


class BadInput(VsprofError):
    """What the user asked for can't be done as asked; exit status 2, and nothing was written."""

    exit_status = 2


class RunFailed(VsprofError):
    """One run failed; it is recorded as failed and the campaign goes on."""


class PluginNotLoaded(BadInput):
    """The lab's emulator does not start with a plug-in that a collector needs."""


class SnapshotUnusable(VsprofError):
    """The lab's snapshot is whole and yet does not resume."""


class LabUnsound(VsprofError):
    """The lab answers, but one of its CPUs can't do what a run needs. ``registers``: of each CPU's local APIC, where it was asked."""

    registers: Sequence[str] = ()
