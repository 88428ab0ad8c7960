# SPDX-License-Identifier: GPL-2.0-or-later
"""What is told of preparing servers: by the real Ansible where a server can't be reached, else from what its output plug-in prints."""

import json

import pytest

from vsprof.runner import cli, servers
from vsprof.runner.servers import PREPARE, TAKE_BACK, Outcome


@pytest.fixture(autouse=True)
def own_build(tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "BUILD", tmp_path / "build")


def follow(*events, words=()):
    outcome, kept, said = Outcome(), [], []
    lines = [*words, *(json.dumps(event) + "\n" for event in events)]
    left = servers._follow(lines, kept.append, outcome, said.append)
    assert kept == lines
    return outcome, said, left


def test_progress_and_outcome():
    outcome, said, left = follow(
        {"task": "server : Look"},
        {"host": "one", "task": "server : Look", "changed": True},
        {"host": "one", "task": "server : Advise", "said": ["isolate CPUs"]},
        {"host": "one", "task": "server : Look", "said": ["unchanged"]},
        {"host": "one", "task": "kernel_ovs : Install", "retried": "404"},
        {"summary": {"one": {"ok": 9, "changed": 2}, "two": {"ok": 9, "changed": 0}}},
        words=["[WARNING]: something\n"],
    )
    assert said == ["server : Look", "one: kernel_ovs : Install: failed, trying again"]
    assert left == "[WARNING]: something\n"
    assert outcome.problems == []
    assert servers.render(PREPARE, outcome) == "one: prepared, 2 changes\n  isolate CPUs\ntwo: nothing changed"
    assert servers.render(TAKE_BACK, outcome) == "one: taken back, 2 changes\n  isolate CPUs\ntwo: nothing to take back"


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({"host": "one", "task": "server : Check", "failed": "need root\n"}, "one: server : Check: need root"),
        ({"host": "one", "unreachable": "no\nroute"}, "one can't be reached over SSH: no route"),
        ({"error": "the inventory has no host"}, "the inventory has no host"),
    ],
)
def test_every_problem_is_kept(event, problem):
    outcome, _, _ = follow(event)
    assert outcome.problems[0].startswith(problem)


@pytest.mark.parametrize("command", [PREPARE, TAKE_BACK])
def test_without_an_inventory_nothing_is_begun(command, capsys):
    assert cli.main([command]) == 2
    assert "no inventory: name the file that lists your servers" in capsys.readouterr().err


def test_a_server_that_can_not_be_reached_is_named_with_the_log(tmp_path, capsys):
    (tmp_path / "servers.ini").write_text("gone ansible_host=127.0.0.1 ansible_port=1 ansible_ssh_common_args='-F none'\n")
    assert cli.main([PREPARE, "--inventory", str(tmp_path / "servers.ini")]) == 1
    told = capsys.readouterr().err
    assert "gone can't be reached over SSH" in told
    assert "Connection refused" in told
    assert str(tmp_path / "build" / "host.log") in told


def test_an_option_of_another_testbed_is_refused(tmp_path, capsys):
    (tmp_path / "servers.ini").write_text("one\n")
    assert cli.main(["run", "vm2vm", "--testbed", "lab", "--inventory", str(tmp_path / "servers.ini")]) == 2
    assert "inventory belongs to the testbed remote, and 'lab' was asked for" in capsys.readouterr().err
