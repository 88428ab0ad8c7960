# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepare the servers of an inventory for measuring, and take it back: Ansible does it, this tells how it goes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vsprof.runner import messages
from vsprof.terms import places
from vsprof.testbeds import inventory
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.emulator.machine import instance

BUILD = places.BUILD
PREPARE, TAKE_BACK = "host", "unhost"
REMOTE_FOLDER = "~/.vsprof-ansible"
"""Where Ansible puts its modules on a server while they run, in the home of whoever logs in; removed when all is taken back."""
END_SECONDS = 60
"""Ansible that was told to end tells its own processes on the servers."""

Say = Callable[[str], None]


@dataclass
class Outcome:
    """What a playbook did: changes by server, what scripts said, and what went wrong."""

    changes: dict[str, int] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def take(self, event: dict[str, Any], say: Say) -> None:
        """Take in one line of the output plug-in; see ansible/plugins/callback/vsprof.py for what there is."""
        name, task = event.get("host", ""), event.get("task", "")
        if "failed" in event:
            self.problems.append(messages.task_failed(name, task, event["failed"]))
        elif "unreachable" in event:
            self.problems.append(str(testbeds_messages.unreachable(name, event["unreachable"])))
        elif "error" in event:
            self.problems.append(event["error"])
        elif "said" in event:
            self.said += [(name, line) for line in event["said"] if line != "unchanged"]
        elif "retried" in event:
            say(f"{name}: {task}: failed, trying again")
        elif "summary" in event:
            self.changes = {host: counts["changed"] for host, counts in event["summary"].items()}
        elif not name:
            say(task)


def play(playbook: str, path: Path | None, say: Say, check: bool = False) -> Outcome:
    """Run ``PREPARE`` or ``TAKE_BACK`` on every server of the inventory ``path``; with ``check`` only say what it would take back.

    Raises ``BadInput`` without a usable inventory, and ``VsprofError`` with every reason where it did not go well.
    """
    if path is None:
        raise testbeds_messages.no_inventory()
    inventory.read(path)
    BUILD.mkdir(parents=True, exist_ok=True)
    log = BUILD / f"{playbook}.log"
    outcome = Outcome()
    command = [
        sys.executable, "-m", "ansible", "playbook", "--inventory", str(path.absolute()), str(inventory.ANSIBLE / f"{playbook}.yml"),
        "--extra-vars", json.dumps({"server_remote_folder": REMOTE_FOLDER, "server_check_only": check}),
    ]  # fmt: skip
    with instance() as place, log.open("w") as out:
        running = subprocess.Popen(
            command, env=_environment(place.folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            words = _follow(running.stdout or (), out.write, outcome, say)
        except BaseException:
            running.terminate()
            raise
        finally:
            _end(running)
    if running.returncode and not outcome.problems:
        outcome.problems.append(messages.ansible_failed(running.returncode, words))
    if outcome.problems:
        raise messages.not_done(f"`make {playbook}`", outcome.problems, log)
    return outcome


def _end(running: subprocess.Popen[str]) -> None:
    """Wait for a process that has closed its output, or was told to end; kill it where it does neither."""
    try:
        running.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


def render(playbook: str, outcome: Outcome, check: bool = False) -> str:
    """What was done, a line for each server, and below it what its scripts said."""
    done, undone = ("prepared", "nothing changed") if playbook == PREPARE else ("taken back", "nothing to take back")
    lines = []
    for name, changes in outcome.changes.items():
        if changes and check:
            lines.append(f"{name}: `vsprof {playbook}` would do this; nothing was changed")
        else:
            lines.append(f"{name}: {done}, {changes} changes" if changes else f"{name}: {undone}")
        lines += [f"  {text}" for host, text in outcome.said if host == name]
    return "\n".join(lines)


def _follow(lines: Iterable[str], keep: Callable[[str], Any], outcome: Outcome, say: Say) -> str:
    """Take in all lines; return those that are not the plug-in's: warnings, and what Ansible says when it does not start."""
    words = ""
    for line in lines:
        keep(line)
        try:
            event = json.loads(line)
        except ValueError:
            words += line
        else:
            outcome.take(event, say)
    return words


def _environment(folder: Path) -> dict[str, str]:
    return {
        **inventory.environment(),
        "ANSIBLE_STDOUT_CALLBACK": "vsprof",
        "ANSIBLE_CALLBACK_PLUGINS": str(inventory.ANSIBLE / "plugins" / "callback"),
        # What Ansible keeps of its own, the sockets of its connections among it, goes into our folder, which is removed.
        "ANSIBLE_HOME": str(folder),
        "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=10s -o BatchMode=yes",
        "ANSIBLE_REMOTE_TEMP": REMOTE_FOLDER,
    }
