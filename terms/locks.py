# SPDX-License-Identifier: GPL-2.0-or-later
"""Locks between processes of vsprof (flock(2)), which the kernel takes away with the process, and who holds one."""

import contextlib
import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import IO

from vsprof.terms import messages

TABLE = Path("/proc/locks")
WITHOUT_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def take(path: Path, what: str, *, shared: bool = False) -> IO[str]:
    """Take the lock ``path``, a file that is made where it is missing, and keep it until what this returns is closed.

    Any number of processes may hold it ``shared``, or one of them not. Raises ``BadInput`` when another process holds it otherwise: that
    ``what`` is in use, and by whom; and when ``path`` is no ordinary file; ``OSError`` when it can't be made. On a file system that has no
    locks (some network file systems) nobody is kept off.
    """
    # Neither of these may be waited for or followed: whoever else can write to the folder may have put it there.
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    held = os.fdopen(opened, "w")
    with contextlib.ExitStack() as unless_taken:
        unless_taken.callback(held.close)
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise messages.no_lock_file(path)
        try:
            fcntl.flock(opened, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise messages.in_use(what, [_described(process) for process in holders(path)]) from None
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
        unless_taken.pop_all()
    return held


def holders(path: Path) -> list[int]:
    """The processes that hold the lock ``path``, as far as the kernel lists them for this one."""
    inode, found = path.stat().st_ino, []
    for line in TABLE.read_text().splitlines():
        # "1: FLOCK  ADVISORY  WRITE 1234 fd:01:567890 0 EOF"; one that waits has "->" behind its number.
        words = line.split()
        if words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode):
            found.append(int(words[4]))
    return found


def _described(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        words = ""
    return f"process {process}{f' ({words[:120]})' if words else ''}"
