# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are whole, whenever the machine stops: the old one or the new one, and on the disk before anyone is told."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Replace ``path`` by ``write(another path)``. When this returns it is on the disk.

    Both the file and its folder are synced: without the first a crash may leave the new name with no content, without the second the
    new name may be gone. Raises what ``write`` raises, and ``OSError``; ``path`` is then as it was.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        write(partial)
        sync(partial)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk. Raises ``OSError``."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def checksum(path: Path) -> str:
    """BLAKE2b of the whole file, 32 bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
