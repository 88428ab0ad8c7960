# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors and warnings of collectors: the value seen, and the next move. One function a message."""

from collections.abc import Iterable

from vsprof.terms.errors import BadInput

# --- bpftrace and bcc ------------------------------------------------------------------------------------------------


def no_list(collector: str, option: str, seen: object, example: str) -> BadInput:
    return BadInput(f"{collector}: {option} is {seen!r}, need a list of at least one name, such as [{example}]")


def no_bcc(program: str) -> str:
    return f"{program} not found: install the package bpfcc-tools"


def no_headers(kernel: str) -> str:
    return f"the headers of kernel {kernel} are not there: install linux-headers-{kernel}, or use the collector ebpf, which needs none"


def bcc_failed(words: str) -> str:
    return f"the tool of bcc failed: {words}"


# --- The event catalogue ---------------------------------------------------------------------------------------------


def bad_catalogue(reasons: Iterable[str]) -> BadInput:
    return BadInput("\n".join(reasons))


def perf_missing() -> str:
    return "perf not found, so nothing can be counted: install the package linux-perf (Ubuntu: linux-tools-generic)"


def perf_silent(words: str) -> str:
    return f"perf stat counted nothing, not even task-clock: {words or 'it printed nothing'}"


def perf_too_old(version: str, seen: str) -> str:
    return f"{version} prints counts in a form that vsprof can't read ({_short(seen)}): it is too old, 6.1 is known to work"


def perf_hangs(seconds: float) -> str:
    return f"perf stat of the program `true` had not ended after {seconds:g} s: nothing more was tried"


def no_pmu(events: int, name: str) -> str:
    return (
        f"this machine has no PMU that perf can use (cycles and instructions are <not supported>): none of the {events} hardware events of"
        f" {name} can be counted here. A virtual machine needs one from its host; the lab's processor model needs none"
    )


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:80] + "…"


# --- toplev and VTune ------------------------------------------------------------------------------------------------

INSTEAD = (
    "on others the metrics retiring, frontend_bound, bad_speculation and backend_bound of the collector perf_stat"
    " (`make events` lists them) say where the pipeline's slots went"
)


def not_intel(tool: str, seen: str) -> str:
    return f"{tool} is for Intel's processors, and this one is {seen}, of which it would print wrong numbers; {INSTEAD}"


def no_intel_pmu(tool: str, seen: str) -> str:
    return f"{tool} needs the processor's PMU, and the kernel offers none for {seen}: in a virtual machine, give it a virtual PMU"


def toplev_not_installed(lacks: Iterable[str]) -> str:
    return (
        f"toplev is not installed on this testbed, which has no {' and no '.join(lacks)};"
        " `make toplev PERFMON=…` installs it on this machine, for runs on it"
    )


def toplev_fails(words: str) -> str:
    return (
        f"toplev does not count here: {words.strip() or 'it printed nothing'}; `perf stat -a -e cycles true` should count as the same user"
    )


def vtune_not_found(looked: Iterable[str]) -> str:
    return (
        f"VTune is not installed on this testbed: looked for {' and '.join(looked)};"
        " install Intel's package intel-oneapi-vtune (https://www.intel.com/content/www/us/en/developer/tools/oneapi/vtune-profiler.html)"
    )


def bad_level(seen: object, least: int, most: int) -> BadInput:
    return BadInput(f"level: {seen!r}: give a whole number from {least} to {most}")


def bad_cpus(seen: object) -> BadInput:
    return BadInput(f"cpus: {seen!r}: give CPUs and ranges of them as text, such as '1,3-5'")


def below_threshold() -> str:
    return "below toplev's threshold: it does not count as a bottleneck, and what lies below it in the tree means little"


def out_of_range() -> str:
    return "a share outside of 0 to 1: events that were multiplexed do not fit together"


def taken_for_zero(events: Iterable[str]) -> str:
    return f"perf did not count {', '.join(events)} here, and toplev takes that for 0"


def no_value(seen: str) -> str:
    return f"the tool printed {seen!r}" if seen else "the tool printed nothing for it"


def unreliable(reliability: float, wanted: float) -> str:
    return f"VTune's MUX Reliability is {reliability:g}, below {wanted:g}"


def disturbance_not_built(words: str) -> str:
    return f"its program, which is compiled on this machine, was not: {words.strip()[-800:]}; it takes gcc and libc6-dev"


# --- CPU profiles ----------------------------------------------------------------------------------------------------


def not_readable(why: str) -> str:
    return f"can't be read: {why}"


# --- Recordings ------------------------------------------------------------------------------------------------------


def can_not_record(words: str) -> str:
    move = "run as root, or set kernel.perf_event_paranoid to -1 (`vsprof doctor` reports what else is missing)"
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


def bad_events(seen: object) -> BadInput:
    return BadInput(f"perf_record's events is {seen!r}: need a list of at least one event or metric, such as [l1d_misses, llc_misses]")


def not_of_processor(name: str, why: str) -> BadInput:
    return BadInput(f"perf_record can't sample {name} on this testbed: {why}; leave it out")


def no_memory_events(words: str) -> str:
    return (
        f"perf c2c record does not work here ({words[:200] or 'it printed nothing'}): it needs a PMU that samples loads and stores with"
        " their addresses (Intel's PEBS, AMD's IBS, Arm's SPE), which virtual machines seldom have, and root"
    )


def bad_latency(seen: object, most: int) -> BadInput:
    return BadInput(f"perf_mem's least_latency is {seen!r}: need a whole number of cycles from 0 to {most}, such as 30")


def no_sum(name: str, events: Iterable[str]) -> BadInput:
    return BadInput(
        f"perf_record can't sample {name}: it is no event, and no plain sum of events (it is made of {', '.join(events) or 'none'});"
        " name events themselves"
    )


def outside_the_cores(name: str, events: Iterable[str]) -> BadInput:
    return BadInput(f"perf_record can't sample {name}: {', '.join(events)} is counted outside the cores, which know no function")


def two_sources(names: Iterable[str]) -> BadInput:
    return BadInput(f"perf_record can't sample {', '.join(names)} together: some are a PMU's events, others the kernel's own")


def not_sampled(words: str) -> str:
    return f"perf counts this event, and can't sample it ({words[:200] or 'it printed nothing'})"


def from_samples(count: int, event: str) -> str:
    return f"estimated from {count} samples of {event}"


def kernel_symbols_hidden(level: str) -> str:
    return f"hidden (kernel.kptr_restrict is {level}): the kernel's functions have no names; run as root, or set it to 0"


# --- vhost-switch ----------------------------------------------------------------------------------------------------


def not_running() -> str:
    return "no vhost-switch runs here: it counts what that switch does, and no other"


# --- timeline --------------------------------------------------------------------------------------------------------


def bad_milliseconds(seen: object, most: float) -> BadInput:
    return BadInput(f"timeline's milliseconds are {seen!r}: need a number above 0, up to {most:g}")
