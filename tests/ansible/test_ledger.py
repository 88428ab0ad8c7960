# SPDX-License-Identifier: GPL-2.0-or-later
"""The books of a prepared server: what counts as ours, and what is put back. The whole is tried on a server by `make test-host`."""

from __future__ import annotations

import base64
import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

FILE = Path(__file__).resolve().parents[2] / "ansible/roles/server/files/ledger"


def load():
    loader = SourceFileLoader("vsprof_ledger", str(FILE))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("vsprof_ledger", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """The program, on a small server of folders: its books and the folders that roles write in lie below ``tmp_path``."""
    module = load()
    for name in ("SYSCTL", "MODULES", "UNITS", "GRUB"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
        (tmp_path / name.lower()).mkdir()
    monkeypatch.setattr(module, "WRITTEN", (module.SYSCTL, module.MODULES, module.UNITS, module.GRUB))
    monkeypatch.setattr(module, "BOOKS", tmp_path / "vsprof" / "host")
    module.BOOKS.mkdir(parents=True)
    server = {
        "packages": {"bash": "5"}, "manual": ["bash"], "users": ["root"], "homes": ["/root"], "groups": ["root"], "folders": ["/etc/ssh"],
        "programs": ["/usr/local/bin/own"],
        "active": ["apt-daily.timer", "ssh.service"], "modules": ["kvm"], "settings": {"/proc/sys/vm/nr_hugepages": "7"},
    }  # fmt: skip

    def look():
        return {**server, "files": {str(p): module.content(p) for folder in module.WRITTEN for p in module.files(folder)}}

    monkeypatch.setattr(module, "look", look)
    monkeypatch.setattr(module, "needs", lambda name: ["nf_nat", name] if name == "openvswitch" else [name])
    monkeypatch.setattr(module, "owner", lambda folder: "openvswitch-switch")
    module.server = server
    return module


def prepare(ledger):
    """What the roles do, in small."""
    (ledger.SYSCTL / "91.conf").write_text("# ours\nvm.nr_hugepages = 1024\n")
    (ledger.MODULES / "ours.conf").write_text("# ours\nkvm\nopenvswitch\n")
    mask = ledger.UNITS / "apt-daily.timer"
    mask.unlink(missing_ok=True)
    mask.symlink_to("/dev/null")
    ledger.server["packages"] = {"bash": "5", "openvswitch-switch": "3.5"}
    ledger.server["programs"] = ["/usr/local/bin/own", "/usr/local/bin/vhost-switch"]
    ledger.server["users"] = ["root", "tcpdump", "uuidd", "nobody"]
    ledger.server["homes"] = ["/root", "/nonexistent", "/var/lib/libuuid", "/"]
    ledger.server["folders"] = ["/etc/ssh", "/var/lib/openvswitch"]


def test_what_came_is_noted_and_nothing_else(ledger):
    ledger.begin()
    prepare(ledger)
    assert ledger.end() == ["noted what has changed"]
    entries = ledger.read("ledger.json")
    assert entries["packages"] == ["openvswitch-switch"]
    assert entries["programs"] == ["/usr/local/bin/vhost-switch"]
    assert (entries["users"], entries["groups"], entries["upgraded"]) == (["nobody", "tcpdump", "uuidd"], [], [])
    assert entries["settings"] == {"/proc/sys/vm/nr_hugepages": "7"}
    assert entries["modules"] == ["nf_nat", "openvswitch"]
    assert entries["stopped"] == ["apt-daily.timer"]
    # A home that is not there yet, too, but none outside of the places for such.
    assert entries["folders"] == ["/var/lib/libuuid", "/var/lib/openvswitch"]


def test_a_second_time_changes_nothing(ledger):
    ledger.begin()
    prepare(ledger)
    ledger.end()
    ledger.server["settings"] = {"/proc/sys/vm/nr_hugepages": "1024"}
    ledger.server["active"] = ["ssh.service"]
    ledger.begin()
    prepare(ledger)
    assert ledger.end() == []
    # What was found first is what is put back.
    assert ledger.read("ledger.json")["settings"] == {"/proc/sys/vm/nr_hugepages": "7"}


def test_what_others_install_between_two_preparations_is_not_ours(ledger):
    ledger.begin()
    prepare(ledger)
    ledger.end()
    ledger.server["packages"] = {**ledger.server["packages"], "nginx": "1"}
    ledger.begin()
    ledger.server["packages"] = {**ledger.server["packages"], "bpftrace": "0.23"}
    ledger.end()
    assert ledger.read("ledger.json")["packages"] == ["bpftrace", "openvswitch-switch"]


def test_a_preparation_that_broke_off_keeps_its_begin(ledger):
    ledger.begin()
    prepare(ledger)
    ledger.begin()
    ledger.end()
    assert ledger.read("ledger.json")["packages"] == ["openvswitch-switch"]


def test_an_end_without_a_begin_notes_nothing(ledger):
    assert ledger.end() == []
    assert ledger.read("ledger.json") is None


def test_books_that_an_earlier_vsprof_began_call_no_program_ours(ledger):
    ledger.begin()
    begun = ledger.read("begun.json")
    del begun["programs"]
    ledger.write("begun.json", begun)
    prepare(ledger)
    ledger.end()
    assert ledger.read("ledger.json")["programs"] == []


def test_the_books_are_for_root_alone(ledger):
    ledger.begin()
    assert (ledger.BOOKS / "begun.json").stat().st_mode & 0o777 == 0o600


def undo(ledger):
    return [note for path, entry in ledger.read("ledger.json")["files"].items() if (note := ledger.put_back(Path(path), entry))]


def test_files_are_put_back_as_they_were_found(ledger):
    (ledger.SYSCTL / "91.conf").write_bytes(b"an administrator's own \xff\n")
    (ledger.SYSCTL / "91.conf").chmod(0o640)
    (ledger.UNITS / "apt-daily.timer").symlink_to("/etc/own.timer")
    before = ledger.look()["files"]
    ledger.begin()
    prepare(ledger)
    ledger.end()
    assert ledger.look()["files"] != before
    assert undo(ledger) == []
    assert ledger.look()["files"] == before


def test_a_file_that_somebody_changed_since_stays(ledger):
    ledger.begin()
    prepare(ledger)
    ledger.end()
    (ledger.SYSCTL / "91.conf").write_text("vm.nr_hugepages = 4096\n")
    assert undo(ledger) == [f"{ledger.SYSCTL / '91.conf'} was changed by somebody else, and stays as it is"]
    assert (ledger.SYSCTL / "91.conf").read_text() == "vm.nr_hugepages = 4096\n"


def test_what_a_purge_took_along_is_not_missed(ledger):
    ledger.begin()
    (ledger.UNITS / "multi-user.target.wants").mkdir()
    (ledger.UNITS / "multi-user.target.wants" / "ovs.service").symlink_to("/usr/lib/ovs.service")
    ledger.end()
    (ledger.UNITS / "multi-user.target.wants" / "ovs.service").unlink()
    assert undo(ledger) == []


PURGE = "Purg openvswitch-switch [3.5]\nRemv {other} [1]\nConf bash (5 Debian:13 [amd64])\n"


def test_a_package_that_needs_ours_stops_the_way_back(ledger, monkeypatch):
    asked = []
    monkeypatch.setattr(ledger, "packages", lambda: {"openvswitch-switch": "3.5", "openvswitch-testcontroller": "3.5"})
    monkeypatch.setattr(
        ledger, "ask", lambda *command, may_fail=False: asked.append(command) or PURGE.format(other="openvswitch-testcontroller")
    )
    with pytest.raises(SystemExit, match="openvswitch-testcontroller came later"):
        ledger.purge(["openvswitch-switch"])
    assert len(asked) == 1
    assert "--simulate" in asked[0]


def test_only_what_came_and_is_still_there_is_purged(ledger, monkeypatch):
    asked = []
    monkeypatch.setattr(ledger, "packages", lambda: {"openvswitch-switch": "3.5", "librte-eal25:amd64": "24", "bash": "5"})
    monkeypatch.setattr(ledger, "ask", lambda *command, may_fail=False: asked.append(command) or PURGE.format(other="librte-eal25"))
    ledger.purge(["openvswitch-switch", "librte-eal25:amd64", "gone"])
    assert asked[-1][-3:] == ("purge", "librte-eal25:amd64", "openvswitch-switch")


LOADED = load()
NAMES = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8}){1,3}", fullmatch=True)


