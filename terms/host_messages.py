# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of servers: inventories, preparing and taking back, and measuring there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from terms.errors import BadInput, RunFailed, VsprofError

PAGE = "docs/testbeds/remote.md"


def no_inventory() -> BadInput:
    return BadInput(f"no inventory: name the file that lists your servers (INVENTORY=servers.ini, or --inventory); {PAGE} shows one")


def inventory_missing(path: Path) -> BadInput:
    return BadInput(f"no inventory at {path}: give the path of a file in Ansible's form; {PAGE} shows one")


def inventory_unreadable(path: Path, why: str) -> BadInput:
    return BadInput(f"Ansible finds no server in the inventory {path}: {_line(why) or 'it lists none'}; {PAGE} shows one")


def no_such_server(name: str, path: Path, known: Iterable[str]) -> BadInput:
    return BadInput(f"no server {name!r} in {path}: use one of {', '.join(known)}")


def several_servers(path: Path, known: Iterable[str]) -> BadInput:
    return BadInput(f"{path} lists {', '.join(known)}: choose the one to measure on (SERVER=, or --server)")


def not_of_this_testbed(option: str, testbed: str, owner: str) -> BadInput:
    return BadInput(f"{option} belongs to the testbed {owner}, and {testbed!r} was asked for: leave out TESTBED, or {option}")


def unreachable(name: str, why: str) -> VsprofError:
    return VsprofError(
        f"{name} can't be reached over SSH: {_line(why)}; try `ssh` yourself, then mend the inventory's ansible_host, _port, _user"
    )


def not_done(what: str, reasons: Iterable[str], log: Path) -> VsprofError:
    return VsprofError(
        f"{what} did not go well; mend it and call again, what is done stays done:\n{_list(reasons)}\nthe whole log is {log}"
    )


def task_failed(name: str, task: str, why: str) -> str:
    return f"{name}: {task}: {why.strip()[-800:]}"


def ansible_failed(status: int, words: str) -> str:
    return f"Ansible ended with exit status {status}: {words.strip()[-800:] or 'it printed nothing'}"


def not_root(name: str, user: str) -> BadInput:
    return BadInput(f"logged in on {name} as {user}, need root to measure there: set ansible_user=root in the inventory")


def not_prepared(name: str) -> BadInput:
    return BadInput(f"{name} has no guest image, so it is not prepared: run `make host INVENTORY=…` first")


def in_use(name: str) -> VsprofError:
    return VsprofError(f"somebody else measures on {name} at this moment: wait for its end, two campaigns would disturb each other")


def not_opened(name: str, words: str) -> RunFailed:
    return RunFailed(f"the namespace for a run could not be made on {name}: {_line(words) or 'it printed nothing'}; is it rebooting?")


def kvm_not_here(seen: str) -> BadInput:
    return BadInput(f"ACCEL=kvm can't work on this machine: {seen}; leave ACCEL out, the lab is emulated then")


def _list(reasons: Iterable[str]) -> str:
    return "\n".join(f"  - {reason}" for reason in reasons)


def _line(words: str) -> str:
    return " ".join(words.split())[-600:]
