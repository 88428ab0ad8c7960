# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the options of switches and endpoints."""

from __future__ import annotations

from collections.abc import Iterable

from terms.errors import BadInput, RunFailed


def of_no_case(option: str, owners: Iterable[str]) -> BadInput:
    return BadInput(f"{option} is an option of no case here: compare one that has it ({', '.join(owners)}), or leave the option out")


def takes_no_devices(switch: str, topology: str, others: Iterable[str]) -> BadInput:
    return BadInput(f"{topology} takes a switch whose ports can be devices of DPDK, and {switch} has none such: use {' or '.join(others)}")


def nothing_returns(topology: str) -> str:
    return f"forward counts what endpoints send back, and in {topology} they send back nothing: use topology pvp"


def nothing_is_sent(topology: str) -> str:
    return f"in {topology} frames come out of a device by themselves, and endpoints send them back: use traffic forward"


def path_not_taken(endpoint: str, path: str, seen: str) -> RunFailed:
    taken = f"its driver takes the path {seen!r}" if seen else "its driver names none"
    return RunFailed(
        f"{endpoint}: asked for path {path}, and {taken}: the switch does not offer what it needs, or the processor can't do it;"
        " choose another path, or list the pair in except"
    )
