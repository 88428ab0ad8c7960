# SPDX-License-Identifier: GPL-2.0-or-later
"""The shell that keeps a server, with this machine's own bash at the other end: what it does when its runner is silent, or gone."""

import subprocess
import time
from pathlib import Path

import pytest

from vsprof.terms.errors import RunFailed
from vsprof.testbeds import guard
from vsprof.testbeds.guard import Guard
from vsprof.testbeds.ssh import Shell


@pytest.fixture
def kept(tmp_path):
    """Makes guards of one server; what they clear away is a file."""
    made: list[Guard] = []

    def make(**more: float) -> Guard:
        shell = Shell(["bash"])
        try:
            made.append(Guard(shell, f"sleep 0.2\ntouch {tmp_path}/cleared", str(tmp_path / "lock"), **more))
        except RunFailed:
            shell.close()
            raise
        return made[-1]

    yield make
    for one in made:
        one._end.set()
        one._shell.close()


def cleared(tmp_path: Path, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (tmp_path / "cleared").exists():
        time.sleep(0.02)
    return (tmp_path / "cleared").exists()


def free(tmp_path: Path) -> bool:
    return subprocess.run(["flock", "--nonblock", str(tmp_path / "lock"), "true"], check=False).returncode == 0


def test_while_the_runner_lives_nothing_is_cleared(kept, tmp_path):
    kept(silence_s=0.5, beat_s=0.1)
    assert not cleared(tmp_path, 1.5)
    assert not free(tmp_path)


def test_a_runner_that_says_good_bye_has_cleared_by_itself(kept, tmp_path):
    kept(silence_s=5).close()
    assert free(tmp_path)
    assert not cleared(tmp_path, 0.5)


def test_a_runner_that_is_cut_off_is_cleared_away(kept, tmp_path):
    kept(silence_s=0.3, beat_s=60)
    assert cleared(tmp_path, 5)


def test_a_runner_that_is_killed_is_cleared_away_at_once(kept, tmp_path):
    one = kept(silence_s=60, beat_s=60)
    one._shell._process.stdin.close()
    assert cleared(tmp_path, 5)


def test_the_lock_is_free_only_when_all_is_cleared(kept, tmp_path):
    one = kept(silence_s=60, beat_s=60)
    one._shell._process.stdin.close()
    # It waits for it, and finds the server empty.
    kept(silence_s=60, beat_s=60)
    assert (tmp_path / "cleared").exists()


def test_a_second_runner_is_refused(kept, tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "LOCK_S", 0.3)
    kept(silence_s=60)
    with pytest.raises(RunFailed):
        kept(silence_s=60)
    assert not (tmp_path / "cleared").exists()
