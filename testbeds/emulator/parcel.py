# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's image as one file, to be carried to machines that must not build it, such as the nodes of a cluster.

It is a compressed archive. Its name has the hash of what the image was made of, by which a vsprof knows its own, and the file's checksum.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from vsprof.testbeds import messages
from vsprof.testbeds.emulator import cache
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator.tree import Say

NAME = re.compile(r"vsprof-lab-(?P<image>[0-9a-f]{16})-(?P<checksum>[0-9a-f]{64})\.tar\.gz")
LEFT_OUT = ("./answers", "./tree/dev/*", f"./{cache.SEAL}")
"""What is of this machine alone, and device files, which only root may make and nobody needs: the disk has its own."""
PACK_SECONDS = 1800
"""The most that packing or unpacking takes: some 3 GB."""


def save(folder: Path, say: Say) -> Path:
    """Write the image into ``folder``, built first where it is missing. Returns the file.

    Raises ``BadInput`` where that folder can't be written, and as ``images.get`` does.
    """
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise messages.no_such_folder(folder)
    image = images.get(say)
    say("packing the image into one file")
    handle, made = tempfile.mkstemp(dir=folder, prefix=".vsprof-lab-")
    os.close(handle)
    try:
        # What is already small costs most of the time: the lowest level of gzip.
        left_out = [f"--exclude={one}" for one in LEFT_OUT]
        packed = ["--file", made, "--directory", f"{image.folder}", "."]
        pack = ["tar", "--create", "--sparse", "--use-compress-program=gzip -1", *left_out, *packed]
        _run([*cache.as_root(), *pack])
        file = folder / f"vsprof-lab-{images.name()}-{_checksum(Path(made))}.tar.gz"
        return Path(made).rename(file)
    except BaseException:
        Path(made).unlink(missing_ok=True)
        raise


def load(file: Path, say: Say) -> bool:
    """Put the image of ``file`` where a lab looks for it. False where it was there already.

    Raises ``BadInput`` where the file is none, is of another vsprof, or is not what its name says.
    """
    named = NAME.fullmatch(file.name)
    if named is None or not file.is_file():
        raise messages.no_image_file(file)
    if named["image"] != images.name():
        raise messages.image_of_another(file, named["image"], images.name())
    if cache.intact(images.path()):
        return False
    say(f"unpacking {file.name}")
    if (seen := _checksum(file)) != named["checksum"]:
        raise messages.image_file_damaged(file, seen)
    cache.make(images.path(), lambda partial: _unpack(file, partial), images.PARTS)
    return True


def _unpack(file: Path, into: Path) -> None:
    _run(["tar", "--extract", "--no-same-owner", "--file", f"{file.resolve()}", "--directory", f"{into}"])


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PACK_SECONDS, check=False, stdin=subprocess.DEVNULL)
    if ran.returncode != 0:
        raise messages.build_step_failed(list(command), ran.returncode, ran.stderr or ran.stdout)


def _checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
