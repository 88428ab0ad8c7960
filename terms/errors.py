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
