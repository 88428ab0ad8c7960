# SPDX-License-Identifier: GPL-2.0-or-later
"""This host as a testbed, for real: its own network and files, every process found and ended, the host left as it was found."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vsprof.terms import errors
from vsprof.testbeds.native import FOLDERS, HUGEPAGES, Native, _cgroup

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def native() -> Iterator[Native]:
    with Native() as host:
        yield host


def as_seen_from_outside() -> dict[str, object]:
    """What of the host a testbed could leave changed."""
    return {
        "hugepages": HUGEPAGES.read_text(),
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "folders": sorted(os.listdir(FOLDERS)),
        "affinity": os.sched_getaffinity(0),
    }


def test_it_is_this_kernel_with_the_labs_programs(native):
    facts = native.facts()
    assert facts["kernel"] == os.uname().release
    assert facts["os"].startswith("Debian")
    assert {"ovs", "ovs-dpdk", "dpdk", "qemu", "perf"} <= facts["versions"].keys()


def test_its_network_and_its_files_are_its_own(native):
    native.run("ip link add vsprof-try type bridge && touch /run/vsprof-try /etc/vsprof-try")
    assert not Path("/sys/class/net/vsprof-try").exists()
    assert not Path("/run/vsprof-try").exists()
    assert not Path("/etc/vsprof-try").exists()
    assert not (native.files() / "etc/vsprof-try").exists()
    assert native.run("ls /sys/class/net").stdout.split() == ["lo", "vsprof-try"]


def test_a_command_that_fails_says_what_it_printed(native):
    with pytest.raises(errors.RunFailed, match="no-such-file"):
        native.run("cat /no-such-file")
    assert native.run("exit 3", check=False).status == 3


def test_a_command_that_hangs_is_given_up(native):
    with pytest.raises(errors.RunFailed, match="no end after 1 s"):
        native.run("sleep 60", timeout=1)


def test_files_go_there_and_come_back(native, tmp_path):
    content = bytes(range(256)) * 100
    native.push(content, "/run/there and/back")
    native.pull("/run/there and/back", tmp_path)
    native.pull("/run/there and", tmp_path)
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there and" / "back").read_bytes() == content
    with pytest.raises(errors.RunFailed, match="no such file"):
        native.pull("/run/nothing", tmp_path)


def test_a_process_has_an_id_of_the_host_and_stays_on_its_cpu_until_it_is_stopped(native):
    process = native.start("sleeper", "sleep 600", cpus=[1])
    assert process.alive()
    assert os.sched_getaffinity(process.pid) == {1}
    process.stop()
    assert not process.alive()


def test_what_a_process_printed_can_be_read(native):
    process = native.start("talker", "echo well met", cpus=[0])
    deadline = time.monotonic() + 10
    while process.alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert process.log() == "well met\n"


def test_the_host_is_left_as_it_was_found():
    before = as_seen_from_outside()
    with Native() as host:
        left = host.start("left", "sleep 600", cpus=[1])
        # Even what forks away from its parent.
        host.run("setsid sleep 600 > /dev/null 2>&1 &")
        host.run("ip link add br0 type bridge")
        group = _cgroup(host._folder.name)
        assert len((group / "cgroup.procs").read_text().split()) == 2
        assert int(HUGEPAGES.read_text()) > int(before["hugepages"])
    assert not left.alive()
    assert not group.exists()
    assert as_seen_from_outside() == before


ONE = """
import time
from vsprof.testbeds.native import Native
with Native() as h:
    h.start('left', 'sleep 600', cpus=[1])
    print('up', flush=True)
    time.sleep(600)
"""
SEVERAL = """
import time
from vsprof.testbeds.native import Native
with Native() as h:
    h.room_lacking(6)
    with Native(beside=h) as other:
        for host in (h, other):
            host.start('left', 'sleep 600', cpus=[1])
        h.freeze()
        print('up', flush=True)
        time.sleep(600)
"""


@contextlib.contextmanager
def hanging(program: str = ONE) -> Iterator[subprocess.Popen[str]]:
    """Another runner, in the middle of its work; ended whatever happens, for while it lives nobody else may use this host."""
    hears = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731 - in a shell's background tests ignore it, and so would it
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, preexec_fn=hears) as runner:
        try:
            assert runner.stdout.readline() == "up\n"
            yield runner
        finally:
            runner.kill()


def gone(folders: set[str]) -> bool:
    deadline = time.monotonic() + 20
    while set(os.listdir(FOLDERS)) - folders and time.monotonic() < deadline:
        time.sleep(0.05)
    return set(os.listdir(FOLDERS)) <= folders


@pytest.mark.parametrize("program", [ONE, SEVERAL], ids=["one", "several"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_runner_that_is_killed_leaves_the_host_as_it_was_found(number, program):
    FOLDERS.mkdir(exist_ok=True)
    before = as_seen_from_outside()
    with hanging(program) as runner:
        assert as_seen_from_outside() != before
        runner.send_signal(number)
        runner.wait(20)
    assert gone(set(before["folders"]))
    assert as_seen_from_outside() == before


def test_a_keeper_that_is_killed_too_is_cleaned_up_after_by_the_next():
    FOLDERS.mkdir(exist_ok=True)
    before = as_seen_from_outside()
    with hanging():
        [folder] = [FOLDERS / name for name in set(os.listdir(FOLDERS)) - set(before["folders"])]
        os.kill(int((folder / "keeper").read_text()), signal.SIGKILL)
    assert folder.exists()
    assert Native.remove_stale() == [folder]
    assert as_seen_from_outside() == before


def test_an_ordinary_user_is_told_what_to_do(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(errors.BadInput, match="only root may: use sudo, or TESTBED=lab"), Native():
        pass
    assert "only root may" in Native.lacks()


def test_a_second_one_at_the_same_time_is_refused(native, monkeypatch):
    monkeypatch.setattr("vsprof.testbeds.native.LOCK_SECONDS", 0.2)
    with pytest.raises(errors.BadInput, match="somebody else uses this host"), Native():
        pass
    assert Native.remove_stale() == []
    assert native.run("echo still here").stdout == "still here\n"


def test_a_setting_that_the_kernel_refuses_is_said_to_be_as_it_is(monkeypatch):
    # The kernel's version is read-only even for root.
    monkeypatch.setattr("vsprof.testbeds.tuning.WANTED", (("release", "/proc/sys/kernel/osrelease", "0"),))
    with Native(tune=True) as host:
        assert any("did not take it" in finding for finding in host.findings())
        assert host.facts()["tuning"][0]["now"] == os.uname().release


def test_settings_are_written_and_put_back(monkeypatch, tmp_path):
    path = tmp_path / "nmi_watchdog"
    path.write_text("1\n")
    monkeypatch.setattr("vsprof.testbeds.tuning.WANTED", (("NMI watchdog", str(path), "0"),))
    with Native() as host:
        assert any("NMI watchdog: 1, better 0" in finding for finding in host.findings())
        assert path.read_text() == "1\n"
    with Native(tune=True) as host:
        assert path.read_text() == "0\n"
        [tuned] = [one for one in host.facts()["tuning"] if one["path"] == str(path)]
        assert (tuned["seen"], tuned["now"]) == ("1", "0")
        assert not any("NMI" in finding for finding in host.findings())
    assert path.read_text() == "1\n"
