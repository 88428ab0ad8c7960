# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch beside OVS-DPDK and DPDK's testpmd in the lab, by the modelled processor's clock.

Nothing disturbs there, and each endpoint has a CPU of its own. Whether the switch is the limit is told with each rate: how much of its
time the thread that moves the frames found none. Where it is, windows of one start differ by less than a percent. Each contender is
started once; a ratio is of the windows of the same number.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from vsprof.analysis.stats import Estimate
from vsprof.bench import contenders, messages
from vsprof.bench.compared import estimate
from vsprof.bench.flood import Say, flood
from vsprof.bench.modelled_flood import Counted, ModelledPath, modelled
from vsprof.terms import errors

WINDOWS = 6
"""A bootstrap's interval takes six to be a 95 % one."""
SECONDS = 0.004
WARMUP_SECONDS = 0.002
"""Of modelled time, as the one above."""
COUNTERS = {"cycles": "cycles", "instructions": "instructions", "l1d_misses": "events", "l2_misses": "events", "branch_misses": "events"}
"""Of the switch's CPU, per packet, and their units."""
Found = dict[str, tuple[Estimate, str]]
Windows = dict[tuple[str, int], list[Counted]]
"""By contender and size of the frames."""


def measure(
    windows: int, frames: Sequence[int], names: Sequence[str], ends: Mapping[str, str], cpu_profile: str, say: Say
) -> tuple[Found, BaseException | None]:
    """All estimates by name; after Ctrl-C, or where a contender fails, those of what was measured, and what ended it. Raises
    ``VsprofError`` where nothing was."""
    seen: Windows = {}
    ended: BaseException | None = None
    cpu = 0
    try:
        for name in names:
            with modelled(contenders.case(name, ends), cpu_profile, say, contenders.KINDS) as there:
                cpu = there.topology.switch.plan.switch
                for frame in frames:
                    say(f"{name}, {frame} B")
                    seen[name, frame] = _windows(there, frame, windows)
    except (KeyboardInterrupt, errors.VsprofError, OSError) as error:
        if not seen:
            raise
        say(messages.measuring_ended(str(error) or "interrupted"))
        ended = error
    return _estimates(seen, contenders.pairs(names), cpu), ended


def _estimates(seen: Windows, pairs: Mapping[str, tuple[str, str]], cpu: int) -> Found:
    found: Found = {}
    for frame in dict.fromkeys(frame for _, frame in seen):
        for name, (one, other) in pairs.items():
            if (one, frame) in seen and (other, frame) in seen:
                rates = [a.rate / b.rate for a, b in zip(seen[one, frame], seen[other, frame], strict=True)]
                found[f"{name}_{frame}"] = (estimate(rates), "ratio")
    for (name, frame), counted in seen.items():
        found |= _absolute(name, frame, counted, cpu)
    return found


def _windows(there: ModelledPath, frame_bytes: int, windows: int) -> list[Counted]:
    traffic = flood(there.topology, frame_bytes)
    try:
        return [there.window(traffic, SECONDS, WARMUP_SECONDS) for _ in range(windows)]
    finally:
        traffic.stop()


def _absolute(name: str, frame: int, windows: Sequence[Counted], cpu: int) -> Found:
    found: Found = {f"{name}_mpps_{frame}": (estimate([one.rate / 1e6 for one in windows]), "Mpackets/s")}
    for counter, unit in COUNTERS.items():
        values = [_of_cpu(one.cores[cpu], counter) / one.packets for one in windows]
        found[f"{name}_{counter}_per_packet_{frame}"] = (estimate(values), unit)
    idle = [_idle(one.cores[cpu]) for one in windows]
    found[f"{name}_idle_{frame}"] = (estimate(idle), "fraction of the cycles")
    return found


def _of_cpu(core: Mapping[str, Any], counter: str) -> float:
    return sum(mode.get(counter, 0) for mode in core["modes"].values())


def _idle(core: Mapping[str, Any]) -> float:
    """The share of a CPU's cycles that went to polls that found nothing."""
    return sum(task.get("empty", {}).get("cycles", 0) for task in core["tasks"]) / _of_cpu(core, "cycles")
