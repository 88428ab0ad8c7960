# SPDX-License-Identifier: GPL-2.0-or-later
"""Remove what a killed process could not: instance folders, half-built images; snapshots of another vsprof; on request the whole cache."""

import contextlib
from collections.abc import Iterable
from pathlib import Path

from vsprof.terms import errors
from vsprof.testbeds import inventory
from vsprof.testbeds.emulator import cache as artefacts
from vsprof.testbeds.emulator import snapshot
from vsprof.testbeds.emulator.machine import Instance
from vsprof.testbeds.native import Native
from vsprof.testbeds.remote import Remote


def clean(*, cache: bool) -> Iterable[Path]:
    """Remove left-overs and, with ``cache``, the lab's images and snapshots; yield each thing removed.

    Raises ``BadInput`` where somebody runs from the cache.
    """
    yield from Instance.remove_stale()
    yield from Native.remove_stale()
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(artefacts.unused())
            old = True
        except errors.BadInput:
            if cache:
                raise
            # Whoever runs from it may be the vsprof whose snapshots we would take for old ones.
            old = False
        yield from _artefacts(everything=cache, old=old)


def clean_servers(path: Path, name: str | None) -> Iterable[tuple[str, list[str]]]:
    """End what killed runs left on the servers of an inventory, or on the one of that ``name``; yield each with what was ended.

    Raises ``VsprofError`` at the first that can't be reached, or on which somebody measures.
    """
    for server in [inventory.choose(path, name).name] if name else inventory.read(path):
        yield server, Remote(inventory=path, server=server).clear()


def _artefacts(*, everything: bool, old: bool) -> Iterable[Path]:
    """``old``: also the snapshots of another vsprof, half a gigabyte and more each, which this one never resumes."""
    folder = artefacts.root() / "lab"
    for path in sorted(folder.glob("*")):
        if not (everything or path.suffix == ".partial" or (old and "cpus-" in path.name and snapshot.RECIPE not in path.name)):
            continue
        if not path.is_dir():
            continue
        # A builder at work holds the lock of its artefact; wait for it rather than pull its folder away.
        with artefacts.locked(path.with_suffix("") if path.suffix == ".partial" else path):
            if path.exists():
                artefacts.remove(path)
                yield path
