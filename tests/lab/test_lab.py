# SPDX-License-Identifier: GPL-2.0-or-later
"""The emulated lab host, for real: it comes up, does as told, listens on loopback alone, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vsprof.terms import errors
from vsprof.testbeds.emulator.machine import Instance
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab() as host:
        yield host


def test_the_lab_has_what_this_kind_of_machine_lacks(lab: Lab) -> None:
    facts = lab.facts()
    assert facts["cpus"] == 4
    assert facts["hugepages_2mib"] >= 1024
    assert facts["isolated_cpus"] == "1-3"
    assert {"ovs", "ovs-dpdk", "dpdk", "qemu", "perf", "kernel"} <= facts["versions"].keys()
    for path in ("/dev/kvm", "/dev/vhost-net", "/sys/module/openvswitch"):
        assert lab.run(f"[ -e {path} ]", check=False).status == 0, path


def test_a_command_that_fails_says_what_it_printed(lab: Lab) -> None:
    with pytest.raises(errors.RunFailed, match="no-such-file"):
        lab.run("cat /no-such-file")
    assert lab.run("exit 3", check=False).status == 3


def test_a_command_that_hangs_is_given_up(lab: Lab) -> None:
    with pytest.raises(errors.RunFailed, match="no end after 1 s: sleep 60; in 1 s QEMU's ") as raised:
        lab.run("sleep 60", timeout=1)
    # Where to look: a sleeping lab has halted CPUs, one that hangs has not.
    for cpu in range(lab.cpus):
        assert re.search(rf"CPU {cpu} RIP=\w+ HLT=[01] ran for \d\.\d\d s", str(raised.value))
    assert "main loop ran for" in str(raised.value)


def test_files_go_there_and_come_back(lab: Lab, tmp_path: Path) -> None:
    content = bytes(range(256)) * 100
    lab.push(content, "/run/there and back")
    lab.pull("/run/there and back", tmp_path)
    assert (tmp_path / "there and back").read_bytes() == content


def test_a_process_stays_on_its_cpu_until_it_is_stopped(lab: Lab) -> None:
    process = lab.start("sleeper", "sleep 600", cpus=[2])
    assert process.alive()
    assert lab.run(f"taskset -cp {process.pid}").stdout.strip().endswith(": 2")
    assert lab.died([process]) is None
    process.stop()
    assert not process.alive()
    assert lab.died([process]) is process


def test_it_listens_on_loopback_alone(lab: Lab) -> None:
    """Every TCP socket in state LISTEN (0A) of the emulator is bound to 127.0.0.1 (0100007F in /proc/net/tcp)."""
    inodes = {os.readlink(fd) for fd in Path(f"/proc/{lab.machine.pid}/fd").iterdir() if fd.is_symlink()}
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
    assert listening == [f"0100007F:{lab.machine.port:04X}"]


def test_it_reaches_nothing_outside(lab: Lab) -> None:
    """The user network is restricted: not even this machine's own SSH-like ports answer from inside."""
    assert lab.run("timeout 3 bash -c '</dev/tcp/10.0.2.2/22'", check=False).status != 0


def test_two_labs_run_side_by_side(lab: Lab) -> None:
    with Lab() as other:
        other.push("other", "/run/mark")
        assert lab.run("[ -e /run/mark ]", check=False).status != 0


def test_closing_leaves_no_process_and_no_folder() -> None:
    host = Lab()
    host.open()
    pid, folder = host.machine.pid, host.machine.folder
    host.close()
    host.close()
    assert not Path(f"/proc/{pid}").exists()
    assert not folder.exists()


KILLED = """
import sys, time
from vsprof.testbeds.lab import Lab
host = Lab(); host.open()
print(host.machine.pid, host.machine.folder, flush=True)
time.sleep(600)
"""


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder where nobody else tidies up. Of a short path, because sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_a_killed_process_takes_its_emulator_along_and_the_next_one_tidies_up(temporary: Path) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-c", KILLED], env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True
    )
    assert runner.stdout is not None
    pid, folder = runner.stdout.readline().split()
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    end = time.monotonic() + 10
    while _alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _alive(pid)
    assert Path(folder).exists()
    assert Instance.remove_stale() == [Path(folder)]
    assert not Path(folder).exists()


def test_an_emulator_that_dies_is_one_clear_error() -> None:
    with Lab() as host:
        os.kill(host.machine.pid, signal.SIGKILL)
        time.sleep(0.5)
        with pytest.raises(errors.VsprofError, match="emulator"):
            host.run("true")


def _alive(pid: str) -> bool:
    """A zombie nobody has reaped yet no longer runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
