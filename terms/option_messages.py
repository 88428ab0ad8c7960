# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the options of switches and endpoints."""

from __future__ import annotations

from collections.abc import Iterable

from terms.errors import BadInput, RunFailed


def of_no_case(option: str, owners: Iterable[str]) -> BadInput:
    return BadInput(f"{option} is an option of no case here: compare one that has it ({', '.join(owners)}), or leave the option out")


def of_no_traffic(option: str, kind: str) -> BadInput:
    return BadInput(f"{option} is for traffic {kind}, and none is here: add {kind} to traffic, or leave the option out")


def factor_of_no_traffic(factor: str, kinds: Iterable[str], readers: Iterable[str]) -> BadInput:
    return BadInput(
        f"{factor} is varied, and no traffic here looks at it ({', '.join(kinds)}): its cases would all be equal;"
        f" give it one value in fixed, or add {' or '.join(readers)}"
    )


def changed_and_set(option: str) -> BadInput:
    return BadInput(f"{option} is in changes, and fixed or varied as well: a change is one from the default; take it out of fixed and vary")


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


def tx_interrupts_stay(endpoint: str, wanted: str) -> RunFailed:
    return RunFailed(f"{endpoint}: asked for tx_interrupts {wanted}, and its driver did not take that (ethtool -C tx-frames)")


def offloads_stay_on(endpoint: str, features: Iterable[str]) -> RunFailed:
    return RunFailed(f"{endpoint}: asked for offloads off, and ethtool still has {', '.join(features)} on: leave out offloads: off here")


def no_idle_states() -> str:
    return "its kernel tells of no idle states (/sys/devices/system/cpu/cpu0/cpuidle), as in most virtual machines: leave deepest_idle out"


def no_such_idle_state(deepest: str, there: Iterable[str]) -> str:
    return f"its CPUs have no idle state {deepest}, but {', '.join(there)}"


def emulated_idle_states() -> str:
    return "the emulator's CPUs have no idle states: deepest_idle needs modelled time"
