# SPDX-License-Identifier: GPL-2.0-or-later
"""The errors of the collectors that wrap tools for Intel's processors, toplev and vtune: the value seen, and the next move."""

from __future__ import annotations

from collections.abc import Iterable

from terms.errors import BadInput

INSTEAD = (
    "on others the metrics retiring, frontend_bound, bad_speculation and backend_bound of the collector perf_stat"
    " (`make events` lists them) say where the pipeline's slots went"
)


def not_intel(tool: str, seen: str) -> str:
    return f"{tool} is for Intel's processors, and this one is {seen}, of which it would print wrong numbers; {INSTEAD}"


def no_pmu(tool: str, seen: str) -> str:
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
