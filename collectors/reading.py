# SPDX-License-Identifier: GPL-2.0-or-later
"""One program reads what all readers of a window want, and each of them gets its lines. In an emulated host a program's start takes a tenth
of a second, and a walk over the folders of all threads takes as long again."""

import fnmatch
import re
import shlex
from collections.abc import Iterable

from vsprof.collectors.base import Reader


def command(readers: Iterable[Reader]) -> str:
    """A shell command that prints the lines that any of ``readers`` wants, each behind its file's path. Files are read in the order in
    which they are named. One that is gone, as those of a thread that ended, is no error."""
    wanted = [pair for reader in readers for pair in reader.files.items()]
    files, lines = (dict.fromkeys(column) for column in zip(*wanted, strict=True))
    return f"grep -sHE {shlex.quote('|'.join(lines))} {' '.join(files)}"


def lines_of(reader: Reader, printed: str) -> str:
    """Of what the command printed for several readers, the lines of one."""
    wanted = [(re.compile(fnmatch.translate(files)), re.compile(lines)) for files, lines in reader.files.items()]
    return "".join(f"{line}\n" for line in printed.splitlines() if _is_wanted(line, wanted))


def _is_wanted(line: str, wanted: Iterable[tuple[re.Pattern[str], re.Pattern[str]]]) -> bool:
    path, found, content = line.partition(":")
    return bool(found) and any(files.match(path) and lines.search(content) for files, lines in wanted)
