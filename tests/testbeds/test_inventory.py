# SPDX-License-Identifier: GPL-2.0-or-later
"""Which server an inventory means, and how it is reached; read by the real Ansible."""

from types import SimpleNamespace

import pytest

from vsprof.terms.errors import BadInput, VsprofError
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds import inventory, topology
from vsprof.testbeds.base import Completed
from vsprof.testbeds.guard import Guard
from vsprof.testbeds.remote import Remote, ServerChannel
from vsprof.testbeds.ssh import Shell

TWO = """\
[lab]
one ansible_host=192.0.2.1 ansible_user=root ansible_port=2222 ansible_ssh_private_key_file=~/keys/one
two

[lab:vars]
ansible_ssh_common_args=-o "ProxyJump=a b"
"""


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "servers.ini"
    path.write_text(TWO)
    return path


def test_a_server_is_reached_as_ansible_would(two, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    one = inventory.choose(two, "one")
    assert one.destination == "root@192.0.2.1"
    assert one.ssh_options() == ["-p", "2222", "-i", "/home/somebody/keys/one", "-o", "ProxyJump=a b"]
    command = ServerChannel.to(one, tmp_path)._command([], "true")
    # The user's own configuration counts here, as it does for Ansible.
    assert "-F" not in command
    assert command[-2:] == ["root@192.0.2.1", "true"]


def test_a_server_that_is_a_name_alone_is_left_to_ssh(two):
    assert inventory.choose(two, "two").destination == "two"


def test_an_inventory_in_yaml_is_one_too(tmp_path):
    (tmp_path / "servers.yaml").write_text("all: {hosts: {one: {ansible_user: root}}}\n")
    assert inventory.choose(tmp_path / "servers.yaml", None).destination == "root@one"


@pytest.mark.parametrize(
    ("name", "why"), [(None, r"lists one, two: choose the one to measure on"), ("three", r"no server 'three' in .* use one of one, two")]
)
def test_one_server_must_be_meant(two, name, why):
    with pytest.raises(BadInput, match=why):
        inventory.choose(two, name)


@pytest.mark.parametrize("text", ["", "[lab]\n", "{not: [an inventory"])
def test_an_inventory_without_a_server_is_told_of(tmp_path, text):
    (tmp_path / "servers.ini").write_text(text)
    with pytest.raises(BadInput, match="Ansible finds no server in the inventory"):
        inventory.read(tmp_path / "servers.ini")


def test_a_path_without_an_inventory_is_told_of(tmp_path):
    with pytest.raises(BadInput, match="no inventory at"):
        inventory.read(tmp_path / "servers.ini")


def test_the_testbed_needs_an_inventory():
    with pytest.raises(BadInput, match="no inventory: name the file"):
        Remote()


def test_a_server_that_does_not_answer_is_named_with_sshs_words(tmp_path):
    # Port 1 of this machine's loopback: nobody listens there.
    (tmp_path / "servers.ini").write_text("gone ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_common_args='-F none'\n")
    with (
        pytest.raises(VsprofError, match=r"gone can't be reached over SSH: .*Connection refused"),
        Remote(inventory=tmp_path / "servers.ini"),
    ):
        pass


# --- What is asked of a server before anything is done there -------------------------------------------------------


@pytest.fixture
def remote(tmp_path):
    (tmp_path / "servers.ini").write_text("one\n")
    return Remote(inventory=tmp_path / "servers.ini")


def answering(remote, monkeypatch, text):
    monkeypatch.setattr(remote, "run", lambda command: Completed(command, 0, text, ""))


def test_a_server_that_is_not_prepared_is_refused(remote, monkeypatch):
    answering(remote, monkeypatch, "64\nbare\n")
    with pytest.raises(BadInput, match=r"one has no guest image, .* run `make host"):
        remote._check()


def test_whoever_is_not_root_is_refused(remote, monkeypatch):
    answering(remote, monkeypatch, "admin\n")
    with pytest.raises(BadInput, match="logged in on one as admin, need root"):
        remote._check_root()


def test_a_server_has_the_cpus_that_it_has(remote, monkeypatch):
    said = {topology.COMMAND: "".join(f"{cpu} 0 / {cpu % 4},{cpu % 4 + 4}\n" for cpu in range(8))}
    monkeypatch.setattr(remote, "run", lambda command: Completed(command, 0, said.get(command, "8\nprepared\n"), ""))
    remote._check()
    assert remote.cpus == 8
    assert remote.plan() == CpuPlan(0, 1, (2, 3))
    assert remote.findings() == []


def test_a_second_campaign_is_kept_away(remote, monkeypatch, tmp_path):
    """Two real shells, but of this machine, and a lock of its own; what is there stays."""
    monkeypatch.setattr("vsprof.testbeds.guard.LOCK_S", 0.3)
    monkeypatch.setattr("vsprof.testbeds.remote.Guard", lambda shell, clear: Guard(shell, "true", str(tmp_path / "lock")))
    remote._channel = SimpleNamespace(shell=lambda: Shell(["bash"]))
    remote._take()
    first = remote._guard
    with pytest.raises(VsprofError, match="somebody else measures on one"):
        remote._take()
    first.close()
    remote._take()
    remote._guard.close()


def test_every_command_and_process_is_brought_into_the_namespace(remote):
    asked = []

    def run(command, timeout, check):
        asked.append(command)
        return Completed(command, 0, "4711\n", "")

    remote._channel = SimpleNamespace(run=run)
    remote._enter = ["nsenter", "--target", "7", "--net", "--mount"]
    assert remote.start("guest1", "/usr/bin/qemu -name 'a b'", cpus=[2]).pid == 4711
    remote.run("ip link show 'br0'")
    started, ran = asked
    assert started.startswith("nsenter --target 7 --net --mount bash -c ")
    assert "nsenter --target 7 --net --mount /usr/bin/qemu -name" in started
    assert ran == """nsenter --target 7 --net --mount bash -c 'ip link show '"'"'br0'"'"''"""


def test_a_testbed_that_was_never_opened_closes(remote):
    remote.close()
    remote.close()
