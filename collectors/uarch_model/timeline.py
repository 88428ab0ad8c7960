# SPDX-License-Identifier: GPL-2.0-or-later
"""When what happened: what the plug-in is to watch for it, and from what it wrote down to spans."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import messages, numbers
from vsprof.collectors.uarch_model.symbols import Table
from vsprof.terms.placement import Placement
from vsprof.terms.schema import SPANS, Span

AFTER_NS = 1_000_000
"""From the window's begin on: first its own `sleep` is started there, on the housekeeping CPU."""
WATCHED = {
    "irq": {
        "sysvec_apic_timer_interrupt": "timer", "sysvec_reschedule_ipi": "reschedule", "sysvec_call_function_single": "call-function",
        "sysvec_call_function": "call-function", "sysvec_irq_work": "irq-work", "common_interrupt": "device",
    },
    "softirq": {
        "net_rx_action": "net_rx", "net_tx_action": "net_tx", "run_timer_softirq": "timer", "hrtimer_run_softirq": "hrtimer",
        "tasklet_action": "tasklet", "sched_balance_softirq": "sched", "run_rebalance_domains": "sched", "rcu_core_si": "rcu",
    },
    # Those above may end in another function's return. All interrupts end with this one's begin, all softirqs with that one's return.
    "irq_end": {"irqentry_exit": "irq-end"},
    "softirqs_end": {"handle_softirqs": "softirqs", "__do_softirq": "softirqs"},
    "upcall": {"ovs_dp_upcall": "upcall"},
    "work": {
        "handle_tx": "vhost-tx", "handle_rx": "vhost-rx", "tun_chr_write_iter": "tap-write", "tun_chr_read_iter": "tap-read",
    },
    "wake": {"try_to_wake_up": "wake"},
}  # fmt: skip
"""The kernel's functions by what their calls are to the plug-in, and the names that they get."""
COLD = ".cold"
"""What a compiler cut off a function: nobody calls it."""
GUEST, IDLE = "guest", "idle"
# How a guest was left: AMD64 Architecture Programmer's Manual vol. 2, appendix C.
EXITS = {
    0x60: "interrupt", 0x61: "NMI", 0x64: "interrupt window", 0x72: "CPUID", 0x77: "pause", 0x78: "halt", 0x7B: "port I/O", 0x7C: "MSR",
    0x81: "hypercall", 0x400: "device or page fault",
}  # fmt: skip


def watched(kernel: Table) -> Iterator[str]:
    """The plug-in's commands for the functions of WATCHED that the kernel has."""
    kinds = {function: (kind, name) for kind, functions in WATCHED.items() for function, name in functions.items()}
    ends = [*kernel.begins[1:], kernel.begins[-1] + 1] if kernel.begins else []
    for begin, end, (_, symbol) in zip(kernel.begins, ends, kernel.names, strict=True):
        kind, name = kinds.get(symbol.partition(".")[0], ("", ""))
        if kind and COLD not in symbol:
            yield f"watch {kind} {name} {begin:x} {end:x}"


def of(recorded: Recorded) -> Iterable[Span]:
    """All of a window. Raises ``ValueError`` when it is not what the plug-in writes."""
    try:
        return list(_spans(json.loads(recorded.begin + recorded.end), recorded.placement))
    except numbers.UNREADABLE as error:
        raise ValueError(f"not what the processor model writes: {error!r}") from error


def _spans(data: Mapping[str, Any], placement: Placement) -> Iterator[Span]:
    # An earlier vsprof wrote none.
    for cpu, core in enumerate(data.get("timeline", [])):
        begin, end = core["from_ns"], core["to_ns"]
        if end <= begin:
            continue
        why = messages.timeline_full(len(core["events"])) if core["full"] else ""
        yield Span("recorded", begin, end - begin, cpu, placement.role_of_cpu(cpu), name=why)
        for event in core["events"]:
            yield _span(event, cpu, placement)


def _span(event: list[Any], cpu: int, placement: Placement) -> Span:
    at, lasts, kind, guest, value, name = event
    if kind not in SPANS:
        raise ValueError(f"no kind of what happens: {kind!r}")
    role = GUEST if guest or kind == "guest" else "softirq" if kind in ("irq", "softirq") else placement.role_of_cpu(cpu)
    mode = GUEST if guest else "all"
    if kind in ("task", "wake"):
        if value == numbers.IDLE_TASK:
            return Span(kind, at, lasts, cpu, None, mode, IDLE, value)
        own = GUEST if guest else numbers.role_of({"id": value, "name": name}, placement, cpu)
        return Span(kind, at, lasts, cpu, own, mode, name, value)
    if kind == "guest":
        return Span(kind, at, lasts, cpu, role, mode, EXITS.get(value, f"exit {value:#x}") if value >= 0 else "")
    return Span(kind, at, lasts, cpu, role, mode, name, None, float(value) if value >= 0 else None)
