# SPDX-License-Identifier: GPL-2.0-or-later
"""``vsprof``, from the shell: says where the user's own plug-ins are before anything looks for some."""

import argparse
import gc
import os
import sys
import traceback
from pathlib import Path

from vsprof.runner import names
from vsprof.terms import errors, places

OWN_ERROR = 70
"""The exit status of a crash (EX_SOFTWARE of sysexits.h): 1 is that of a run that failed, or of a rule that does."""

FEWEST_NEW = 100_000
"""Objects that are made before Python looks for cycles among them. A window of the processor model is a million objects without any, and
to look for some at each 700 takes longer than to read it."""


def main() -> int:
    """Returns the exit status."""
    gc.set_threshold(FEWEST_NEW)
    parser = argparse.ArgumentParser(prog="vsprof", add_help=False, allow_abbrev=False)
    parser.add_argument("--plugins", action="append", default=[])
    parser.add_argument("--results")
    given, rest = parser.parse_known_args()
    for folder in given.plugins:
        if not os.path.isdir(folder):
            print(f"vsprof: --plugins {folder}: no such folder", file=sys.stderr)
            return 2
    if given.plugins:
        os.environ[places.PLUGINS] = os.pathsep.join(map(os.path.abspath, given.plugins))
    if given.results:
        # For what is imported now, and for vsprof's own children.
        places.RESULTS = Path(given.results).absolute()
        os.environ[places.RESULTS_NAMED] = str(places.RESULTS)
    if rest[:1] == ["names"] and len(rest) == 2 and rest[1] in names.KINDS:
        # A shell asks, and its user waits: the command line takes seconds to be imported.
        print("\n".join(names.of(rest[1])))
        return 0
    try:
        # Only now: plug-ins and results are looked for while this is imported.
        from vsprof.runner import cli  # noqa: PLC0415

        return cli.main()
    except errors.VsprofError as error:
        print(f"vsprof: {error}", file=sys.stderr)
        return error.exit_status
    except Exception:
        traceback.print_exc()
        print(f"vsprof: this is an error in vsprof itself; the exit status is {OWN_ERROR}", file=sys.stderr)
        return OWN_ERROR


if __name__ == "__main__":
    sys.exit(main())
