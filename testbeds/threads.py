# SPDX-License-Identifier: GPL-2.0-or-later
"""The threads of a testbed's process, and where each may run."""

import re

from vsprof.testbeds.base import Testbed

_LINE = re.compile(r"^/proc/\d+/task/(?P<tid>\d+)/status:(?P<field>\w+):\t(?P<value>.*)$", re.MULTILINE)


def threads_of(host: Testbed, pid: int) -> list[tuple[int, str, tuple[int, ...]]]:
    """Each thread's id, name and allowed CPUs."""
    # One grep, and not a process for each thread: traffic is flowing when this is asked.
    listed = host.run(f"grep -sHE '^(Name|Cpus_allowed_list):' /proc/{pid}/task/*/status", check=False).stdout
    fields: dict[int, dict[str, str]] = {}
    for match in _LINE.finditer(listed):
        fields.setdefault(int(match["tid"]), {})[match["field"]] = match["value"]
    # A thread that ended meanwhile has only half of its fields.
    return [(tid, f["Name"], cpu_list(f["Cpus_allowed_list"])) for tid, f in fields.items() if len(f) == 2]


def cpu_list(text: str) -> tuple[int, ...]:
    """Read the kernel's list format: ``0,2-3`` is (0, 2, 3)."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)
