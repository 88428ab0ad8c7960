# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the lab's image and snapshots lie, and how a half-written or damaged one is told from a good one.

An artefact is a folder. It is made as ``<folder>.partial`` under a lock, sealed (``seal.json`` lists each file's size
and checksum) and renamed: a folder without a seal does not exist.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from vsprof.terms import locks, places

SEAL = "seal.json"
IN_USE = "in-use.lock"


def root() -> Path:
    """The cache folder, see ``places.cache``."""
    return places.cache()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold ``path``'s lock; a second builder of the same artefact waits here for the first. Freed by the kernel on a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


_held: dict[Path, IO[str]] = {}
"""By cache folder, the lock by which this process keeps it."""


def hold() -> None:
    """Keep the cache from being cleared as long as this process lives, which runs from it. Raises ``BadInput`` while it is cleared."""
    if (folder := root()) not in _held:
        folder.mkdir(parents=True, exist_ok=True)
        _held[folder] = locks.take(folder / IN_USE, f"the cache {folder}", shared=True)


@contextlib.contextmanager
def unused() -> Iterator[None]:
    """While it lasts nobody begins to use the cache. Raises ``BadInput``, with who it is, while somebody does."""
    folder = root()
    folder.mkdir(parents=True, exist_ok=True)
    with locks.take(folder / IN_USE, f"the cache {folder}"):
        yield


def make(folder: Path, build: Callable[[Path], None], sealed: list[str]) -> Path:
    """Return ``folder``, building it first by ``build(partial_folder)`` where it is missing or damaged.

    ``sealed`` names the files whose damage would spoil a measurement.
    """
    hold()
    with locked(folder):
        if intact(folder):
            return folder
        remove(folder)
        partial = folder.with_name(folder.name + ".partial")
        remove(partial)
        partial.mkdir(parents=True)
        try:
            build(partial)
            _seal(partial, sealed)
        except BaseException:
            remove(partial)
            raise
        partial.rename(folder)
    return folder


def intact(folder: Path) -> bool:
    """Whether every sealed file is as it was when sealed.

    A file whose size, inode and time of change are as sealed is trusted; any other is read and checked whole.
    """
    try:
        seals = json.loads((folder / SEAL).read_text())
        return bool(seals) and all(_is_as_sealed(folder / name, seal) for name, seal in seals.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def remove(folder: Path) -> None:
    """Delete an artefact. Parts of a tree built without root belong to sub-ids: they go through a user namespace."""
    if not folder.exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        subprocess.run([*as_root(), "rm", "-rf", "--one-file-system", str(folder)], check=True, timeout=300)


def as_root() -> list[str]:
    """The command prefix that makes a command root of its own mounts and processes, without being root outside.

    The namespaces also guarantee that no mount and no process survives the builder, however it ends.
    """
    mine = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    return mine if os.geteuid() == 0 else [*mine, "--map-root-user", "--map-auto"]


def _seal(folder: Path, names: list[str]) -> None:
    (folder / SEAL).write_text(json.dumps({name: _seal_of(folder / name) for name in names}, indent=1))


def _seal_of(path: Path) -> dict[str, object]:
    return {**_identity(path), "blake2b": _checksum(path)}


def _identity(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"size": found.st_size, "inode": found.st_ino, "changed_ns": found.st_mtime_ns}


def _is_as_sealed(path: Path, seal: dict[str, object]) -> bool:
    identity = _identity(path)
    if all(seal[key] == value for key, value in identity.items()):
        return True
    return seal["size"] == identity["size"] and seal["blake2b"] == _checksum(path)


def _checksum(path: Path) -> str:
    """BLAKE2b of the file's blocks that hold anything but zeros, each with its place.

    Holes are skipped without being read (an image is mostly holes), and a hole equals a block of zeros.
    """
    block_bytes = 1 << 16
    digest = hashlib.blake2b(digest_size=32)
    with path.open("rb") as file:
        at, end = 0, os.fstat(file.fileno()).st_size
        digest.update(str(end).encode())
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // block_bytes * block_bytes
            except OSError:  # ENXIO: nothing but a hole up to the end
                break
            file.seek(at)
            block = file.read(block_bytes)
            if block.strip(b"\0"):
                digest.update(str(at).encode() + block)
            at += block_bytes
    return digest.hexdigest()
