# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of a validation of the processor model: when it can't be read, and what its numbers do not mean."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from pathlib import Path

from terms.errors import BadInput


def no_validation(path: Path, target: str) -> BadInput:
    return BadInput(f"{path} is not there: `make {target}` writes build/bench/{path.name}; one is kept in docs/reference")


def unreadable(path: Path, why: object) -> BadInput:
    return BadInput(f"{path} can't be read ({why}): name a validation.json, or the folder that has one")


def bad_validation(path: Path, key: str, why: str, seen: object, more: int, target: str) -> BadInput:
    others = f" (and {more} more like it)" if more else ""
    return BadInput(
        f"{path} is no validation: {key or 'the whole'}: {why} (found {reprlib.repr(seen)}){others}; `make {target}` writes it anew"
    )


def bad_interval() -> str:
    return "an interval needs low and high, and its median between them"


def not_run(part: str, target: str = "validate-model") -> str:
    return f"the part `{part}` was not run (`make {target}` runs all parts)"


def empty(part: str) -> str:
    return f"the part `{part}` ended without a number"


def left_out(why: object) -> str:
    return f"left out: {why}"


def not_natively(why: object) -> str:
    return f"does not run natively: {why}"


def not_counted_here() -> str:
    return "no event of it was counted by this processor (too few hugepages, or perf refused)"


def no_hardware(why: str) -> str:
    return (
        f"No number of the model was held against a processor's, for {why}. That the model does what its profile says is all that is "
        "shown: not that the profile is right, and nothing of prefetchers (they were off), of overlap, or of branches that are neither "
        "random nor regular."
    )


def one_processor(cpu_model: str) -> str:
    return f"One processor was counted ({cpu_model}), on a few microbenchmarks and switches: of other software the error may be another."


def once() -> str:
    return "Each microbenchmark ran once: its error has no interval."


def one_window() -> str:
    return "Each switch was counted in one window: no interval, one says nothing about the spread."


def one_lab() -> str:
    """The other labs are in docs/limitations.md."""
    return (
        "The switches' windows lie in one lab, with the same memory. In another one misses and mispredicted branches came out otherwise "
        "by more than these intervals (docs/limitations.md has the numbers)."
    )


def fits_the_caches() -> str:
    return "All packets that circulate fit into the caches: nothing is said of switches under memory pressure."


def not_counted(named: Iterable[str]) -> str:
    return f"Modelled, but not counted by this processor: {', '.join(named)}."


# --- Times ------------------------------------------------------------------------------------------------------


def no_profile_here(cpu_model: str, profile: str) -> str:
    return f"no CPU profile describes this machine's processor ({cpu_model}): the model is {profile}, the default"


def another_profile(cpu_model: str, profile: str) -> str:
    return f"{profile} was asked for, which does not describe this machine's processor ({cpu_model})"


def not_about_this_processor(why: str) -> str:
    return f"The errors are not about this processor: {why}."


def about_this_processor(cpu_model: str, profile: str) -> str:
    return f"This machine's processor ({cpu_model}) has the CPU profile {profile}."


def copied_otherwise() -> str:
    return "the C library copied by other code natively than in the lab: the times are of two programs"


def another_frequency(native_ghz: float, profile_ghz: float) -> str:
    return f"additions show {native_ghz:.3f} GHz natively; the profile has {profile_ghz:.3f} GHz, and all of its times are by that"


def other_kernel(native: str, lab: str) -> str:
    return (
        f"Kernels differ: {native} natively, {lab} in the lab. System calls, switches of threads, wake-ups and a Linux bridge are not the "
        "same code on both sides."
    )


def machine_was_busy(load: float) -> str:
    return (
        f"This machine was busy (load {load:.1f}). Of short tries the shortest is an undisturbed one all the same, but not of those that "
        "wait for a second CPU."
    )


def not_in_lab(why: object) -> str:
    return f"has no modelled time: {why}"


def cpus_far_apart() -> str:
    return (
        "natively the two CPUs had no cache in common (a hypervisor chooses where they lie), as they have in the lab: the native time is "
        "too long"
    )


def virtual_machine() -> str:
    return (
        "This machine is a virtual one. There a page walk has two dimensions, and to wake an idle CPU takes the hypervisor's help; the "
        "modelled processor is a machine's own."
    )
