# SPDX-License-Identifier: GPL-2.0-or-later
"""``vsprof``, from the shell: says where the user's own plug-ins are before anything looks for some."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from vsprof.terms import places

FEWEST_NEW = 100_000
"""Objects that are made before Python looks for cycles among them. A window of the processor model is a million objects without any, and
to look for some at each 700 takes longer than to read it."""


def main() -> int:
    """Returns the exit status."""
    gc.set_threshold(FEWEST_NEW)
    parser = argparse.ArgumentParser(prog="vsprof", add_help=False, allow_abbrev=False)
    parser.add_argument("--plugins", action="append", default=[])
    given, _ = parser.parse_known_args()
    for folder in given.plugins:
        if not os.path.isdir(folder):
            print(f"vsprof: --plugins {folder}: no such folder", file=sys.stderr)
            return 2
    if given.plugins:
        os.environ[places.PLUGINS] = os.pathsep.join(map(os.path.abspath, given.plugins))
    # Only now: plug-ins are found while this is imported.
    from vsprof.runner import cli  # noqa: PLC0415

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
