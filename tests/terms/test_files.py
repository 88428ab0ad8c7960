# SPDX-License-Identifier: GPL-2.0-or-later
"""A file that is made anew is whole, or the old one."""

import hashlib

import pytest

from vsprof.terms import files


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")
    files.replace(path, lambda partial: partial.write_text("new"))
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("trouble", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("no such column")])
def test_what_fails_half_way_leaves_the_old_file_and_nothing_else(tmp_path, trouble):
    path = tmp_path / "x.json"
    path.write_text("old")

    def write(partial):
        partial.write_text("ne")
        raise trouble

    with pytest.raises(type(trouble)):
        files.replace(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_and_then_its_folder_are_on_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(files, "sync", synced.append)
    files.replace(tmp_path / "x", lambda partial: partial.write_text("x"))
    assert synced == [tmp_path / "x.partial", tmp_path]


def test_a_checksum_is_blake2b_of_all_of_it(tmp_path):
    (tmp_path / "x").write_bytes(b"ab" * 100_000)
    assert files.checksum(tmp_path / "x") == hashlib.blake2b(b"ab" * 100_000, digest_size=32).hexdigest()
