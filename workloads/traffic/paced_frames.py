# SPDX-License-Identifier: GPL-2.0-or-later
"""Single frames at a fixed pace, and how long each took from one end to the other: sent, received and timed by frame-probe.

Far below saturation a frame meets no queue: what it waits for is to be noticed, and what it takes is work. A frame is sent on time whether
or not the one before it arrived, so a stall delays none and hides none (no coordinated omission).

Frames that frame-probe found right after it had been away from its own CPU are counted (``packets_disturbed``) and not timed.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field, field_validator

from terms import errors, probe_messages
from terms.schema import Number
from workloads.endpoints.base import Counters
from workloads.endpoints.probe import Probe
from workloads.traffic.base import Options, Sample, Traffic, Window, rates

PERCENTILES = {"latency_p50": 50, "latency_p90": 90, "latency_p99": 99, "latency_p999": 99.9}
STREAM = "stream"
"""The window name of what is counted over all frames."""
FILE = "probe.jsonl"
COUNTS = ("offered", "received", "skipped", "reordered", "duplicates")
DRAIN_S = 0.5
Report = Mapping[str, Any]
Buckets = list[tuple[float, float, int]]
"""Lowest and highest latency in seconds, and the number of frames; in ascending order."""


class PacedOptions(Options):
    load: str = "paced"
    period_us: float = Field(350, ge=1, le=1_000_000)

    @field_validator("load")
    @classmethod
    def _is_paced(cls, load: str) -> str:
        if load != "paced":
            raise ValueError(f"load {load!r}: frames at a fixed pace know only paced")
        return load


class PacedFrames(Traffic):
    options = PacedOptions
    needs_stack = False

    def unavailable(self) -> str | None:
        return self.topology.sender.can_not_pace(self.topology.receiver)

    def start(self) -> None:
        self._probe: Probe = self.topology.sender.probe()
        self._reports: list[Report] = []
        self._whole: Report | None = None
        self._send()

    def check(self) -> None:
        before = self._probe.report()["received"]
        time.sleep(5 * self._period_s())
        if self._probe.report()["received"] == before:
            raise errors.endpoint_failed(self.topology.receiver.name, "no more frames arrive", self._probe.log())

    def sample(self) -> Sample:
        """From one report: what the ports and the frames say belongs together."""
        report = self._probe.report()
        self._reports.append(report)
        sender, receiver = (
            Counters(report["clock_s"], *(port[name] for name in ("received_packets", "received_bytes", "sent_packets", "sent_bytes")))
            for port in report["ports"]
        )
        return Sample(sender, receiver)

    def before_own_windows(self) -> None:
        self._whole = self._probe.report()

    def stop(self) -> dict[str, str]:
        self._probe.pause()
        time.sleep(DRAIN_S)
        last = self._probe.report()
        reports = [*self._reports, {**(self._whole or last), "whole": True}]
        return {FILE: "".join(json.dumps(report) + "\n" for report in reports)}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        reports, whole = read(raw[FILE])
        for window in windows:
            yield from rates(window)
            ends = (reports[sample.sender.clock_s] for sample in (window.before, window.after))
            yield from _of_window(window.name, *ends)
        yield from counts(whole, STREAM)
        yield Number("longest_gap", whole["gap"]["longest_s"], "seconds", window=STREAM)

    def _send(self) -> None:
        self._probe.send(self._period_s(), self.frame_bytes)

    def _period_s(self) -> float:
        assert isinstance(self.settings, PacedOptions)
        return self.settings.period_us / 1e6


def read(text: str) -> tuple[dict[float, Report], Report]:
    """The reports by their clock, and the one that counts everything. Raises ``ValueError`` on what frame-probe did not print."""
    try:
        reports = [json.loads(line) for line in text.splitlines()]
        [whole] = [report for report in reports if report.get("whole")]
        return {report["clock_s"]: report for report in reports}, whole
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"not what frame-probe reports: {error!r}") from error


def counts(report: Report, window: str) -> Iterable[Number]:
    """How many frames were sent and what became of them, since the stream began."""
    for name in COUNTS:
        yield Number(f"packets_{name}", report[name], "packets", window=window)
    yield Number("packets_lost", report["offered"] - report["received"], "packets", window=window)


def _of_window(window: str, before: Report, after: Report) -> Iterable[Number]:
    gained = {name: after[name] - before[name] for name in COUNTS}
    for name, value in gained.items():
        yield Number(f"packets_{name}", value, "packets", window=window)
    # What is under way at either end of the window belongs to none: one frame more or less.
    yield Number("packets_lost", gained["offered"] - gained["received"], "packets", window=window)
    disturbed = after["disturbed"]["count"] - before["disturbed"]["count"]
    yield Number("packets_disturbed", disturbed, "packets", window=window)
    stalled = after["stalls"]["seconds"] - before["stalls"]["seconds"]
    yield Number("probe_stalled", stalled, "seconds", window=window)
    yield from _latencies(window, gained_buckets(before, after), after["latency"]["sum_s"] - before["latency"]["sum_s"])


def _latencies(window: str, buckets: Buckets, sum_s: float) -> Iterable[Number]:
    frames = sum(count for _, _, count in buckets)
    yield Number("packets_timed", frames, "packets", window=window)
    if not frames:
        yield Number("latency_p50", None, "seconds", window=window, note=probe_messages.nothing_arrived(window))
        return
    yield Number("latency_min", buckets[0][0], "seconds", window=window)
    yield Number("latency_mean", sum_s / frames, "seconds", window=window)
    yield Number("latency_max", buckets[-1][1], "seconds", window=window)
    for name, percent in PERCENTILES.items():
        yield Number(name, percentile(buckets, percent), "seconds", window=window)


def gained_buckets(before: Report, after: Report) -> Buckets:
    """The histogram of what came between two reports. Raises ``ValueError`` if there is less in the later one."""
    old, new = ({(low, high): count for low, high, count in report["latency"]["buckets"]} for report in (before, after))
    gained = Counter(new)
    gained.subtract(old)
    if any(count < 0 for count in gained.values()):
        raise ValueError("frame-probe's counts went back: its stream was started anew within a window")
    return [(low, high, count) for (low, high), count in sorted(gained.items()) if count]


def percentile(buckets: Buckets, percent: float) -> float:
    """The latency that ``percent`` of the frames do not exceed (nearest rank), to the width of a bucket, 1/256."""
    wanted = percent / 100 * sum(count for _, _, count in buckets)
    seen = 0
    for _low, high, count in buckets:
        seen += count
        if seen >= wanted:
            return high
    raise ValueError("no frames")


TRAFFIC = PacedFrames
