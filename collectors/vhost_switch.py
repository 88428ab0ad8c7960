# SPDX-License-Identifier: GPL-2.0-or-later
"""What each poll-mode thread of vhost-switch did: cycles of each stage, packets, bursts, empty polls, sleeps; PMU events of each stage."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors import messages
from vsprof.collectors.base import Recorded, Snapshot
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds import dpdk_telemetry

PREFIX = "vhost-switch"
"""EAL's --file-prefix of the switch."""
LCORE, BURSTS, CYCLES, PORT, UNITS, SETTINGS = (
    f"/vhost_switch/{name}" for name in ("lcore", "burst_histogram", "cycles_histogram", "port", "units", "settings")
)
COUNTERS = {
    "rx_packets": "pmd_packets", "rx_bursts": "pmd_bursts", "flooded": "flooded",
    "flood_dropped": "flood_dropped", "filtered": "filtered", "sleeps": "pmd_sleeps",
    "wakeups": "pmd_wakeups", "sleep_ns": "pmd_sleep_seconds",
}  # fmt: skip
"""A thread's counters that are always counted: telemetry's name, and ours."""
OTHER = "other"
STAGES = ("dequeue", "parse", "lookup", "enqueue", OTHER)
TIMED = {
    "timed_packets": "timed_packets", "timed_bursts": "timed_bursts", "empty_polls": "empty_polls", "busy_cycles": "pmd_busy_cycles",
    "idle_cycles": "pmd_idle_cycles", **{f"stage_{stage}_cycles": f"stage_{stage}_cycles" for stage in STAGES},
}  # fmt: skip
"""Those that are counted only with the option ``stages`` on or pmu."""
PORTS = {"tx_dropped_full": "dropped_full", "tx_dropped_down": "dropped_down", "tx_too_long": "dropped_too_long", "rx_refused": "refused"}
"""Of all ports together."""
SHOWN = {"cycles": ("TSC cycles", 1.0), "nanoseconds": ("seconds", 1e-9)}
"""Units of vhost-switch that are others here, and the factor."""
NO_BURST = "no burst in this window"
NONE_SPLIT = "of no burst in this window the stages were told apart"
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class VhostSwitch(Snapshot):
    words = "vhost-switch's poll-mode threads"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "stage_*_cycles": NumberWords("TSC cycles of this stage", better="less"),
        "pmd_busy_cycles": NumberWords("TSC cycles of polls that found packets", better="less"),
        "cycles_per_packet_*": NumberWords("TSC cycles per packet of a burst", better="less"),
        "burst_size_*": NumberWords("packets in a burst"),
        "dropped_*": NumberWords("frames dropped", better="less"),
        "flood_dropped": NumberWords("copies of flooded frames dropped", better="less"),
        "refused": NumberWords("frames and descriptors refused as malformed", better="less"),
        "flooded": NumberWords("frames sent to all ports"),
        "filtered": NumberWords("frames whose receiver is where they came from"),
        "pmd_packets": NumberWords("packets that the poll-mode threads moved", better="more"),
        "pmd_bursts": NumberWords("polls that found packets"),
        "empty_polls": NumberWords("polls that found nothing"),
        "pmd_idle_cycles": NumberWords("TSC cycles of polls that found nothing"),
        "pmd_sleeps": NumberWords("times that a poll-mode thread went to sleep"),
        "pmd_wakeups": NumberWords("times that a frame woke a poll-mode thread"),
        "pmd_sleep_seconds": NumberWords("time that poll-mode threads slept"),
        "timed_*": NumberWords("packets and bursts that were timed"),
        "pmu_*": NumberWords("the PMU's count in this stage, of sampled bursts"),
    }
    nesting = 0
    command = dpdk_telemetry.command(
        PREFIX,
        [
            SETTINGS,
            UNITS,
            f"{PORT},*=/vhost_switch/ports",
            *(f"{question},*=/vhost_switch/lcores" for question in (LCORE, BURSTS, CYCLES)),
        ],
    )

    def not_of_this_switch(self) -> str | None:
        running = self.host.run(f"[ -S /var/run/dpdk/{PREFIX}/dpdk_telemetry.v2 ]", check=False).status == 0
        return None if running else messages.not_running()

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        try:
            before, after = Telemetry(recorded.begin), Telemetry(recorded.end)
            if before.lcores.keys() != after.lcores.keys():
                raise ValueError(f"its threads were {sorted(before.lcores)} at the begin and {sorted(after.lcores)} at the end")
            for lcore, counters in after.lcores.items():
                yield from _of_thread(before, after, lcore, int(counters["cpu"]), recorded.seconds)
            for name, ours in PORTS.items():
                gained = sum(_gained(before.ports.get(port, {}), said, name) for port, said in after.ports.items())
                yield Number(ours, gained, after.unit(name)[0], "switch", enabled_s=recorded.seconds, running_s=recorded.seconds)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not vhost-switch's telemetry: {error!r}") from error


