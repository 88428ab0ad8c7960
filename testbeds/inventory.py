# SPDX-License-Identifier: GPL-2.0-or-later
"""Ansible's inventory: which servers there are, how to reach each, and how Ansible is called."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.terms import places
from vsprof.testbeds import messages

ANSIBLE = places.ROOT / "ansible"


@dataclass(frozen=True)
class Server:
    """One host of an inventory, as Ansible's variables describe it."""

    name: str
    variables: dict[str, Any]

    @property
    def destination(self) -> str:
        """``user@host`` for SSH, or the host alone where the user is left to SSH's own configuration."""
        host, user = self.variables.get("ansible_host", self.name), self.variables.get("ansible_user")
        return f"{user}@{host}" if user else str(host)

    def ssh_options(self) -> list[str]:
        """What Ansible would give to ssh: port, key, and the inventory's own arguments."""
        given = self.variables
        options = ["-p", str(given["ansible_port"])] if "ansible_port" in given else []
        if key := given.get("ansible_ssh_private_key_file"):
            options += ["-i", str(Path(key).expanduser())]
        return [*options, *(word for name in ("common", "extra") for word in shlex.split(given.get(f"ansible_ssh_{name}_args", "")))]


def read(path: Path) -> dict[str, Server]:
    """The servers of an inventory, by name. Raises ``BadInput`` where Ansible can't read it, or finds none in it."""
    if not path.exists():
        raise messages.inventory_missing(path)
    command = [sys.executable, "-m", "ansible", "inventory", "--inventory", str(path.absolute()), "--list"]
    asked = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    try:
        listed = json.loads(asked.stdout)
    except ValueError as error:
        raise messages.inventory_unreadable(path, asked.stderr) from error
    found = listed.get("_meta", {}).get("hostvars", {})
    names = list(dict.fromkeys(host for group in listed.values() for host in group.get("hosts", [])))
    if not names:
        raise messages.inventory_unreadable(path, asked.stderr)
    return {name: Server(name, found.get(name, {})) for name in names}


def choose(path: Path, name: str | None) -> Server:
    """The server of that name; without a name, the only one. Raises ``BadInput``."""
    servers = read(path)
    if name is None and len(servers) > 1:
        raise messages.several_servers(path, servers)
    if name is not None and name not in servers:
        raise messages.no_such_server(name, path, servers)
    return servers[name or next(iter(servers))]


def environment() -> dict[str, str]:
    """The environment that Ansible is called in. It refuses to start under a locale that is not UTF-8."""
    return {**os.environ, "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8"}
