# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that is closed, a service manager, nohup: a command ends in order, or goes on, as its user expects."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from vsprof.runner import progress
from vsprof.runner.progress import Progress

COMMAND = """
import os, signal, sys, time
from vsprof.runner import cli

def do(asked):
    try:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
        time.sleep(0.5)
        return 0
    finally:
        for name in sys.argv[2:]:
            # While things are taken away.
            os.kill(os.getpid(), getattr(signal, name))
        time.sleep(0.1)
        print("taken away", flush=True)

cli._list = do
sys.exit(cli.main(["list"]))
"""


def _hear_all() -> None:
    # Where the tests run in the background of a shell, or under nohup, their children would ignore these.
    for one in (signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def ran(*names: str, **more) -> subprocess.CompletedProcess[str]:
    """A command that gets the first signal while it works, and the others while it ends."""
    more = {"preexec_fn": _hear_all, **more}
    return subprocess.run([sys.executable, "-c", COMMAND, *names], capture_output=True, text=True, timeout=60, check=False, **more)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_command_is_ended_in_order_and_only_once(name):
    ended = ran(name, "SIGHUP", "SIGTERM")
    assert ended.returncode == 130
    assert ended.stdout == "taken away\n"
    assert "interrupted" in ended.stderr
    assert "Traceback" not in ended.stderr


IN_A_CALLBACK = """
import os, signal, subprocess, sys, threading, time
from vsprof.runner import cli

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

def fork():
    subprocess.run(["true"], preexec_fn=lambda: None)

def do(asked):
    try:
        {"del": Held, "fork": fork}[sys.argv[1]]()
        time.sleep(20)
        return 0
    finally:
        lock = threading.Thread(target=logging_works, daemon=True)
        lock.start()
        lock.join(10)
        print("locked" if lock.is_alive() else "taken away", flush=True)

def logging_works():
    import logging
    logging.getLogger("new")

def interrupted():
    os.kill(os.getpid(), signal.SIGINT)

if sys.argv[2:]:
    os.register_at_fork(**{sys.argv[2]: interrupted})
cli._list = do
sys.exit(cli.main(["list"]))
"""


@pytest.mark.parametrize("where", [["del"], ["fork", "before"], ["fork", "after_in_parent"]], ids=" ".join)
def test_ctrl_c_in_a_callback_of_python_is_not_lost(where):
    command = [sys.executable, "-c", IN_A_CALLBACK, *where]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, preexec_fn=_hear_all)
    assert (ended.returncode, ended.stdout) == (130, "taken away\n"), ended.stderr
    assert "Traceback" not in ended.stderr


def test_another_error_in_a_callback_is_told_as_ever():
    program = "from vsprof.runner import interruption\ninterruption.heed()\nclass Bad:\n    def __del__(self): 1 / 0\nBad()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0
    assert "ZeroDivisionError" in ended.stderr


def test_under_nohup_it_goes_on():
    ended = ran("SIGHUP", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "taken away\n", "")


def test_a_terminal_that_is_gone_stops_nothing(monkeypatch):
    ours, theirs = os.openpty()
    terminal = os.fdopen(theirs, "w")
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    with Progress() as shown:
        os.close(ours)
        shown.begin(["a case"])
        shown.start_run("a case")
        shown.say("a step")
        shown.warn("something")
        shown.end_run()
    with contextlib.suppress(OSError):
        terminal.close()


ORPHAN = """
import os, signal, sys
from vsprof.testbeds import processes
ask = processes.dying_with_parent()
if (child := os.fork()) == 0:
    if (late := os.fork()) == 0:
        ask()  # in a process whose parent is not who started it: that one is gone already
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(late, 0)[1]) != -signal.SIGKILL)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_whose_parent_ended_before_it_could_ask_ends_too():
    assert subprocess.run([sys.executable, "-c", ORPHAN], timeout=60, check=False).returncode == 0
