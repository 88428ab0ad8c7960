# SPDX-License-Identifier: GPL-2.0-or-later
"""The connection to a monitor that does not answer: late is an error, and Ctrl-C ends it without a word of its own."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from vsprof.terms import errors
from vsprof.testbeds.qmp import Monitor

# Another process, for its last words are what a user sees. The other side takes the command, and never answers.
INTERRUPTED = """
import logging, signal, socket, sys
from pathlib import Path
from vsprof.testbeds.qmp import Monitor

# The one complaint that is about the machine: a step took longer than 0.1 s.
logging.getLogger("asyncio").addFilter(lambda record: not record.msg.startswith("Executing"))
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
monitor = Monitor(Path(sys.argv[1]), agent=sys.argv[2] == "execute")
signal.signal(signal.SIGALRM, signal.default_int_handler)
if sys.argv[2] == "execute":
    assert monitor.connect()
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    if sys.argv[2] == "execute":
        monitor.execute("guest-ping", seconds=30)
    else:
        # The greeting never comes.
        monitor.connect()
except KeyboardInterrupt:
    print("interrupted")
server.accept()[0].close()
server.close()
monitor.close()
"""


@pytest.mark.parametrize("at", ["connect", "execute"])
def test_ctrl_c_leaves_nothing_that_complains_afterwards(tmp_path: Path, at: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-c", INTERRUPTED, str(tmp_path / "socket"), at],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interrupted\n", "")


def test_nobody_there_is_no_connection(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path / "nobody")
    assert not monitor.connect()
    with pytest.raises(errors.RunFailed, match="not connected"):
        monitor.execute("query-status")
    monitor.close()


def test_who_does_not_answer_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "qga"))
        server.listen()
        monitor = Monitor(tmp_path / "qga", agent=True, who="guest1's guest agent")
        assert monitor.connect()
        with pytest.raises(errors.RunFailed, match="guest1's guest agent did not carry out guest-ping: no answer in 1 s"):
            monitor.execute("guest-ping", seconds=1)
        server.accept()[0].close()
        monitor.close()


def test_it_is_waited_for_as_long_as_it_goes_on(tmp_path: Path) -> None:
    goes_on = iter([True, True, False])
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "qga"))
        server.listen()
        monitor = Monitor(tmp_path / "qga", agent=True)
        assert monitor.connect()
        with pytest.raises(errors.RunFailed, match="no answer"):
            monitor.execute("guest-ping", seconds=0.05, goes_on=lambda: next(goes_on))
        assert not list(goes_on)
        server.accept()[0].close()
        monitor.close()
