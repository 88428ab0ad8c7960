# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of vhost-switch."""

from __future__ import annotations

from terms.errors import BadInput, RunFailed


def not_installed(path: str) -> str:
    return (
        f"this testbed has no {path}: on a server `make host` installs it; the lab's image has it once it is built anew"
        " (`build/venv/bin/vsprof clean --cache`)"
    )


def no_such_file(variable: str, path: str) -> str:
    return f"{variable} names {path}, which is no file: build it (`make -C dataplane`), or unset the variable"


def zero_copy_needs_own_rings() -> BadInput:
    return BadInput("dequeue zero-copy takes vhost-switch's own rings, and rings is librte: use rings own, or list the pair in except")


def joins_by_wire() -> RunFailed:
    return RunFailed("vhost-switch joins two ports whatever the addresses only with forward wire: fix `forward: wire`")


def not_running() -> str:
    return "no vhost-switch runs here: it counts what that switch does, and no other"
