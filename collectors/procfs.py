# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of /proc that several collectors share: per-CPU tables, and per-thread files summed by role."""

import re
from collections import defaultdict
from collections.abc import Mapping

from vsprof.terms.placement import Placement

THREADS = "/proc/[0-9]*/task/[0-9]*"
"""The folder of each thread, as a shell's pattern."""
TABLE = "^ +CPU0|^ *[A-Z0-9_]+:"
"""The lines of a per-CPU table."""
_PATH = re.compile(r"^/proc/[\w/]+:", re.MULTILINE)
_TASK = re.compile(r"^/proc/(?P<pid>\d+)/task/(?P<tid>\d+)/\w+:(?P<rest>.*)$")


def without_paths(text: str) -> str:
    """The lines that a reader recorded, without their files' paths. An earlier vsprof recorded some files without."""
    return _PATH.sub("", text)


def per_cpu_table(text: str) -> dict[str, tuple[list[int], str]]:
    """Read /proc/interrupts or /proc/softirqs: per row its count on each CPU, and the words behind the counts."""
    lines = without_paths(text).splitlines()
    if not lines or "CPU0" not in lines[0]:
        raise ValueError("not a per-CPU table: the first line names no CPU0")
    cpus = len(lines[0].split())
    table = {}
    for line in lines[1:]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        counts = [int(f) for f in fields[:cpus] if f.isdigit()]
        # ERR and MIS are one number for the whole machine, not one a CPU.
        if len(counts) == cpus:
            table[name.strip()] = (counts, " ".join(fields[cpus:]))
    return table


def gained(before: Mapping[str, list[int]], after: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """What each row of a per-CPU table gained. Raises ``ValueError`` unless both have the same rows and CPUs."""
    if {name: len(counts) for name, counts in before.items()} != {name: len(counts) for name, counts in after.items()}:
        raise ValueError("the tables of the window's two ends have other rows or CPUs")
    return {name: [new - old for old, new in zip(before[name], counts, strict=True)] for name, counts in after.items()}


def threads(text: str) -> dict[int, list[str]]:
    """Read the lines of a file that each thread has, behind their paths: each thread's lines."""
    found: dict[int, list[str]] = defaultdict(list)
    for line in text.splitlines():
        if match := _TASK.match(line):
            found[int(match["tid"])].append(match["rest"])
    return dict(found)


def by_role(before: Mapping[int, float], after: Mapping[int, float], placement: Placement) -> dict[str, float]:
    """Sum what each thread gained, by the thread's role.

    A thread that began inside the window counts from zero; one that ended inside it is lost, as procfs forgets it.
    Raises ``ValueError`` when nothing was read at the begin: totals since boot would pass for the window's.
    """
    if after and not before:
        raise ValueError("no thread was read at the window's begin")
    sums: dict[str, float] = defaultdict(float)
    for tid, value in after.items():
        sums[placement.role_of_thread(tid)] += value - before.get(tid, 0)
    return dict(sums)