@given(st.dictionaries(NAMES, st.integers(-1, 10**6).map(str)))
def test_settings_are_read_from_a_drop_in(wanted):
    text = "# a comment = 1\n; another = 2\n\n" + "".join(f" {name} = {value} \n" for name, value in wanted.items())
    entry = {"found": None, "left": ["file", base64.b64encode(text.encode()).decode(), "0o644"]}
    found = LOADED.wanted_settings({"/etc/sysctl.d/1.conf": entry, "/etc/modules-load.d/1.conf": entry})
    assert found == {f"/proc/sys/{name.replace('.', '/')}": value for name, value in wanted.items()}


def test_a_path_is_named_whole(tmp_path):
    (tmp_path / "uuidd.conf").write_text("d /var/lib/libuuid 2775 uuidd uuidd -\n")
    (tmp_path / "other.conf").write_text("d /var/lib/libuuid-more 0755\nd /srv 0755\n")
    (tmp_path / "uuidd.md").write_text("/var/lib/libuuid")
    mentioning = load().mentioning
    assert mentioning("/var/lib/libuuid", tmp_path, "*.conf") == [tmp_path / "uuidd.conf"]
    assert mentioning("/var/lib/libuuid-more", tmp_path, "*.conf") == [tmp_path / "other.conf"]
    # A folder above it is named by what lies in it.
    assert len(mentioning("/var/lib", tmp_path, "*.conf")) == 2
