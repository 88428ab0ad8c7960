# SPDX-License-Identifier: GPL-2.0-or-later
"""Remove what a killed process could not: instance folders, half-built images; on request the whole cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from vsprof.testbeds import inventory
from vsprof.testbeds.emulator import cache as artefacts
from vsprof.testbeds.emulator.machine import Instance
from vsprof.testbeds.native import Native
from vsprof.testbeds.remote import Remote


def clean(*, cache: bool) -> Iterable[Path]:
    """Remove left-overs and, with ``cache``, the lab's images and snapshots; yield each thing removed.

    Raises ``BadInput`` where somebody runs from the cache.
    """
    yield from Instance.remove_stale()
    yield from Native.remove_stale()
    with artefacts.unused() if cache else contextlib.nullcontext():
        yield from _artefacts(everything=cache)


def clean_servers(path: Path, name: str | None) -> Iterable[tuple[str, list[str]]]:
    """End what killed runs left on the servers of an inventory, or on the one of that ``name``; yield each with what was ended.

    Raises ``VsprofError`` at the first that can't be reached, or on which somebody measures.
    """
    for server in [inventory.choose(path, name).name] if name else inventory.read(path):
        yield server, Remote(inventory=path, server=server).clear()


def _artefacts(*, everything: bool) -> Iterable[Path]:
    folder = artefacts.root() / "lab"
    for path in sorted(folder.glob("*") if everything else folder.glob("*.partial")):
        if not path.is_dir():
            continue
        # A builder at work holds the lock of its artefact; wait for it rather than pull its folder away.
        with artefacts.locked(path.with_suffix("") if path.suffix == ".partial" else path):
            if path.exists():
                artefacts.remove(path)
                yield path
