# SPDX-License-Identifier: GPL-2.0-or-later
"""Artefacts of the cache: whole or not there, damage found, one builder at a time."""

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.testbeds.emulator import cache

PARTS = ["disk.raw", "key"]


class Builder:
    """Builds two files, and counts how often it was asked to."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "disk.raw").write_bytes(b"disk" * 1000)
        (folder / "key").write_text("secret")


@pytest.fixture
def build():
    return Builder()


@pytest.fixture
def made(tmp_path, build):
    return cache.make(tmp_path / "image", build, PARTS)


def test_it_is_built_once(made, build):
    assert cache.make(made, build, PARTS) == made
    assert build.calls == 1
    assert (made / "key").read_text() == "secret"


def test_a_changed_byte_is_found_and_built_anew(made, build):
    (made / "disk.raw").write_bytes(b"disk" * 999 + b"disc")
    assert not cache.intact(made)
    cache.make(made, build, PARTS)
    assert build.calls == 2
    assert cache.intact(made)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: os.truncate(folder / "disk.raw", 100),
        lambda folder: (folder / "disk.raw").unlink(),
        lambda folder: (folder / "seal.json").unlink(),
        lambda folder: (folder / "seal.json").write_text("{"),
        lambda folder: (folder / "seal.json").write_text('{"disk.raw": 3}'),
        lambda folder: (folder / "seal.json").write_text("[]"),
        lambda folder: (folder / "seal.json").write_bytes(b"\xff"),
    ],
    ids=["truncated", "a file gone", "seal gone", "seal cut", "seal of another form", "seal is a list", "seal is no text"],
)
def test_damage_is_found_and_built_anew(made, build, damage):
    damage(made)
    cache.make(made, build, PARTS)
    assert build.calls == 2
    assert cache.intact(made)


def test_a_seal_that_names_nothing_is_no_seal(made):
    (made / "seal.json").write_text("{}")
    assert not cache.intact(made)


def test_a_touched_file_with_the_same_content_is_still_good(made, build):
    os.utime(made / "disk.raw", (1, 1))
    cache.make(made, build, PARTS)
    assert build.calls == 1


def test_a_file_that_is_not_sealed_may_change(made):
    (made / "log").write_text("more")
    assert cache.intact(made)


@pytest.mark.parametrize("trouble", [RuntimeError("no mirror"), KeyboardInterrupt()])
def test_a_failed_build_leaves_nothing(tmp_path, trouble):
    def fails(folder):
        (folder / "half").write_text("x")
        raise trouble

    with pytest.raises(type(trouble)):
        cache.make(tmp_path / "image", fails, PARTS)
    assert [path.name for path in tmp_path.iterdir()] == ["image.lock"]


def test_a_build_that_lacks_a_sealed_file_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="disk"):
        cache.make(tmp_path / "image", lambda folder: None, PARTS)
    assert not (tmp_path / "image").exists()


def test_what_a_killed_builder_left_is_removed_first(tmp_path, build):
    (tmp_path / "image.partial").mkdir()
    (tmp_path / "image.partial" / "half").write_text("x")
    made = cache.make(tmp_path / "image", build, PARTS)
    assert not (made / "half").exists()
    assert not (tmp_path / "image.partial").exists()


def test_two_builders_of_one_artefact_build_it_once(tmp_path, build):
    begun = threading.Event()

    def slow(folder):
        begun.set()
        build(folder)

    workers = [threading.Thread(target=cache.make, args=(tmp_path / "image", slow, PARTS)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=10)
    assert build.calls == 1


def test_the_lock_keeps_others_waiting(tmp_path):
    entered = threading.Event()

    def second():
        with cache.locked(tmp_path / "image"):
            entered.set()

    with cache.locked(tmp_path / "image"):
        worker = threading.Thread(target=second)
        worker.start()
        assert not entered.wait(0.1)
    assert entered.wait(5)
    worker.join()


BLOCK = 1 << 16


def sparse(path: Path, size: int, pieces: dict[int, bytes]) -> Path:
    with path.open("wb") as file:
        for at, data in pieces.items():
            file.seek(at)
            file.write(data)
        file.truncate(size)
    return path


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(0, 20 * BLOCK), st.binary(min_size=1, max_size=5), max_size=4))
def test_a_hole_equals_zeros(tmp_path_factory, pieces):
    folder, size = tmp_path_factory.mktemp("holes"), 21 * BLOCK
    holes = sparse(folder / "holes", size, pieces)
    zeros = folder / "zeros"
    zeros.write_bytes(holes.read_bytes())
    assert cache._checksum(holes) == cache._checksum(zeros)


def test_content_place_and_size_all_count(tmp_path):
    contents = [
        (3 * BLOCK, {}),
        (4 * BLOCK, {}),
        (3 * BLOCK, {0: b"a"}),
        (3 * BLOCK, {BLOCK: b"a"}),
        (3 * BLOCK, {0: b"b"}),
        (3 * BLOCK - 1, {0: b"a"}),
    ]
    assert len({cache._checksum(sparse(tmp_path / f"f{i}", *content)) for i, content in enumerate(contents)}) == len(contents)


def test_an_empty_file_has_a_checksum(tmp_path):
    assert cache._checksum(sparse(tmp_path / "empty", 0, {}))


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("VSPROF_CACHE", str(tmp_path))
    assert cache.root() == tmp_path
    monkeypatch.delenv("VSPROF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/xdg")
    assert cache.root() == Path("/var/xdg/vsprof")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.root() == Path.home() / ".cache" / "vsprof"
