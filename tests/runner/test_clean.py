# SPDX-License-Identifier: GPL-2.0-or-later
"""Cleaning takes what killed processes left, and nothing that is in use."""

import os

import pytest

from vsprof.runner import cli
from vsprof.terms import locks
from vsprof.testbeds.emulator import cache, snapshot
from vsprof.testbeds.emulator.machine import Instance


@pytest.fixture
def lab(places):
    """A cache with an image, a half-built one, and a log."""
    folder = places / "cache" / "lab"
    for name in ("image", "other.partial"):
        (folder / name).mkdir(parents=True)
        (folder / name / "disk.raw").write_text("x")
    return folder


def killed() -> Instance:
    """An instance whose process ended without removing it: the kernel has dropped its lock."""
    instance = Instance()
    instance._lock.close()
    return instance


def test_a_stale_instance_goes_and_a_live_one_stays(places, capsys):
    live, stale = Instance(), killed()
    assert cli.main(["clean"]) == 0
    assert live.folder.exists()
    assert not stale.folder.exists()
    assert capsys.readouterr().out == f"removed {stale.folder}\n"
    live.remove()
    assert not live.folder.exists()


def test_a_half_built_image_goes_and_a_whole_one_stays(lab):
    assert cli.main(["clean"]) == 0
    assert (lab / "image" / "disk.raw").exists()
    assert not (lab / "other.partial").exists()


def test_snapshots_of_another_vsprof_go_unless_somebody_runs_from_the_cache(lab):
    mine, other = (lab / f"0123-4cpus-4096MiB-{recipe}-vms-42" for recipe in (snapshot.RECIPE, "deadbeef"))
    for folder in (mine, other):
        folder.mkdir()
    with locks.take(lab.parent / cache.IN_USE, "the cache", shared=True):
        assert cli.main(["clean"]) == 0
        assert other.exists()
    assert cli.main(["clean"]) == 0
    assert mine.exists()
    assert not other.exists()


def test_with_cache_everything_goes(lab, capsys):
    assert cli.main(["clean", "--cache"]) == 0
    assert not (lab / "image").exists()
    assert "removed" in capsys.readouterr().out


def test_cleaning_where_nothing_is_says_nothing(places, capsys):
    assert cli.main(["clean", "--cache"]) == 0
    assert capsys.readouterr().out == ""


def test_a_cache_that_somebody_runs_from_stays(lab, capsys):
    cache.hold()
    assert cli.main(["clean", "--cache"]) == 2
    assert "is in use by process" in capsys.readouterr().err
    assert (lab / "image" / "disk.raw").exists()


def test_what_others_put_into_the_temporary_folder_hangs_nobody_and_stays(places):
    os.mkfifo(places / "tmp" / f"{Instance.PREFIX}fifo")
    (places / "tmp" / f"{Instance.PREFIX}link").symlink_to(places / "cache")
    (places / "cache").mkdir()
    for name in ("locked-by-a-fifo", "just-made"):
        (places / "tmp" / f"{Instance.PREFIX}{name}").mkdir()
    os.mkfifo(places / "tmp" / f"{Instance.PREFIX}locked-by-a-fifo" / "lock")
    before = sorted((places / "tmp").iterdir())
    assert cli.main(["clean"]) == 0
    assert sorted((places / "tmp").iterdir()) == before
    assert (places / "cache").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_folder_stays(places):
    (folder := places / "tmp" / f"{Instance.PREFIX}theirs").mkdir()
    (folder / "lock").touch()
    os.chown(folder, 12345, 12345)
    assert cli.main(["clean"]) == 0
    assert folder.exists()
