# SPDX-License-Identifier: GPL-2.0-or-later
"""The books of a prepared server: what counts as ours, and what is put back. The whole is tried on a server by `make test-host`."""

import base64
import importlib.util
import json
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import SimpleNamespace

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
    """The program, on a small server of folders below ``tmp_path``; what it asks other programs is in ``asked``, their answers in ``says``."""
    module = load()
    for name in ("SYSCTL", "MODULES", "UNITS", "GRUB"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
        (tmp_path / name.lower()).mkdir()
    monkeypatch.setattr(module, "HOME", tmp_path / "vsprof")
    monkeypatch.setattr(module, "BOOKS", tmp_path / "vsprof" / "host")
    monkeypatch.setattr(module, "LOCK", tmp_path / "ledger.lock")
    monkeypatch.setattr(module, "CAMPAIGN", tmp_path / "campaign.lock")
    module.BOOKS.mkdir(parents=True)
    module.asked, module.says = [], {}

    def ask(*command, may_fail=False):
        line = " ".join(command)
        module.asked.append(line)
        return next((answer for part, answer in module.says.items() if part in line), "")

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(module, "mend", lambda: None)
    monkeypatch.setattr(module, "unfinished", lambda: [])
    monkeypatch.setattr(module, "packages", lambda: {"bash"})
    module.begin()
    return module


def put(ledger, path, text, mode="0644"):
    source = ledger.BOOKS / "source"
    source.write_text(text)
    return ledger.put(str(path), mode, str(source))


def test_nothing_is_written_before_the_books_say_so(ledger, monkeypatch):
    """The disk is full when the books are written: then the file is not touched."""

    def full(entries):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger, "write", full)
    with pytest.raises(OSError, match="No space"):
        put(ledger, ledger.SYSCTL / "91.conf", "vm.nr_hugepages = 1024\n")
    assert list(ledger.SYSCTL.iterdir()) == []


def test_nothing_is_installed_before_the_books_say_so(ledger, monkeypatch):
    ledger.says["--simulate install"] = "Inst tcpdump (4.99 Debian:13 [amd64])\nInst perl [5.1] (5.2 Debian:13 [amd64])\n"
    monkeypatch.setattr(ledger, "around", lambda: {"users": [], "groups": [], "folders": []})
    noted = []
    inner = ledger.write
    monkeypatch.setattr(
        ledger, "write", lambda entries: (noted.append((len(ledger.asked), json.loads(json.dumps(entries)))), inner(entries))
    )
    assert ledger.install("tcpdump") == ["packages installed: 1"]
    installed = next(number for number, line in enumerate(ledger.asked) if "install /" in line and "simulate" not in line)
    when, entries = noted[0]
    assert when <= installed
    assert (entries["packages"], entries["upgraded"], entries["wanted"]) == (["tcpdump"], ["perl"], ["tcpdump"])


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("installed make, pkg-config", []),
        ("installed make", ["packages installed: 0"]),
        ("half-configured make, pkg-config", ["packages installed: 0"]),
        ("", ["packages installed: 0"]),
    ],
)
def test_what_our_package_needs_is_there_while_it_is_whole(ledger, monkeypatch, state, said):
    """pkg-config is there by pkgconf, which provides it: dpkg knows no package of that name."""
    monkeypatch.setattr(ledger, "around", lambda: {"users": [], "groups": [], "folders": []})
    ledger.write({**ledger.read(), "wanted": ["make", "pkg-config"]})
    ledger.says["dpkg-query --show --showformat=${db:Status-Status} ${Depends} vsprof-host"] = state
    assert ledger.install("pkg-config", "make") == said


def test_a_file_is_given_back_as_it_was_found(ledger):
    path = ledger.SYSCTL / "91.conf"
    path.write_bytes(b"an administrator's own \xff\n")
    path.chmod(0o640)
    assert put(ledger, path, "ours\n") == [f"wrote {path}"]
    assert put(ledger, path, "ours\n") == []
    assert put(ledger, path, "ours, the next version\n") == [f"wrote {path}"]
    ledger.take_back()
    assert path.read_bytes() == b"an administrator's own \xff\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_that_was_not_there_is_removed_and_ours_alone(ledger):
    put(ledger, ledger.SYSCTL / "91.conf", "ours\n")
    (ledger.SYSCTL / "own.conf").write_text("own\n")
    ledger.take_back()
    assert [path.name for path in ledger.SYSCTL.iterdir()] == ["own.conf"]


