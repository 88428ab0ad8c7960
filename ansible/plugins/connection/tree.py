# SPDX-License-Identifier: GPL-2.0-or-later
"""Connection plug-in: manage a Debian tree through chroot.

ansible-core has no chroot connection (the one of community.general comes with 500 MB of other collections), so this
adds ``chroot`` to ansible-core's own local connection. ``ansible_host`` is the tree's path.
"""

import shlex
import shutil
from pathlib import Path
from typing import Any

from ansible.plugins.connection.local import Connection as LocalConnection

DOCUMENTATION = """
    name: tree
    short_description: manage a directory tree through chroot
    description: runs each command by chroot in the folder named by ansible_host, and copies files into it.
    options:
      pipelining:
        description: send modules over standard input, without a temporary file
        default: true
        type: boolean
        vars: [{name: ansible_pipelining}]
"""


class Connection(LocalConnection):
    """A chroot into ``ansible_host``; needs root, or root of a user namespace."""

    transport = "tree"
    has_pipelining = True

    @property
    def _tree(self) -> Path:
        return Path(self._play_context.remote_addr)

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        # A clean environment: the builder's HOME, LANG or TMPDIR need not exist in the tree.
        clean = "env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive"
        inside = f"chroot {shlex.quote(str(self._tree))} {clean} /bin/sh -c {shlex.quote(cmd)}"
        return super().exec_command(inside, in_data=in_data, sudoable=sudoable)

    def put_file(self, in_path: str, out_path: str) -> Any:
        shutil.copyfile(in_path, self._inside(out_path))

    def fetch_file(self, in_path: str, out_path: str) -> Any:
        shutil.copyfile(self._inside(in_path), out_path)

    def _inside(self, path: str) -> Path:
        return self._tree / path.lstrip("/")
