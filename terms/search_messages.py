# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of the search for no-drop and partial-drop rates."""

from __future__ import annotations

from terms import units


def trial(rate_pps: int) -> str:
    return f"trial at {units.si(rate_pps, 'packets/s')}"


def fastest() -> str:
    return "how fast the sender is"


def no_burst(name: str) -> str:
    return f"{name} can't send a given number of frames, and in modelled time the trials of a search need that: add --clock emulated"


def no_end(frames: int) -> str:
    return f"a trial of {frames} packets did not end"


def nothing_sent(rate_pps: int | None) -> str:
    return f"a trial at {rate_pps or 'any number of'} packets/s sent nothing at all"


def not_in_time(limit_s: float) -> str:
    return (
        f"the search did not come to an end within {limit_s:g} s: its bounds are as far as it got; give it more time (limit_seconds), or a "
        "wider goal (width)"
    )


def gave_up(error: object) -> str:
    return f"MLRsearch gave the search up ({error}): its bounds are as far as it got"


def fails_at_the_lowest(min_pps: int, bad: int, trials: int, ratio: float) -> str:
    return (
        f"even at the lowest rate, {min_pps} packets/s, {bad} of {trials} trials lost more than {ratio:g} of their frames: there is no "
        "such rate from there on; try a lower one (min_pps)"
    )


def carried_the_highest(max_pps: int) -> str:
    return f"the highest rate that the search may offer, {max_pps} packets/s, was carried: the limit lies above it (max_pps)"


def no_bound(which: str) -> str:
    return f"no rate was tried long enough to be a {which} bound"


def no_throughput() -> str:
    return "without a lower bound nothing is known to be carried"
