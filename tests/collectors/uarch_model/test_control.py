# SPDX-License-Identifier: GPL-2.0-or-later
"""The control socket's other side: a real Unix socket, served by a thread of the test."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vsprof.collectors.uarch_model import control
from vsprof.collectors.uarch_model.control import Control
from vsprof.terms import errors

Answer = Callable[[str], bytes]
"""From a command to what is sent back. Nothing: it hangs. What does not end as an answer should is the last that is sent."""
GONE = b"\0"


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], tuple[Path, list[str]]]]:
    """Answer one client; returns the socket's path, and the commands that came."""
    # Not in pytest's folder, whose path may be longer than a socket's can be.
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "model.ctl"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    commands: list[str] = []
    threads = []

    def answer_all(answer: Answer) -> None:
        client, _ = listener.accept()
        # A client that gave up no longer reads.
        with contextlib.suppress(ConnectionError), client, client.makefile("r", encoding="utf-8") as lines:
            for line in lines:
                commands.append(line.removesuffix("\n"))
                answered = answer(commands[-1])
                client.sendall(answered.removesuffix(GONE))
                if answered and not answered.endswith(b".\n"):
                    return

    def begin(answer: Answer) -> tuple[Path, list[str]]:
        threads.append(threading.Thread(target=answer_all, args=(answer,), daemon=True))
        threads[-1].start()
        return path, commands

    yield begin
    listener.close()
    for thread in threads:
        thread.join(5)
    folder.cleanup()


def test_a_command_is_a_line_and_its_answer_ends_with_a_dot(serve):
    path, commands = serve(lambda command: f"{command}?\nsecond line\n.\n".encode())
    asked = Control(path)
    assert asked.ask("state off") == "state off?\nsecond line\n"
    assert asked.ask("status") == "status?\nsecond line\n"
    asked.close()
    assert commands == ["state off", "status"]


def test_an_answer_may_be_empty_or_long(serve):
    long = "x" * 3_000_000
    path, _ = serve(lambda command: b".\n" if command == "none" else f"{long}\n.\n".encode())
    asked = Control(path)
    assert asked.ask("none") == ""
    assert asked.ask("window") == f"{long}\n"
    asked.close()


def test_a_dot_inside_a_line_ends_nothing(serve):
    path, _ = serve(lambda command: b"1.\n. \n..\n.\n")
    asked = Control(path)
    assert asked.ask("status") == "1.\n. \n..\n"
    asked.close()


def test_an_answer_in_json(serve):
    path, _ = serve(lambda command: b'{"state":"off"}\n.\n')
    asked = Control(path)
    assert asked.ask_json("status") == {"state": "off"}
    asked.close()


def test_what_the_plug_in_refuses_is_an_error_that_names_the_command(serve):
    path, _ = serve(lambda command: b"error: no profile was given yet\n.\n" if command == "state model" else b"ok\n.\n")
    asked = Control(path)
    with pytest.raises(errors.RunFailed, match=r"refused 'state model': no profile was given yet$"):
        asked.ask("state model")
    # The connection goes on.
    assert asked.ask("profile /x") == "ok\n"
    asked.close()


@pytest.mark.parametrize("last_words", [GONE, b"half an answer\n", b"half a line", b"error: half an error\n"])
def test_a_plug_in_that_ends_is_one_clear_error(serve, last_words):
    path, _ = serve(lambda command: last_words)
    asked = Control(path)
    with pytest.raises(errors.RunFailed, match="does not answer: it closed the connection"):
        asked.ask("status")
    with pytest.raises(errors.RunFailed, match="does not answer"):
        asked.ask("state off")
    asked.close()


def test_a_plug_in_that_hangs_is_given_up(serve, monkeypatch):
    monkeypatch.setattr(control, "ANSWER_SECONDS", 0.1)
    path, _ = serve(lambda command: b"")
    asked = Control(path)
    for _ in range(2):
        with pytest.raises(errors.RunFailed, match="does not answer"):
            asked.ask("status")
    asked.close()


def change(serve, answer: Answer, state: str) -> tuple[list[str], int]:
    """Change the state; returns the commands that came, and how often a processor was woken."""
    path, commands = serve(answer)
    asked, woken = Control(path), []
    try:
        asked.change(state, wake=lambda: woken.append(state))
    finally:
        asked.close()
    return commands, len(woken)


@pytest.mark.parametrize(("state", "steps"), [("off", ["off"]), ("count", ["off", "count"]), ("model", ["off", "model"])])
def test_a_change_goes_by_way_of_off(serve, state, steps):
    assert change(serve, lambda command: b"ok\n.\n", state) == ([f"state {step}" for step in steps], 0)


def test_a_processor_is_woken_until_the_change_is_done(serve):
    answers = iter([b"ok\n.\n", b"pending\n.\n", b"pending\n.\n", b"ok\n.\n"])
    assert change(serve, lambda command: next(answers), "model") == (["state off", *["state model"] * 3], 2)


def test_a_change_that_does_not_come_is_given_up(serve, monkeypatch):
    monkeypatch.setattr(control, "REST_SECONDS", 0.5)
    with pytest.raises(errors.RunFailed, match="refused 'state model': no processor came to rest"):
        change(serve, lambda command: b"pending\n.\n", "model")


def test_a_change_that_is_refused_is_told(serve):
    with pytest.raises(errors.RunFailed, match="refused 'state model': no profile was given yet"):
        change(serve, lambda command: b"ok\n.\n" if command == "state off" else b"error: no profile was given yet\n.\n", "model")


def test_bytes_that_are_no_text_are_no_error(serve):
    path, _ = serve(lambda command: b"\xff\xfe name\n.\n")
    asked = Control(path)
    assert asked.ask("window").endswith(" name\n")
    asked.close()


def test_nobody_listens(tmp_path):
    with pytest.raises(errors.RunFailed, match="does not answer"):
        Control(tmp_path / "none.ctl")
