# SPDX-License-Identifier: GPL-2.0-or-later
"""How a benchmark's command ends: one line for what went wrong, and the exit status."""

import sys
from collections.abc import Callable

from vsprof.runner.cli import INTERRUPTED
from vsprof.terms import errors


def status(name: str, do: Callable[[], object]) -> int:
    """``do``, and the exit status for how it ended, which is told."""
    try:
        do()
    except errors.VsprofError as error:
        return _told(name, error, error.exit_status)
    except OSError as error:
        return _told(name, error, errors.VsprofError.exit_status)
    except KeyboardInterrupt:
        return _told(name, "interrupted", INTERRUPTED)
    return 0


def _told(name: str, what: object, exit_status: int) -> int:
    print(f"{name}: {what}", file=sys.stderr)
    return exit_status
