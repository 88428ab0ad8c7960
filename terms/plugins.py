# SPDX-License-Identifier: GPL-2.0-or-later
"""Plug-ins exist because their file exists: there is no list to edit.

A package's plug-in is a module that sets the package's marker to its class, for instance ``SWITCH = KernelOvs``. Its name
on the command line is the file's name with hyphens: ``switches/kernel_ovs.py`` is ``kernel-ovs``; names that
readers know with underscores (collectors, traffic) keep them. One that needs several files is a folder whose
``__init__.py`` sets the marker.
"""

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

from vsprof.terms import messages, places


def find(package: str, marker: str, *, hyphens: bool = False) -> dict[str, Any]:
    """All plug-ins of ``package``, the user's own among them: their names, in alphabetical order, and what their ``marker`` holds.

    One of the user's takes the place of the project's of that name.
    """
    found, room = {}, importlib.import_module(package)
    own = [str(place) for place in places.own(package.removeprefix("vsprof.").replace(".", "/"))]
    room.__path__[:0] = [place for place in own if place not in room.__path__]
    for module in sorted(pkgutil.iter_modules(room.__path__), key=lambda m: m.name):
        plugin = getattr(_imported(f"{package}.{module.name}", module.name, own), marker, None)
        if plugin is not None:
            found[module.name.replace("_", "-") if hyphens else module.name] = plugin
    return found


def _imported(name: str, file: str, own: list[str]) -> ModuleType:
    """The module; raises ``BadInput`` where it is of the user's ``own`` folders and can't be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:
        forms = (Path(place) / form for place in own for form in (f"{file}/__init__.py", f"{file}.py"))
        where = next((form for form in forms if form.is_file()), None)
        if where is None:
            raise
        raise messages.broken_plugin(where, error) from error


def one(kind: str, name: str, known: dict[str, Any]) -> Any:
    """The plug-in called ``name``; raises ``BadInput`` that lists the known ones."""
    if not isinstance(name, str) or name not in known:
        raise messages.unknown_value(kind, name, known)
    return known[name]
