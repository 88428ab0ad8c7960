# SPDX-License-Identifier: GPL-2.0-or-later
"""Draw one figure of one result, or of one validation: python -m vsprof.analysis.figures FIGURE RUN IMAGE.png"""

import sys
from pathlib import Path

from vsprof.analysis import explain_validation, figures, load, validation
from vsprof.terms.errors import VsprofError


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    name, run, image = arguments
    try:
        figures.named(name, [*figures.names(), *figures.names(of_validation=True)])
        if name.startswith("validation_"):
            found = validation.load_time(run) if name == "validation_times" else validation.load(run)
            shown = explain_validation.of(found).show(name)
        else:
            shown = figures.show(load.load(run), name)
    except VsprofError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    if isinstance(shown, figures.NotShown):
        print(shown.text, file=sys.stderr)
        return 1
    Path(image).write_bytes(figures.png(shown.figure))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
