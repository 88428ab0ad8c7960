# SPDX-License-Identifier: GPL-2.0-or-later
"""Trees of other Debian releases: what tells one from another, what building one needs, and where a testbed has which."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from vsprof.terms import errors
from vsprof.testbeds import lab as labs
from vsprof.testbeds.base import RELEASES
from vsprof.testbeds.emulator import needs, releases, tree
from vsprof.testbeds.emulator.machine import SLOTS, Machine, Shape
from vsprof.testbeds.lab import Lab
from vsprof.testbeds.native import Native

OTHERS = RELEASES[1:]


@pytest.fixture
def roles(tmp_path, monkeypatch):
    """A copy of ansible/ in the place of the project's."""
    copy = shutil.copytree(tree.ANSIBLE, tmp_path / "ansible")
    monkeypatch.setattr(tree, "ANSIBLE", copy)
    return copy


def test_each_release_has_its_own_tree():
    assert len({releases.inputs_hash(release) for release in OTHERS}) == len(OTHERS)


@pytest.mark.parametrize(
    ("changed", "another"),
    [
        ("release.yml", True), ("roles/ovs_dpdk/defaults/main.yml", True), ("roles/put/tasks/image.yml", True), ("plugins/connection/tree.py", True),
        ("lab.yml", False), ("roles/guest_image/defaults/main.yml", False), ("roles/lab/tasks/main.yml", False),
    ],
)  # fmt: skip
def test_a_tree_depends_on_what_makes_it_alone(roles, changed, another):
    before = releases.inputs_hash("bookworm")
    with (roles / changed).open("a") as file:
        file.write("# changed\n")
    assert (releases.inputs_hash("bookworm") != before) is another


def test_the_roles_of_a_tree_are_those_of_its_playbook():
    [play] = yaml.safe_load((tree.ANSIBLE / "release.yml").read_text())
    assert set(play["roles"]) == {*releases.ROLES} - {"put"}


def test_every_release_has_the_names_of_dpdks_packages():
    said = yaml.safe_load((tree.ANSIBLE / "roles/ovs_dpdk/defaults/main.yml").read_text())
    assert f"default('{RELEASES[0]}')" in said["ovs_dpdk_release"]
    assert all(f"'{release}'" in said["ovs_dpdk_abi"] for release in RELEASES)


@pytest.mark.parametrize(
    ("given", "for_forky"),
    [
        ("http://mirror/debian", "http://mirror/debian"),
        ("deb http://mirror/debian trixie main", "deb http://mirror/debian forky main"),
        ("deb http://mirror/trixie trixie main", "deb http://mirror/trixie forky main"),
    ],
)
def test_a_mirror_for_one_suite_serves_another(given, for_forky):
    assert tree.mirror(given, "forky") == for_forky
    assert tree.mirror(given, "trixie") == given


@pytest.mark.parametrize(("what", "function"), [("memory", "available_memory"), ("disk", "free_disk")])
def test_too_little_of_something_is_said_before_anything_is_built(monkeypatch, tmp_path, what, function):
    monkeypatch.setenv("VSPROF_CACHE", str(tmp_path))
    monkeypatch.setattr(needs, function, lambda: 100 << 20)
    releases.path.cache_clear()
    with pytest.raises(errors.BadInput, match=rf"{what}: 0\.1 GiB.*need"):
        releases.get("bookworm", print)
    assert not list(tmp_path.glob("lab/*.partial"))
    releases.path.cache_clear()


# --- In the lab


class Attached:
    """A running lab that does all it is told."""

    def __init__(self) -> None:
        self.disks: list[tuple[Path, str]] = []
        self.image = SimpleNamespace(tree=Path("/image/tree"))

    def attach(self, disk: Path, name: str) -> None:
        self.disks.append((disk, name))


@pytest.fixture
def lab(monkeypatch, tmp_path):
    one = Lab()
    one._machine = Attached()
    one.ran = []
    one.status = 0
    monkeypatch.setattr(labs.releases, "get", lambda release, say: releases.Release(tmp_path / release, release))

    def run(command, **_):
        one.ran.append(command)
        return SimpleNamespace(status=one.status, stderr="mount: no such device")

    monkeypatch.setattr(one, "run", run)
    return one


