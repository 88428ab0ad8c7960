# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages name commands as a clone has them, `make doctor`. Where vsprof is installed without its Makefile they are its own."""

import re

from vsprof.runner import experiment
from vsprof.terms import places

_COMMAND = re.compile(r"`make (?P<target>[a-z0-9-]+)(?P<variables>(?: [A-Z]+=[^ `]+)*)`")
_SAME = ("clean", "doctor", "events", "host", "notebook", "report", "show", "unhost")


def here(text: str) -> str:
    """The text with commands that can be typed here. A target that is for a clone alone stays as it is."""
    return text if places.IN_CLONE else _COMMAND.sub(_own, text)


def _own(found: re.Match[str]) -> str:
    target = found["target"].removeprefix("profile-")
    if target in _SAME:
        words = [target]
    elif target == "resume":
        words = ["run", "--resume"]
    elif target in experiment.names():
        words = ["run", target]
    else:
        return found[0]
    for variable in found["variables"].split():
        name, value = variable.split("=", 1)
        words += [value] if name == "RUN" else [f"--{name.lower()}", value]
    return f"`vsprof {' '.join(words)}`"
