# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host sends is unpacked where it was asked for, and nowhere else."""

import io
import tarfile
import time

import pytest

from vsprof.terms import errors
from vsprof.testbeds.ssh import Channel


@pytest.fixture
def channel(tmp_path, monkeypatch):
    """A host whose tar is ours: it sends the file ``sent``."""
    made = Channel("root@127.0.0.1", 22, tmp_path / "key", "", tmp_path)
    monkeypatch.setattr(made, "_command", lambda options, *command: ["cat", str(tmp_path / "sent")])
    return made


def archive(path, *members):
    with tarfile.open(path, "w") as packed:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, "/etc", len(content), 0o6777
            packed.addfile(info, io.BytesIO(content))


def test_files_and_folders_arrive(channel, tmp_path):
    archive(tmp_path / "sent", ("w1", tarfile.DIRTYPE, b""), ("w1/a.begin", tarfile.REGTYPE, b"12\n"))
    channel.pull("/run/w1", tmp_path / "to")
    assert (tmp_path / "to" / "w1" / "a.begin").read_text() == "12\n"
    assert (tmp_path / "to" / "w1" / "a.begin").stat().st_mode & 0o7777 == 0o644


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../a", tarfile.REGTYPE),
        ("w1/../../a", tarfile.REGTYPE),
        ("/tmp/a", tarfile.REGTYPE),
        ("w1/link", tarfile.SYMTYPE),
        ("w1/link", tarfile.LNKTYPE),
        ("w1/fifo", tarfile.FIFOTYPE),
        ("w1/device", tarfile.CHRTYPE),
    ],
)
def test_what_lies_elsewhere_or_is_no_file_is_refused_and_nothing_is_unpacked(channel, tmp_path, name, kind):
    archive(tmp_path / "sent", ("w1", tarfile.DIRTYPE, b""), ("w1/a", tarfile.REGTYPE, b"x"), (name, kind, b""))
    with pytest.raises(Exception, match="no file or folder of its own"):
        channel.pull("/run/w1", tmp_path / "to")
    assert not list((tmp_path / "to").iterdir())


def test_a_torn_archive_is_told(channel, tmp_path):
    archive(tmp_path / "sent", ("w1", tarfile.DIRTYPE, b""), ("w1/a", tarfile.REGTYPE, b"x" * 5000))
    (tmp_path / "sent").write_bytes((tmp_path / "sent").read_bytes()[:3000])
    with pytest.raises(Exception, match="what arrived is no archive"):
        channel.pull("/run/w1", tmp_path / "to")


def waits(channel, monkeypatch, seconds):
    monkeypatch.setattr(channel, "_command", lambda options, *command: ["sleep", str(seconds)])


def test_a_command_that_takes_longer_than_it_may_is_ended(channel, monkeypatch):
    waits(channel, monkeypatch, 30)
    began = time.monotonic()
    with pytest.raises(errors.RunFailed, match=r"no end after 0 s: true"):
        channel.run("true", timeout=0.3, check=True)
    assert time.monotonic() - began < 10


def test_time_in_which_an_emulator_got_no_cpu_does_not_count(channel, monkeypatch):
    waits(channel, monkeypatch, 0.8)
    began = time.monotonic()
    # One thread waits all the time, the other never.
    monkeypatch.setattr(channel, "held_up", lambda: {1: 5.0 + time.monotonic() - began, 2: 7.0})
    assert channel.run("true", timeout=0.3, check=True).status == 0


def test_what_is_sent_to_a_host_that_is_held_up_arrives_once(channel, monkeypatch):
    monkeypatch.setattr(channel, "_command", lambda options, *command: ["sh", "-c", "sleep 0.8; cat"])
    began = time.monotonic()
    monkeypatch.setattr(channel, "held_up", lambda: {1: time.monotonic() - began})
    assert channel.run("cat", timeout=0.3, check=True, stdin=b"a script").stdout == "a script"


def test_an_emulator_that_gets_its_cpu_gets_no_more_time(channel, monkeypatch):
    waits(channel, monkeypatch, 30)
    monkeypatch.setattr(channel, "held_up", lambda: {1: 5.0, 2: 7.0})
    with pytest.raises(errors.RunFailed, match="no end after"):
        channel.run("true", timeout=0.3, check=True)