def test_a_release_is_attached_once_and_entered_by_chroot(lab, tmp_path):
    assert [lab.enter("bookworm"), lab.enter("bookworm")] == [f"/usr/sbin/chroot {releases.PLACE}/bookworm"] * 2
    assert lab.machine.disks == [(tmp_path / "bookworm/disk.raw", "bookworm")]
    assert len(lab.ran) == 1


def test_the_labs_own_release_needs_nothing(lab):
    assert lab.enter(RELEASES[0]) == ""
    assert lab.release_lacking(RELEASES[0]) is None
    assert lab.machine.disks == []


def test_a_tree_that_is_not_mounted_fails_the_run_with_its_words(lab):
    lab.status = 1
    with pytest.raises(errors.RunFailed, match=r"bookworm.*no such device"):
        lab.enter("bookworm")


def test_files_of_a_release_are_those_of_its_tree(lab, tmp_path):
    lab.enter("bookworm")
    assert lab.file(f"{releases.PLACE}/bookworm/usr/lib/x") == tmp_path / "bookworm/tree/usr/lib/x"
    assert lab.file("/usr/lib/x") == Path("/image/tree/usr/lib/x")


def test_disks_and_cards_share_the_slots_and_cards_a_wire(monkeypatch, tmp_path):
    machine = Machine(SimpleNamespace(tree=tmp_path), Shape(), tmp_path)
    told = []
    monkeypatch.setattr(machine, "qmp", lambda command, **arguments: told.append((command, arguments)))
    machine.attach(tmp_path / "disk.raw", "bookworm")
    machine.add_card("card0", "52:54:00:76:77:01")
    machine.add_card("card1", "52:54:00:76:77:02")
    assert [arguments["bus"] for command, arguments in told if command == "device_add"] == [*SLOTS[:3]]
    assert [arguments["hubid"] for command, arguments in told if command == "netdev_add"] == [1, 1]
    machine.attach(tmp_path / "disk.raw", "forky")
    with pytest.raises(errors.RunFailed, match="card2"):
        machine.add_card("card2", "52:54:00:76:77:03")


def test_a_machine_has_as_many_disks_as_slots(monkeypatch, tmp_path):
    machine = Machine(SimpleNamespace(tree=tmp_path), Shape(), tmp_path)
    told = []
    monkeypatch.setattr(machine, "qmp", lambda command, **arguments: told.append((command, arguments)))
    for slot in SLOTS:
        machine.attach(tmp_path / "disk.raw", f"on-{slot}")
    assert [arguments["bus"] for command, arguments in told if command == "device_add"] == [*SLOTS]
    assert all(arguments["read-only"] for command, arguments in told if command == "blockdev-add")
    with pytest.raises(errors.RunFailed, match="one-more"):
        machine.attach(tmp_path / "disk.raw", "one-more")


# --- On a host that is none


def test_another_host_has_its_own_release_alone(monkeypatch):
    host = Native()
    monkeypatch.setattr(host, "run", lambda command: SimpleNamespace(stdout="trixie\n"))
    assert host.release_lacking("trixie") is None
    assert host.enter("trixie") == ""
    assert "trixie" in host.release_lacking("bookworm")
    assert "lab" in host.release_lacking("bookworm")


def test_a_release_that_the_mirror_lacks_is_said_with_the_next_move(monkeypatch, tmp_path):
    tries = []
    monkeypatch.setattr(tree.Recipe, "_try", lambda self, *_: tries.append(self.suite))
    (log := tmp_path / "build.log").write_text("E: The repository does not have a Release file.\n")
    with pytest.raises(errors.VsprofError, match=r"(?s)Debian bookworm failed 3 times.*VSPROF_MIRROR.*does not have a Release file"):
        releases.recipe("bookworm").build(tmp_path, {}, log, lambda text: None)
    assert tries == ["bookworm"] * 3
