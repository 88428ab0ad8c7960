# SPDX-License-Identifier: GPL-2.0-or-later
"""What one program reads for several collectors, shared out among them (captured/files.*: the lab, half a second apart)."""

import os
import subprocess
from pathlib import Path
from typing import ClassVar

import pytest

from vsprof.collectors import reading
from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.context_switches import ContextSwitches
from vsprof.collectors.cpu_time import CpuTime
from vsprof.collectors.interrupts import Interrupts
from vsprof.collectors.migrations import Migrations
from vsprof.collectors.page_faults import PageFaults
from vsprof.collectors.softirqs import Softirqs
from vsprof.terms.placement import Placement, Thread

READERS = {kind.__name__: kind(None) for kind in (ContextSwitches, CpuTime, Interrupts, Migrations, PageFaults, Softirqs)}
BEGIN, END = ((Path(__file__).parent / "captured" / f"files.{end}").read_text() for end in ("begin", "end"))
PLACEMENT = Placement([Thread("rcu_preempt", 18, "guest", (2,))])


def values(name: str) -> dict[tuple[str, object], float | None]:
    ends = (reading.lines_of(READERS[name], printed) for printed in (BEGIN, END))
    numbers = type(READERS[name]).numbers(Recorded(*ends, 0.5, PLACEMENT))
    return {(one.name, one.role if one.cpu is None else one.cpu): one.value for one in numbers}


@pytest.mark.parametrize(
    ("reader", "name", "where", "value"),
    [
        ("ContextSwitches", "context_switches_voluntary", "guest", 5461 - 5444),
        ("CpuTime", "cpu_idle_seconds", 1, pytest.approx(0.78)),
        ("CpuTime", "cpu_kernel_seconds", 0, pytest.approx(0.21)),
        ("PageFaults", "faults_minor", "host-other", (332 - 330) + (610 - 402)),
        ("Migrations", "migrations", "guest", 0),
    ],
)
def test_each_collector_gets_its_own_lines(reader, name, where, value):
    assert values(reader)[name, where] == value


@pytest.mark.parametrize(("reader", "first"), [("Interrupts", "local_timer"), ("Softirqs", "hi")])
def test_a_table_comes_with_its_head(reader, first):
    assert any(name.endswith(first) and cpu == 3 for name, cpu in values(reader))


def test_lines_of_a_file_that_a_reader_does_not_want_are_not_its():
    assert {line.partition(":")[0] for line in reading.lines_of(READERS["CpuTime"], BEGIN).splitlines() if "/task/" not in line} == {
        "/proc/stat"
    }
    assert "/stat:" not in reading.lines_of(READERS["CpuTime"], BEGIN).replace("/proc/stat:", "")
    assert reading.lines_of(READERS["Softirqs"], "no path here\n") == ""


@pytest.mark.parametrize("chosen", [list(READERS), *([name] for name in READERS)], ids="+".join)
def test_the_command_prints_what_is_read(chosen):
    """On this machine, of which this process is a part."""
    readers = {name: READERS[name] for name in chosen}
    ran = subprocess.run(["bash", "-c", reading.command(readers.values())], capture_output=True, text=True, timeout=60, check=False)
    assert ran.stderr == ""
    for name, reader in readers.items():
        lines = reading.lines_of(reader, ran.stdout)
        if name != "Migrations":  # a kernel may be without
            assert lines
        if name in ("ContextSwitches", "PageFaults", "CpuTime"):
            assert f"/proc/{os.getpid()}/task/{os.getpid()}/" in lines


def test_files_are_read_once_and_in_their_order():
    class Twice(Reader):
        files: ClassVar[dict[str, str]] = {"/b": "^x", "/a": "^y"}

        @classmethod
        def numbers(cls, recorded):
            return ()

    assert reading.command([Twice(None), Twice(None)]) == "grep -sHE '^x|^y' /b /a"


def test_threads_are_booked_before_their_time_is_read():
    command = reading.command(READERS.values())
    assert command.index("/stat ") < command.index(" /proc/stat ") < command.index("/schedstat")
