# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of a validation of the processor model: when it can't be read, and what its numbers do not mean."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from pathlib import Path

from terms.errors import BadInput


def no_validation(path: Path) -> BadInput:
    return BadInput(f"{path} is not there: `make validate-model` writes build/bench/validation.json; one is kept in docs/reference")


def unreadable(path: Path, why: object) -> BadInput:
    return BadInput(f"{path} can't be read ({why}): name a validation.json, or the folder that has one")


def bad_validation(path: Path, key: str, why: str, seen: object, more: int) -> BadInput:
    others = f" (and {more} more like it)" if more else ""
    return BadInput(
        f"{path} is no validation: {key or 'the whole'}: {why} (found {reprlib.repr(seen)}){others}; `make validate-model` writes it anew"
    )


def bad_interval() -> str:
    return "an interval needs low and high, and its median between them"


def not_run(part: str) -> str:
    return f"the part `{part}` was not run (`make validate-model` runs all parts)"


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
