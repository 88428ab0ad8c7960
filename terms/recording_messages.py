# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of recordings by perf: why one can't be made, and why a number of it is empty."""

from __future__ import annotations

from terms.errors import BadInput


def can_not_record(words: str) -> str:
    move = "run as root, or set kernel.perf_event_paranoid to -1 (vsprof doctor tells what else is amiss)"
    return f"perf record does not work here ({words[:200] or 'it printed nothing'}): {move}"


def no_tracepoints(words: str) -> str:
    return f"perf can't record the tracepoints sched:* here ({words[:200] or 'it printed nothing'}): run as root, with tracefs mounted"


def lost_events(lost: int) -> str:
    return f"perf lost {lost} events of this window, so what follows from one event to the next is not known: make own_seconds shorter"


def cut_short(seen: int, whole: int) -> str:
    return f"only the first {seen} of {whole} bytes of the recording were kept: make own_seconds shorter"


def no_sample() -> str:
    return "perf recorded no sample in this window"


def nothing_seen(what: str) -> str:
    return f"no {what} of this role was seen from begin to end in the window"


def bad_frequency(seen: object, low: int, high: int) -> BadInput:
    return BadInput(f"perf_record's frequency is {seen!r}: need a whole number of samples a second from {low} to {high}, such as 499")


def bad_stack_bytes(seen: object, most: int) -> BadInput:
    return BadInput(f"perf_record's stack_bytes is {seen!r}: need a multiple of 8 up to {most}, such as 16384, or 0 for frame pointers")


def kernel_symbols_hidden(level: str) -> str:
    return f"hidden (kernel.kptr_restrict is {level}): the kernel's functions have no names; run as root, or set it to 0"
