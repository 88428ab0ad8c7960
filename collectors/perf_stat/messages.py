# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of perf_stat: the value seen, and the next move. One function a message."""

from collections.abc import Iterable, Sequence

from vsprof.terms.errors import BadInput
from vsprof.terms.units import significant

# --- perf stat -------------------------------------------------------------------------------------------------------


def bad_option(name: str, what: str, seen: object) -> BadInput:
    return BadInput(f"collector_options.perf_stat.{name}: need {what}, found {seen!r}")


def unknown_event(name: str, near: Sequence[str]) -> BadInput:
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return BadInput(f"collector_options.perf_stat.events: no metric or event {name!r}{meant} (`make events` lists them)")


def not_here(name: str, why: str) -> BadInput:
    return BadInput(
        f"collector_options.perf_stat.events: {name} can't be counted on this testbed: {why}; leave it out, or let the default choose"
    )


def too_few_windows(needed: int, measured: int) -> str:
    return f"{needed} windows are needed for all groups, {measured} {'was' if measured == 1 else 'were'} measured: raise windows.count"


def never_ran() -> str:
    return "perf did not count it: its counter never ran"


def not_counted(state: str) -> str:
    return f"perf did not count it: {state}"


def multiplexed(percent: float) -> str:
    return f"it counted {significant(percent)} % of the time only, and perf made up the rest: somebody else uses the PMU"


def perf_silent() -> str:
    return "perf printed no count"


def perf_unreadable(why: str) -> str:
    return f"what perf printed can't be read: {why}"


def unexpected_counts(seen: int, events: int) -> str:
    return f"{seen} counts of {events} events, which is no whole number of CPUs"


def another_event(expected: str, seen: str) -> str:
    return f"{seen} stands where {expected} should"


def outside_cores(unit: str) -> str:
    where = f"it is counted outside the cores ({unit}), where no counter distinguishes cores, and so no roles"
    return f"{where}: the collector uncore counts it"


def not_beside_anchors(names: Iterable[str]) -> str:
    return f"perf does not count it in one group with {' and '.join(names) or 'others'}"


def no_room(names: Iterable[str]) -> str:
    return f"no usable counter is left beside {' and '.join(names) or 'none'}: see the preflight"


TRAPPED_S = 500e-9
"""A read of a counter that takes longer is trapped by a hypervisor: the instruction itself takes some tens of cycles."""


def no_hypervisor() -> str:
    return "the processor names no hypervisor"


def virtualised() -> str:
    return "this is a virtual machine: its counters are what the hypervisor makes of them, and a counter can be dead without a sign of it"


def watchdog(on: bool) -> str:
    if on:
        return "the NMI watchdog has one counter of each CPU: `sysctl kernel.nmi_watchdog=0` as root gives it back"
    return "the NMI watchdog is off"


def watchdog_unknown() -> str:
    return "the kernel has no NMI watchdog"


def nobody_else() -> str:
    return "no other process has counters open"


def others(processes: Sequence[str]) -> str:
    return f"{len(processes)} other process(es) have counters open: {', '.join(processes[:5])}; end them, or values will be empty"


def group_size(anchors: int, room: int) -> str:
    return f"{room} more events can be counted in one group with {anchors} that are in each"


def group_given(room: int) -> str:
    return f"{room} events beside those that are in each group, as the option counters says; not tested"


def no_usable_group(why: str) -> str:
    return f"not even one event can be counted beside those that are in each group: {why}"


def all_alive(copies: int) -> str:
    return f"up to {copies} copies of one event in one group agree"


def dead(copies: int, values: Iterable[float]) -> str:
    shown = ", ".join(f"{value:,.0f}" for value in values)
    return f"{copies} copies of one event in one group counted {shown}: a counter is dead, so no group is that large"


def known_count(expected: int, seen: float) -> str:
    return f"a program of exactly {expected:,} instructions was counted as {seen:,.0f}"


def known_count_failed(expected: int, seen: float) -> str:
    return f"{known_count(expected, seen)}: these counters are not to be believed, and every value of theirs is left empty"


def known_count_untested(why: str) -> str:
    return f"no known number of instructions was counted: {why}"


def no_program(machine: str) -> str:
    return f"the test program is for x86_64, and this is {machine or 'another processor'}"


def program_not_run(status: int | None) -> str:
    return f"the test program ended with {'no status' if status is None else status}"


def no_instructions() -> str:
    return "the processor's events have no word `instructions`"


def kernel_only() -> str:
    return "all events asked for are the kernel's own, which need no counter"


def every_cpu_counts(cpus: int) -> str:
    return f"a full group counted all the time on all {cpus} CPUs"


def some_cpus_do_not(cpus: Sequence[int | None]) -> str:
    return (
        f"a full group did not count all the time on CPU {', '.join(map(str, cpus))}: another user of the PMU, whom only the kernel knows"
    )


def rdpmc(cost_s: float) -> str:
    trapped = ": it is trapped, so read it seldom" if cost_s > TRAPPED_S else ""
    return f"reading a counter in user mode (rdpmc) takes {significant(cost_s * 1e9)} ns{trapped}"


def rdpmc_skipped(why: str) -> str:
    return f"the cost of reading a counter in user mode (rdpmc) was not measured: {why}"


RDPMC_FAILED = {
    1: "the kernel gave the test program no counter",
    2: "the kernel did not map the counter for reading",
    3: "the counter was not running when it was to be read",
    139: "reading it is not allowed (the program was ended by SIGSEGV)",
}
"""By the exit status of the test program."""