def test_a_file_that_somebody_changed_since_stays(ledger):
    path = ledger.SYSCTL / "91.conf"
    put(ledger, path, "ours\n")
    path.write_text("vm.nr_hugepages = 4096\n")
    assert f"stays: {path}, which somebody else has changed" in ledger.take_back()
    assert path.read_text() == "vm.nr_hugepages = 4096\n"


def test_what_somebody_put_in_its_place_between_two_preparations_is_what_comes_back(ledger):
    path = ledger.SYSCTL / "91.conf"
    put(ledger, path, "ours\n")
    path.write_text("an administrator's\n")
    put(ledger, path, "ours, the next version\n")
    ledger.take_back()
    assert path.read_text() == "an administrator's\n"


def test_a_way_back_that_broke_off_behind_the_purge_is_finished_by_the_next(new_users):
    """The packages are gone then; what their scripts made is not."""
    new_users.settle(new_users.write)
    said = new_users.take_back()
    assert "removes tcpdump (users) of tcpdump" in said
    assert "userdel tcpdump" in new_users.asked


def test_what_was_cut_off_while_it_was_written_is_removed(ledger, monkeypatch):
    path, inner = ledger.SYSCTL / "91.conf", Path.replace

    def cut(self, to):
        if self.name == ".91.conf.vsprof":
            raise KeyboardInterrupt
        return inner(self, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", cut)
        with pytest.raises(KeyboardInterrupt):
            put(ledger, path, "ours\n")
    assert [one.name for one in ledger.SYSCTL.iterdir()] == [".91.conf.vsprof"]
    ledger.take_back()
    assert list(ledger.SYSCTL.iterdir()) == []


def test_a_unit_that_ran_when_it_was_masked_runs_again(ledger):
    ledger.says["is-active apt-daily.timer"] = "active\n"
    (ledger.UNITS / "own.timer").symlink_to("/etc/own.timer")
    ledger.mask("apt-daily.timer", "own.timer")
    assert ledger.read()["stopped"] == ["apt-daily.timer"]
    said = ledger.take_back()
    assert "starts apt-daily.timer again" in said
    assert "systemctl start apt-daily.timer" in ledger.asked
    assert [(path.name, str(path.readlink())) for path in ledger.UNITS.iterdir()] == [("own.timer", "/etc/own.timer")]


@pytest.fixture
def knob(ledger, tmp_path, monkeypatch):
    """A kernel setting, and a file of ours that sets it."""
    monkeypatch.setattr(ledger, "wanted_settings", lambda entries: {str(tmp_path / "nr_hugepages"): "1024"})
    (tmp_path / "nr_hugepages").write_text("7\n")
    return tmp_path / "nr_hugepages"


def test_a_setting_gets_its_value_back(ledger, knob):
    assert ledger.set_all() == [f"set {knob} to 1024"]
    assert ledger.set_all() == []
    ledger.take_back()
    assert knob.read_text() == "7"


def test_a_setting_that_somebody_changed_since_stays(ledger, knob):
    ledger.set_all()
    knob.write_text("2048\n")
    assert f"stays: {knob}, which somebody else has set to 2048" in ledger.take_back()
    assert knob.read_text() == "2048\n"


def test_hugepages_of_which_only_some_came_before_it_was_cut_off_are_given_back(ledger, knob, monkeypatch):
    """Found by breaking `make host` off while the kernel was making 1024 of them."""

    def cut(self, text):
        self.write_bytes(b"833\n")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", cut)
        with pytest.raises(KeyboardInterrupt):
            ledger.set_all()
    assert f"sets {knob} to 7 as before" in ledger.take_back()
    assert knob.read_text() == "7"


def test_what_somebody_set_between_two_preparations_is_what_comes_back(ledger, knob):
    ledger.set_all()
    knob.write_text("5000\n")
    ledger.set_all()
    ledger.take_back()
    assert knob.read_text() == "5000"


def test_a_setting_that_was_noted_and_never_set_is_left(ledger, knob, monkeypatch):
    def cut(self, text):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", cut)
        with pytest.raises(KeyboardInterrupt):
            ledger.set_all()
    ledger.take_back()
    assert knob.read_text() == "7\n"


def test_apt_says_which_packages_leave(ledger, monkeypatch):
    """Those of ours that somebody asked for, or that others need, apt does not list; what it lists and is not ours stays, too."""
    entries = ledger.read()
    entries["packages"] = ["bpftrace", "gcc-14:i386", "libllvm19", "tcpdump"]
    ledger.write(entries)
    there = {"bpftrace", "gcc-14:i386", "libllvm19", "tcpdump", "postgresql-17", "own-orphan", "vsprof-host"}
    monkeypatch.setattr(ledger, "packages", lambda: there)
    ledger.says["autoremove"] = "Purg vsprof-host [3]\nPurg bpftrace [0.23]\nPurg gcc-14:i386 [14]\nPurg own-orphan [1]\n"
    ledger.says["showmanual"] = "tcpdump\nbash\n"
    ledger.says["rdepends"] = "libllvm19\nReverse Depends:\n |postgresql-17\n  postgresql-17\n"
    said = ledger.take_back()
    assert said[0] == "removes 3 packages: bpftrace gcc-14:i386 vsprof-host"
    assert "stays: package tcpdump, which somebody asked for" in said
    assert "stays: package libllvm19, which others need: postgresql-17" in said
    assert any(line.endswith("purge bpftrace gcc-14:i386 vsprof-host") for line in ledger.asked if "--simulate" not in line)


def test_a_purge_that_would_take_others_along_removes_nothing(ledger):
    ledger.says["--simulate purge"] = "Purg bpftrace [1]\nRemv nginx [1]\n"
    with pytest.raises(SystemExit, match="apt would remove nginx along"):
        ledger.purge(["bpftrace"])
    assert not any("purge" in line and "--simulate" not in line for line in ledger.asked)


@pytest.fixture
def new_users(ledger, monkeypatch):
    """An installation that broke off, after which there are users of several kinds."""
    entries = ledger.read()
    entries["packages"] = ["tcpdump"]
    entries["before"] = {"users": ["root"], "groups": ["root"], "folders": []}
    ledger.write(entries)
    ids = {"root": 0, "tcpdump": 104, "postgres": 105, "own": 1000}
    monkeypatch.setattr(ledger, "around", lambda: {"users": list(ids), "groups": list(ids), "folders": []})
    monkeypatch.setattr(ledger, "numeric_id", lambda kind, name: ids[name])
    # A person's account may have any name, one that stands in some script, too.
    monkeypatch.setattr(
        ledger, "maker", lambda name: {"tcpdump": "tcpdump", "postgres": "postgresql-common", "own": "tcpdump"}.get(name, "")
    )
    monkeypatch.setattr(ledger.pwd, "getpwall", lambda: [SimpleNamespace(pw_name="tcpdump", pw_dir="/nonexistent")])
    return ledger


def test_of_new_users_only_those_of_our_packages_are_ours(new_users):
    entries = new_users.settle(new_users.write)
    assert entries["users"] == entries["groups"] == {"tcpdump": "tcpdump"}
    assert "before" not in new_users.read()


def test_a_mere_look_changes_nothing(new_users):
    before = {path: path.read_bytes() for path in new_users.HOME.rglob("*") if path.is_file()}
    new_users.take_back("--check")
    assert {path: path.read_bytes() for path in new_users.HOME.rglob("*") if path.is_file()} == before
    assert not any(word in line for line in new_users.asked for word in ("systemctl start", "userdel", "daemon-reload"))


def test_a_folder_with_something_of_others_stays(ledger, tmp_path, monkeypatch):
    folder = tmp_path / "network"
    (folder / "if-up.d").mkdir(parents=True)
    (folder / "if-up.d" / "made").write_text("by a script of a package\n")
    entries = ledger.read()
    entries["packages"] = ["openvswitch-switch"]
    entries["folders"] = {str(folder): {"package": "openvswitch-switch", "holds": ledger.held_by(str(folder))}}
    ledger.write(entries)
    monkeypatch.setattr(ledger, "owner", lambda path: "")
    (folder / "interfaces").write_text("own\n")
    leaving = ["openvswitch-switch"]
    assert [text for text, _ in ledger.folders_back(entries, leaving)] == [f"stays: {folder}, for there is {folder}/interfaces"]
    (folder / "interfaces").unlink()
    ((_, do),) = ledger.folders_back(entries, leaving)
    do()
    assert not folder.exists()


def test_books_of_another_version_are_not_touched(ledger):
    (ledger.BOOKS / "ledger.json").write_text('{"packages": []}')
    with pytest.raises(SystemExit, match="another version of vsprof"):
        ledger.take_back()


def test_the_books_are_for_root_alone_and_gone_at_the_end(ledger):
    assert (ledger.BOOKS / "ledger.json").stat().st_mode & 0o777 == 0o600
    ledger.take_back()
    assert not ledger.HOME.exists()
    assert ledger.take_back() == []


def test_what_somebody_else_put_beside_ours_stays(ledger):
    (ledger.HOME / "notes").write_text("own\n")
    ledger.take_back()
    assert [path.name for path in ledger.HOME.iterdir()] == ["notes"]


def test_whoever_waited_while_all_was_taken_back_changes_nothing(ledger):
    ledger.take_back()
    with pytest.raises(SystemExit, match="taken back meanwhile"):
        ledger.main("mask", "apt-daily.timer")


def test_nothing_is_taken_back_while_somebody_measures(ledger):
    with ledger.CAMPAIGN.open("a") as campaign:
        assert ledger.held(campaign)
        with pytest.raises(SystemExit, match="somebody measures"):
            ledger.main("take-back")
    assert ledger.BOOKS.exists()


LOADED = load()
NAMES = st.from_regex(r"[a-z]{1,8}(\.[a-z_]{1,8}){1,3}", fullmatch=True)


@given(st.dictionaries(NAMES, st.integers(-1, 10**6).map(str)))
def test_settings_are_read_from_a_drop_in(tmp_path_factory, wanted):
    module = load()
    module.SYSCTL = tmp_path_factory.mktemp("sysctl")
    text = "# a comment = 1\n; another = 2\n\n" + "".join(f" {name} = {value} \n" for name, value in wanted.items())
    (module.SYSCTL / "1.conf").write_text(text)
    (module.SYSCTL / "others.conf").write_text("kernel.own = 1\n")
    found = module.wanted_settings({"files": {str(module.SYSCTL / "1.conf"): {}}})
    assert found == {f"/proc/sys/{name.replace('.', '/')}": value for name, value in wanted.items()}


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_content_is_known_again_and_no_other(one, other):
    def marked(data, mode="0o644"):
        return LOADED.mark(["file", base64.b64encode(data).decode(), mode])

    assert (marked(one) == marked(other)) == (one == other)
    assert marked(one) == marked(one, "0o600")


def test_a_plan_of_apt_is_read():
    said = "Inst libc6:i386 (2.41 Debian:13 [i386])\nInst perl [5.1] (5.2 Debian:13 [amd64])\nInst a:amd64 (1 x [amd64])\nConf a (1 x [amd64])\n"
    assert LOADED.simulated(said) == (["libc6:i386", "a"], ["perl"])


def test_a_name_is_found_whole(tmp_path):
    (tmp_path / "uuidd.conf").write_text("d /var/lib/libuuid 2775 uuidd uuidd -\n")
    (tmp_path / "other.conf").write_text("d /var/lib/libuuid-more 0755\nd /srv 0755\nadduser --user x\n")
    (tmp_path / "uuidd.md").write_text("/var/lib/libuuid")
    mentioning = load().mentioning
    assert mentioning("/var/lib/libuuid", tmp_path, "*.conf") == [tmp_path / "uuidd.conf"]
    assert mentioning("/var/lib/libuuid-more", tmp_path, "*.conf") == [tmp_path / "other.conf"]
    # A folder above it is named by what lies in it; a person's account is not by a word that has it inside.
    assert len(mentioning("/var/lib", tmp_path, "*.conf")) == 2
    assert mentioning("user", tmp_path, "*.conf") == []
