# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking ovs-vswitchd several things by one program, against a daemon that speaks as it does (lib/jsonrpc.c, lib/unixctl.c)."""

import json
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from vsprof.collectors import ovs

CAPTURED = Path(__file__).with_name("captured")
ANSWERS = {
    "dpctl/show -s": (CAPTURED / "kernel_datapath.begin").read_text().partition("--- coverage/show")[0],
    "odd": 'a "quoted" \\ backslash,\ta tab, {braces}, \u00e4, \x01 and no end of line',
    "empty": "",
    "long": "pmd thread: 1 2 3\n" * 20_000,
}


class Daemon(threading.Thread):
    """Answers as ovs-vswitchd does: with an object for each request, without an end of line, in pieces."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.asked: list[str] = []
        self._listens = socket.socket(socket.AF_UNIX)
        self._listens.settimeout(20)
        self._listens.bind(str(path))
        self._listens.listen()

    def run(self) -> None:
        connection, _ = self._listens.accept()
        with connection, self._listens:
            while request := connection.recv(4096):
                data = json.loads(request)
                question = " ".join([data["method"], *data["params"]])
                self.asked.append(question)
                if question == "exit":
                    return
                result = ANSWERS.get(question)
                answer = {
                    "error": None if result is not None else f'"{question}" is not a valid command\n',
                    "id": data["id"],
                    "result": result,
                }
                text = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
                for at in range(0, len(text), 5000):
                    connection.sendall(text[at : at + 5000])


@pytest.fixture
def ask(tmp_path):
    if not shutil.which("perl"):
        pytest.skip("needs perl, which each Debian has")
    daemon = Daemon(tmp_path / "ctl")
    daemon.start()

    def run(*questions: str) -> subprocess.CompletedProcess:
        command = ovs.asking(*questions, socket=f"{tmp_path}/ctl")
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)

    return run


def test_answers_are_printed_as_they_are_with_headings_between(ask):
    asked = ask("dpctl/show -s", "--- odd ones", "odd", "--- none", "empty", "--- long", "long")
    parts = [ANSWERS["dpctl/show -s"], "--- odd ones\n", ANSWERS["odd"] + "\n", "--- none\n", "--- long\n", ANSWERS["long"]]
    assert asked.stdout == "".join(parts)
    assert (asked.stderr, asked.returncode) == ("", 0)


def test_what_the_daemon_refuses_is_no_answer_and_hides_no_other(ask):
    asked = ask("dpif-netdev/pmd-rxq-show -secs 5", "--- then", "dpctl/show -s")
    assert asked.stdout == "--- then\n" + ANSWERS["dpctl/show -s"]
    assert asked.stderr == '"dpif-netdev/pmd-rxq-show -secs 5" is not a valid command\n'


def test_a_daemon_that_ends_and_one_that_is_not_there(ask, tmp_path):
    asked = ask("dpctl/show -s", "exit", "long")
    assert asked.stdout == ANSWERS["dpctl/show -s"]
    assert "ended before it answered exit" in asked.stderr
    assert asked.returncode != 0
    gone = subprocess.run(["bash", "-c", ovs.asking("version", socket=f"{tmp_path}/gone")], capture_output=True, text=True, check=False)
    assert "does not listen: No such file" in gone.stderr
