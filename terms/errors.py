# SPDX-License-Identifier: GPL-2.0-or-later
"""Every error and warning that vsprof prints: the value seen, and the next move.

One function a message, so that all texts can be read (and mended) in one place. Code elsewhere raises what
these functions return; it writes no texts of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from terms.units import gib


class VsprofError(Exception):
    """Something failed; the command ends with exit status 1."""

    exit_status = 1


class BadInput(VsprofError):
    """What the user asked for can't be done as asked; exit status 2, and nothing was written."""

    exit_status = 2


class RunFailed(VsprofError):
    """One run failed; it is recorded as failed and the campaign goes on."""


class SnapshotUnusable(VsprofError):
    """The lab's snapshot is whole and yet does not resume."""


# --- What the user asked for ------------------------------------------------------------------------------------


def unknown_value(kind: str, value: object, known: Iterable[object]) -> BadInput:
    return BadInput(f"unknown {kind} {str(value)!r}: use one of {', '.join(map(str, known))}")


# --- The machine that runs the lab ------------------------------------------------------------------------------


def host_lacks(problems: list[str]) -> BadInput:
    return BadInput("this machine can't run the emulated lab:\n" + "\n".join(f"  - {p}" for p in problems))


def needs_linux_x86(seen: str) -> str:
    return f"found {seen}, need Linux x86_64: the lab emulates an x86-64 host with programs of Debian amd64"


def too_little_memory(free: int, needed: int) -> str:
    return f"{gib(free)} available, need {gib(needed)}: end other programs, or use a machine with more memory"


def too_little_disk(folder: Path, free: int, needed: int) -> str:
    return f"{gib(free)} free for {folder}, need {gib(needed)}: free some, or name another folder in VSPROF_CACHE"


def program_missing(name: str, package: str) -> str:
    return f"{name} not found: install the package {package} (on Debian and Ubuntu `make setup` does)"


def no_user_namespace(user: str, why: str) -> str:
    return (
        f"user {user!r} can't make a user namespace with sub-ids ({why}): install uidmap and give the user a range"
        f" (`sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}`), or run as root"
    )


def image_build_failed(attempts: int, log: Path, tail: str) -> VsprofError:
    return VsprofError(f"building the lab's image failed {attempts} times; the whole log is {log}, its end:\n{tail}")


def emulator_failed(words: str) -> VsprofError:
    return VsprofError(f"the lab's emulator (QEMU) ended: {words or 'it printed nothing'}")


def emulator_stuck(waiting_for: str, seconds: float, console: str) -> VsprofError:
    return VsprofError(f"waited {seconds:.0f} s for {waiting_for}; the lab's console ends with:\n{console}")


def lab_not_ready(why: str) -> VsprofError:
    return VsprofError(f"the lab booted, but is not ready to measure: {why}; `vsprof clean --cache` and try again")


def snapshot_unusable(folder: Path, why: VsprofError) -> SnapshotUnusable:
    return SnapshotUnusable(f"the snapshot {folder} did not resume ({why})")


def no_control_channel(seconds: float, words: str) -> VsprofError:
    return VsprofError(f"no SSH answer from the host in {seconds:.0f} s: {words or 'the connection was not even refused'}")


# --- A run ------------------------------------------------------------------------------------------------------


def command_timed_out(command: str, seconds: float) -> RunFailed:
    return RunFailed(f"on the testbed, no end after {seconds:.0f} s: {_short(command)}")


def command_failed(command: str, status: int, words: str) -> RunFailed:
    return RunFailed(f"on the testbed, exit status {status}: {_short(command)}: {words.strip() or 'it printed nothing'}")


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 200 else line[:200] + " …"


def monitor_failed(command: str, why: str) -> RunFailed:
    return RunFailed(f"QEMU did not carry out {command}: {why}")


def too_few_cpus(cpus: int) -> BadInput:
    return BadInput(f"the testbed has {cpus} CPU, need 2: one moves frames, one does all else; use 2 or 4 (`vsprof run --cpus 4`)")


def switch_failed(what: str, log: str) -> RunFailed:
    return RunFailed(f"the switch failed: {what}; its log ends with:\n{log or '(nothing)'}")


def endpoint_failed(name: str, what: str, words: str) -> RunFailed:
    return RunFailed(f"{name}: {what}{': ' + words.strip()[-1500:] if words.strip() else ''}")


def no_path(sender: str, receiver: str, seconds: float) -> RunFailed:
    return RunFailed(f"{sender} got no answer from {receiver} through the switch in {seconds:.0f} s: look at raw/ for the switch's log")
