# SPDX-License-Identifier: GPL-2.0-or-later
"""What code processes have mapped, and whose threads are: from what a host prints."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.collectors.uarch_model.test_symbols import MAPS
from vsprof.collectors.uarch_model import processes
from vsprof.collectors.uarch_model.processes import UNKNOWN, Mapped, Processes


def test_maps_and_threads_are_read():
    read = Processes(MAPS)
    assert read.maps[1] == [Mapped(0x55D0C0001000, 0x55D0C0002000, 0x1000, "/usr/sbin/init")]
    assert [one.path for one in read.maps[652]] == ["/usr/lib/librte_vhost.so.25.0", "", "[vdso]", "/opt/my programs/x (deleted)"]
    assert [read.of_thread(thread) for thread in (1, 652, 660, 661)] == [1, 652, 652, UNKNOWN]


def test_no_process_is_no_error():
    read = Processes("---\n")
    assert read.maps == {}
    assert read.part(0x1000, 1) is None


def test_what_is_no_list_of_processes_is_refused():
    with pytest.raises(ValueError):  # noqa: PT011
        Processes("grep: /proc/1/maps: no such file\n")


def test_an_address_is_the_own_processs_before_any_others():
    both = "/proc/1/maps:1000-3000 r-xp 00000000 fe:00 1 /one\n/proc/2/maps:2000-4000 r-xp 00000000 fe:00 2 /two\n---\n"
    read = Processes(both)
    asked = [(0x1FFF, 1), (0x2000, 1), (0x2000, 2), (0x1000, 2), (0x3FFF, 1), (0x2000, UNKNOWN), (0x4000, 2)]
    # Twice: the second time they are known.
    for _ in range(2):
        found = [part and part.path for part in (read.part(*one) for one in asked)]
        assert found == ["/one", "/one", "/two", "/one", "/two", "/one", None]


def test_the_command_prints_what_is_read():
    """On this machine, of which this process is a part."""
    printed = subprocess.run(["sh", "-c", processes.LIST], capture_output=True, text=True, timeout=60, check=False).stdout
    read = Processes(printed)
    assert any(Path(one.path).name.startswith("libc") for one in read.maps[os.getpid()])
    assert read.of_thread(os.getpid()) == os.getpid()
