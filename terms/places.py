# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are: what is read, what is compiled, and where results go. In a clone of the project all of it is in the clone; once
vsprof is installed, what it reads is beside its code, what it compiles is in the user's cache, and results are in the working folder."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder of the packages, and of experiments, notebooks, roles and sources."""
IN_CLONE = (ROOT / "pyproject.toml").is_file()
IMPORTED_FROM = ROOT if IN_CLONE else ROOT.parent
"""The folder that has ``vsprof`` in it."""
CACHE_NAMED = "VSPROF_CACHE"
MIRROR_NAMED = "VSPROF_MIRROR"
"""Names the Debian mirror that the lab's image is built from."""


def cache() -> Path:
    """The cache folder: $VSPROF_CACHE, or vsprof in the user's cache folder (XDG base directories)."""
    if named := os.environ.get(CACHE_NAMED):
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "vsprof"


BUILD = ROOT / "build" if IN_CLONE else cache() / "build"
"""What is compiled on this machine, and logs. ``make clean`` removes it."""
RESULTS_NAMED = "VSPROF_RESULTS"
"""Names the folder of results; ``vsprof --results`` sets it."""
RESULTS = Path(os.environ.get(RESULTS_NAMED) or (ROOT if IN_CLONE else Path.cwd()) / "results").absolute()
PLUGINS = "VSPROF_PLUGINS"
"""Names folders of a user's own plug-ins, separated by colons; without it, ``vsprof.d`` in the working folder is taken where it is."""
EVENTS_NAMED = "VSPROF_EVENTS"
"""Names the folder of the user's own event files, in place of ~/.config/vsprof/events."""


def own_events() -> Path:
    """Where the user's own event files are: folders as in collectors/events, ``zen4/*.json``, ``common/*.json``."""
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(os.environ.get(EVENTS_NAMED) or Path(config) / "vsprof" / "events")


def own(name: str) -> list[Path]:
    """The user's own folders of that name, such as ``experiments``, ``events`` or ``workloads/traffic``."""
    named = [Path(one).absolute() for one in os.environ.get(PLUGINS, "").split(os.pathsep) if one]
    return [place for folder in named or [Path.cwd() / "vsprof.d"] if (place := folder / name).is_dir()]


def folders(name: str) -> list[Path]:
    """All folders of that name: the user's own first, then the project's."""
    return [*own(name), ROOT / name]
