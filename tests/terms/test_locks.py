# SPDX-License-Identifier: GPL-2.0-or-later
"""Who holds a lock is told; what is no lock is not waited for."""

import os
import subprocess
import sys

import pytest

from vsprof.terms import locks
from vsprof.terms.errors import BadInput

HOLDS = "import sys, pathlib; from vsprof.terms import locks; held = locks.take(pathlib.Path(sys.argv[1]), 'x'); print('held', flush=True); input()"


@pytest.fixture
def elsewhere(tmp_path):
    """The lock's path, held by another process."""
    path = tmp_path / "a.lock"
    process = subprocess.Popen([sys.executable, "-c", HOLDS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield path, process
    process.kill()
    process.communicate()


def test_who_holds_it_is_told(elsewhere):
    path, process = elsewhere
    with pytest.raises(BadInput, match=rf"the cache is in use by process {process.pid} \(.*python"):
        locks.take(path, "the cache")
    with pytest.raises(BadInput, match="in use"):
        locks.take(path, "the cache", shared=True)


def test_it_goes_with_its_process(elsewhere):
    path, process = elsewhere
    process.kill()
    process.wait()
    locks.take(path, "the cache").close()


def test_many_share_it_and_keep_others_off(tmp_path):
    path = tmp_path / "a.lock"
    first, second = (locks.take(path, "x", shared=True) for _ in range(2))
    with pytest.raises(BadInput, match=f"process {os.getpid()}"):
        locks.take(path, "x")
    first.close()
    second.close()
    locks.take(path, "x").close()


def test_a_fifo_is_not_waited_for_and_a_link_not_followed(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadInput, match="fifo is no ordinary file"):
        locks.take(tmp_path / "fifo", "x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic"):
        locks.take(tmp_path / "link", "x")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("number", locks.WITHOUT_LOCKS)
def test_a_file_system_without_locks_keeps_nobody_from_work(tmp_path, monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with locks.take(tmp_path / "a.lock", "x"):
        pass
    monkeypatch.setattr(locks.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        locks.take(tmp_path / "a.lock", "x")
