# SPDX-License-Identifier: GPL-2.0-or-later
"""Remove what a killed process could not: instance folders, half-built images; on request the whole cache."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from testbeds.emulator import cache
from testbeds.emulator.machine import Instance
from testbeds.native import Native


def clean(*, cache: bool) -> Iterable[Path]:
    """Remove left-overs and, with ``cache``, the lab's images and snapshots; yield each thing removed."""
    yield from Instance.remove_stale()
    yield from Native.remove_stale()
    yield from _artefacts(everything=cache)


def _artefacts(*, everything: bool) -> Iterable[Path]:
    folder = cache.root() / "lab"
    for path in sorted(folder.glob("*") if everything else folder.glob("*.partial")):
        if not path.is_dir():
            continue
        # A builder at work holds the lock of its artefact; wait for it rather than pull its folder away.
        with cache.locked(path.with_suffix("") if path.suffix == ".partial" else path):
            if path.exists():
                cache.remove(path)
                yield path