class Telemetry:
    """What telemetry answered at one end of a window."""

    def __init__(self, text: str) -> None:
        self.lcores: dict[str, Mapping[str, Any]] = {}
        self.ports: dict[str, Mapping[str, Any]] = {}
        self.bursts: dict[str, Sequence[int]] = {}
        self.cycles: dict[str, Mapping[str, Sequence[int]]] = {}
        self.settings: Mapping[str, Any] = {}
        self._units: Mapping[str, str] = {}
        for _, question, of, found in dpdk_telemetry.answers(text):
            if question in (SETTINGS, UNITS):
                setattr(self, {SETTINGS: "settings", UNITS: "_units"}[question], found)
            elif question in (LCORE, BURSTS, CYCLES, PORT):
                {LCORE: self.lcores, BURSTS: self.bursts, CYCLES: self.cycles, PORT: self.ports}[question][of] = found
        if not self.lcores:
            raise ValueError("vhost-switch told of no thread")

    def unit(self, name: str) -> tuple[str, float]:
        """The unit that vhost-switch names for a counter, as it is called here, and the factor into it."""
        said = self._units[name]
        return SHOWN.get(said, (said, 1.0))


def _of_thread(before: Telemetry, after: Telemetry, lcore: str, cpu: int, seconds: float) -> Iterable[Number]:
    begin, end = before.lcores[lcore], after.lcores[lcore]
    where = {"role": "switch", "cpu": cpu, "enabled_s": seconds, "running_s": seconds}
    for name, ours in COUNTERS.items():
        if name not in end:  # an earlier vhost-switch did not count it
            continue
        unit, factor = after.unit(name)
        yield Number(ours, _gained(begin, end, name) * factor, unit, **where)
    if after.settings["stages"] == "off":
        yield from (Number(ours, None, after.unit(name)[0], "switch", cpu, note="stages is off") for name, ours in TIMED.items())
        return
    gained = {name: _gained(begin, end, name) for name in TIMED}
    # An earlier vhost-switch told the stages of every burst apart.
    shared = _shared_out(gained) if "split_bursts" in end else {}
    for name, ours in TIMED.items():
        value = shared.get(name, gained[name])
        yield Number(ours, value, after.unit(name)[0], **where, note="" if value is not None else NONE_SPLIT)
    bursts = [b - a for a, b in zip(before.bursts[lcore], after.bursts[lcore], strict=True)]
    yield from _quantiles("burst_size", range(len(bursts)), bursts, "packets", where, NO_BURST)
    first, last = before.cycles[lcore], after.cycles[lcore]
    costs = [b - a for a, b in zip(first["counts"], last["counts"], strict=True)]
    none = NONE_SPLIT if sum(bursts) else NO_BURST
    yield from _quantiles("cycles_per_packet", last["upper_bounds"], costs, "TSC cycles", where, none)
    yield from _pmu(begin, end, where)


def _shared_out(gained: Mapping[str, int]) -> dict[str, float | None]:
    """The cycles of the timed bursts by stage: shared out as those of the split ones were, which are one in eight. None where bursts were
    timed and none of them was split."""
    stages = [f"stage_{stage}_cycles" for stage in STAGES if stage != OTHER]
    split, timed = sum(gained[name] for name in stages), gained["busy_cycles"] - gained[f"stage_{OTHER}_cycles"]
    if timed and not split:
        return dict.fromkeys(stages)
    return {name: gained[name] * timed / max(split, 1) for name in stages}


def _pmu(begin: Mapping[str, Any], end: Mapping[str, Any], where: dict[str, Any]) -> Iterable[Number]:
    """Events that the processor counted in each stage of the sampled bursts, and how many packets these had."""
    if "pmu_packets" not in end:
        return
    for name in ("pmu_packets", "pmu_bursts"):
        yield Number(name, _gained(begin, end, name), "packets" if name == "pmu_packets" else "events", **where)
    for name in end:
        if name.startswith("pmu_") and name not in ("pmu_packets", "pmu_bursts", "pmu_read_cycles"):
            yield Number(str(name), _gained(begin, end, name), "events", source="hardware", **where)


def _gained(begin: Mapping[str, Any], end: Mapping[str, Any], name: str) -> int:
    gained = int(end[name]) - int(begin.get(name, 0))
    if gained < 0:
        raise ValueError(f"{name} went back from {begin[name]} to {end[name]}")
    return gained


def _quantiles(name: str, values: Sequence[float], counts: Sequence[int], unit: str, where: dict[str, Any], none: str) -> Iterable[Number]:
    """Quantiles of a histogram: of each, the value (a bucket's upper bound) at or below which that part of the counts lies."""
    total = sum(counts)
    for word, part in QUANTILES.items():
        if not total:
            yield Number(f"{name}_{word}", None, unit, "switch", where["cpu"], note=none)
            continue
        rank, seen = math.ceil(part * total), 0
        for value, count in zip(values, counts, strict=True):
            seen += count
            if seen >= rank:
                yield Number(f"{name}_{word}", float(value), unit, **where)
                break


COLLECTOR = VhostSwitch
