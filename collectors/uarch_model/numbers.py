# SPDX-License-Identifier: GPL-2.0-or-later
"""From what the plug-in wrote to numbers: each counter by CPU, role and mode."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from vsprof.collectors.base import Load, Recorded
from vsprof.collectors.uarch_model import profiles
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Number

MODES = {
    "host_kernel": ("kernel", ""),
    "host_user": ("user", ""),
    "guest_kernel": ("guest", "the guest's kernel"),
    "guest_user": ("guest", "the guest's programs"),
}
"""The plug-in's modes as the schema has them, and what tells two of them apart in a number's note."""
CYCLES = ("base", "l2", "llc", "memory", "frontend", "dtlb", "itlb", "branch", "mode")
"""The parts of the CPI stack, whose sum is ``cycles``."""
EMPTY_POLLS = "empty_polls"
"""How many polls found nothing, and the begin of the names of what they took, which the counters by role and mode hold, too."""
TCP_HEADER_BYTES = 32
IDLE_TASK = 0
KSOFTIRQD = "ksoftirqd/"
UNKNOWN_TASK = -1
TRANSLATIONS_WRONG = 0.01
"""Beyond this share of page walks that found another address than QEMU, the numbers are not to be trusted."""
UNREADABLE = (LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a recording raises, beside ``ValueError``, if it is not the plug-in's."""


def of(recorded: Recorded) -> Iterable[Number]:
    """All numbers of a window. Raises ``ValueError`` when it is not what the plug-in writes."""
    try:
        return list(_numbers(json.loads(recorded.begin + recorded.end), recorded.placement))
    except UNREADABLE as error:
        raise ValueError(f"not what the processor model writes: {error!r}") from error


def _numbers(data: Mapping[str, Any], placement: Placement) -> Iterable[Number]:
    window = data["window"]
    seconds = float(window["seconds"])
    if why := distrust(data["status"]):
        yield Number("cycles", None, "cycles", note=why)
        return
    yield from data_numbers(window, seconds)
    for cpu, core in enumerate(window["cores"]):
        for (role, mode), counts in sorted(by_role(core, placement, cpu).items()):
            word, note = MODES[mode]
            for name, unit in counters():
                yield Number(name, counts.get(name, 0.0), unit, role, cpu, word, seconds, seconds, note)
        for role, counts in sorted(empty_polls(core, placement, cpu).items()):
            yield Number(EMPTY_POLLS, counts[EMPTY_POLLS], "events", role, cpu, "user", seconds, seconds)
            for name, unit in counters():
                yield Number(f"{EMPTY_POLLS}_{name}", counts.get(name, 0.0), unit, role, cpu, "user", seconds, seconds)


def counters() -> Iterable[tuple[str, str]]:
    """The name and unit of each number that there is by role and mode."""
    for name in (*profiles.counters(), *(f"cycles_{part}" for part in CYCLES), "cycles"):
        if not name.startswith("stall_"):  # the same as the stack's parts
            yield name, "cycles" if name.startswith("cycles") or name.endswith("_cycles") else "events"


def loads(recorded: Recorded, frequency_hz: float) -> dict[int, Load]:
    """What each CPU did in the window, probes left out. Raises ``ValueError`` as ``of`` does."""
    window = json.loads(recorded.end)["window"]
    found = {}
    for cpu, core in enumerate(window["cores"]):
        cycles, instructions = (sum(float(mode.get(name, 0)) for mode in core["modes"].values()) for name in ("cycles", "instructions"))
        busy = min(1.0, cycles / (float(window["seconds"]) * frequency_hz))
        found[cpu] = Load(busy, cycles / instructions if instructions else None)
    return found


def data_numbers(window: Mapping[str, Any], seconds: float) -> Iterable[Number]:
    """What was carried inside the window, counted where it is received: by what all else is divided."""
    calls: dict[str, int] = defaultdict(int)
    lengths: dict[str, int] = defaultdict(int)
    for core in window["cores"]:
        for hook, (called, length) in core["hooks"].items():
            calls[hook.partition("/")[0]] += called
            lengths[hook.partition("/")[0]] += length
    # A segment's length has its header: 20 bytes, and 12 for time stamps (RFC 9293, RFC 7323). Acknowledgements have no more.
    payload = max(0, lengths["segments"] - TCP_HEADER_BYTES * calls["segments"])
    counts = {"packets": (calls["packets"], "packets"), "tcp_bytes": (payload, "bytes"), "icmp_messages": (calls["messages"], "packets"),
              "frames": (lengths["frames"], "packets"), "polls": (calls["polls"], "events"),
              "poll_bursts": (calls["bursts"], "events")}  # fmt: skip
    for name, (count, unit) in counts.items():
        yield Number(f"model_{name}", count, unit, None, None, "all", seconds, seconds)
    yield Number("window_seconds", seconds, "seconds")


def by_role(core: Mapping[str, Any], placement: Placement, cpu: int) -> dict[tuple[str, str], dict[str, float]]:
    """A core's counts by the role of the thread that ran, and by mode."""
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for task in core["tasks"]:
        for mode, counts in task["modes"].items():
            into = sums[role_of(task, placement, cpu), mode]
            for name, value in counts.items():
                into[name] += value
    return sums


def empty_polls(core: Mapping[str, Any], placement: Placement, cpu: int) -> dict[str, dict[str, float]]:
    """By role, what a core's threads that poll counted in polls that found nothing, and under EMPTY_POLLS how many these were."""
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for task in core["tasks"]:
        if EMPTY_POLLS not in task:
            continue
        into = sums[role_of(task, placement, cpu)]
        for name, value in {**task["empty"], EMPTY_POLLS: task[EMPTY_POLLS]}.items():
            into[name] += value
    return sums


def role_of(task: Mapping[str, Any], placement: Placement, cpu: int) -> str:
    """The role of a thread that ran on ``cpu``.

    What runs on the idle task's stack, but for a few instructions of its own, are interrupts and softirqs. A thread that was not yet
    known, for it never left its processor, has the role that the processor was given.
    """
    if task["id"] == UNKNOWN_TASK:
        return placement.role_of_cpu(cpu)
    if task["id"] == IDLE_TASK or task["name"].startswith(KSOFTIRQD):
        return "softirq"
    return placement.role_of_thread(task["id"])


def distrust(status: Mapping[str, Any]) -> str:
    """Why a window's numbers are not to be believed, or nothing."""
    checked, wrong = (sum(vcpu[f"translations_{what}"] for vcpu in status["vcpus"]) for what in ("checked", "wrong"))
    if not checked:
        return "no address that the model translated was compared with QEMU's"
    if wrong / checked > TRANSLATIONS_WRONG:
        return f"{wrong} of {checked} addresses that the model translated are not QEMU's"
    return ""
