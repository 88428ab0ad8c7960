# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's image as one file: what comes out is what went in, and nothing else is taken for it."""

import shutil

import pytest

from vsprof.runner import cli
from vsprof.terms.errors import BadInput
from vsprof.testbeds.emulator import cache, parcel
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator.image import Image

HASH = "0123456789abcdef"


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Two machines' caches, of which the first has an image; goes from one to the other."""
    if not shutil.which("tar") or not shutil.which("unshare"):
        pytest.skip("no tar or no unshare here: no image is packed")
    monkeypatch.setattr(images, "name", lambda: HASH)
    monkeypatch.setattr(images, "get", lambda say: Image(images.path()))
    folders = {name: tmp_path / name for name in ("one", "other", "files")}
    for folder in folders.values():
        folder.mkdir()

    def go(name):
        monkeypatch.setenv("VSPROF_CACHE", str(folders[name]))

    def build(partial):
        (partial / "tree" / "usr").mkdir(parents=True)
        (partial / "tree" / "usr" / "program").write_text("a program")
        for part in images.PARTS[1:]:
            (partial / part).write_text(part)
        with (partial / "disk.raw").open("wb") as disk:
            disk.truncate(1 << 24)
            disk.seek(1 << 20)
            disk.write(b"a file system")
        (partial / "answers").mkdir()
        (partial / "answers" / "one").write_text("of this machine")

    go("one")
    cache.make(images.path(), build, images.PARTS)
    return go, folders


def test_what_comes_out_is_what_went_in(places):
    go, folders = places
    file = parcel.save(folders["files"], print)
    assert [one.name for one in folders["files"].iterdir()] == [file.name]
    go("other")
    assert parcel.load(file, print)
    assert cache.intact(images.path())
    assert images.path().is_relative_to(folders["other"])
    for part in (*images.PARTS, "tree/usr/program"):
        assert (images.path() / part).read_bytes() == (folders["one"] / "lab" / HASH / part).read_bytes()
    # Holes stay holes, and what this machine alone knows stays here.
    assert (images.path() / "disk.raw").stat().st_blocks * 512 < 1 << 22
    assert not (images.path() / "answers").exists()
    assert not parcel.load(file, print)


def test_a_damaged_file_is_refused_and_leaves_nothing(places):
    go, folders = places
    file = parcel.save(folders["files"], print)
    file.write_bytes(file.read_bytes()[:-1])
    go("other")
    with pytest.raises(BadInput, match="is not what its name says"):
        parcel.load(file, print)
    assert not images.path().exists()


def test_the_image_of_another_vsprof_is_refused(places, monkeypatch):
    file = parcel.save(places[1]["files"], print)
    monkeypatch.setattr(images, "name", lambda: "f" * 16)
    with pytest.raises(BadInput, match="save the image again with this version"):
        parcel.load(file, print)


def test_what_is_no_such_file_or_folder_is_one_error(places, capsys):
    folder = places[1]["files"]
    (folder / "some.tar.gz").write_text("")
    assert cli.main(["image", "load", str(folder / "some.tar.gz")]) == 2
    assert "no file that `vsprof image save` wrote" in capsys.readouterr().err
    assert cli.main(["image", "save", str(folder / "nowhere")]) == 2
    assert "is no folder that can be written" in capsys.readouterr().err


def test_the_command_prints_the_files_name_and_a_job_takes_it(places, capsys):
    go, folders = places
    assert cli.main(["image", "save", str(folders["files"])]) == 0
    file = capsys.readouterr().out.strip().splitlines()[-1]
    go("other")
    # The result is none; the image is there before it is looked at.
    assert cli.main(["job", str(folders["files"]), "r001", "--image", file]) == 2
    assert cache.intact(images.path())
