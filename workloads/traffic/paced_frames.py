# SPDX-License-Identifier: GPL-2.0-or-later
"""Single frames at a fixed pace, and how long each took from one end to the other: sent, received and timed by frame-probe.

Far below saturation a frame meets no queue: what it waits for is to be noticed, and what it takes is work. A frame is sent on time whether
or not the one before it arrived, so a stall delays none and hides none (no coordinated omission).

Frames that frame-probe found right after it had been away from its own CPU are counted (``packets_disturbed``) and not timed.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field, field_validator

from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Data, Headline
from vsprof.testbeds.base import MODELLED
from vsprof.workloads import messages
from vsprof.workloads.endpoints.probe import Probe
from vsprof.workloads.endpoints.probe_report import Latency, Report
from vsprof.workloads.traffic.base import Options, Sample, Traffic, Window, rates

PERCENTILES = {"latency_p50": 50, "latency_p90": 90, "latency_p99": 99, "latency_p999": 99.9}
STREAM = "stream"
"""The window name of what is counted over all frames; in modelled time over those of the windows."""
REPORTS, WHOLE = "windows.jsonl", "stream.json"
CLOCK = "clock.txt"
"""Whose time passed in the windows: see ``Testbed.clock``."""
COUNTS, LOST = ("offered", "received", "skipped", "reordered", "duplicates"), "lost"
DRAIN_S = 0.5


class PacedOptions(Options):
    load: str = "paced"
    period_us: float = Field(350, ge=1, le=1_000_000)

    @field_validator("load")
    @classmethod
    def _is_paced(cls, load: str) -> str:
        if load != "paced":
            raise ValueError(messages.other_load(load, "frames at a fixed pace", "paced"))
        return load


class PacedFrames(Traffic):
    words, rank, kind = "paced frames", 50, "frames"
    data = Data("packet", "packet received", "packet_rate_received")
    headlines = (
        Headline("latency_mean", "one way, mean", better="less"),
        Headline("latency_p99", "one way, 99th percentile", better="less"),
        Headline("latency_max", "one way, longest", better="less"),
        Headline("frames_lost", "lost", better="less"),
    )
    options = PacedOptions
    factors = frozenset({"frame_bytes"})
    needs_stack = False

    def unavailable(self) -> str | None:
        return super().unavailable() or self.topology.sender.can_not_pace(self.topology.receiver)

    def start(self) -> None:
        self._probe: Probe = self.topology.sender.probe()
        self._reports: list[Report] = []
        self._whole: Report | None = None
        self._probe.send(self._period_s(), self.frame_bytes)

    def asks_endpoints(self) -> bool:
        # Its frames' times are the probe's own.
        return True

    def check(self) -> None:
        before = self._probe.report().received
        time.sleep(5 * self._period_s())
        if self._probe.report().received == before:
            raise messages.endpoint_failed(self.topology.receiver.name, "no more frames arrive", self._probe.log())

    def sample(self) -> Sample:
        """From one report, so that what the ports say and what the frames say belong together."""
        report = self._probe.report()
        self._reports.append(report)
        return Sample(*report.counters())

    def before_own_windows(self) -> None:
        self._whole = self._probe.report()

    def stop(self) -> dict[str, str]:
        self._probe.pause()
        time.sleep(DRAIN_S)
        whole = self._whole or self._probe.report()
        reports = "".join(f"{report.model_dump_json()}\n" for report in self._reports)
        return {REPORTS: reports, WHOLE: whole.model_dump_json(), CLOCK: self.topology.host.clock}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        reports = [Report.model_validate_json(line) for line in raw[REPORTS].splitlines()]
        gained = []
        for window in windows:
            yield from rates(window)
            before, after = (_at(reports, sample) for sample in window.endpoints())
            gained.append(_gained(before, after))
            yield from _of_window(window.name, gained[-1], before, after)
        whole, modelled = Report.model_validate_json(raw[WHOLE]), raw.get(CLOCK) == MODELLED
        counts, longest, note = _counts(whole), whole.gap.longest_s, ""
        if modelled:
            # The stream begins and ends in the emulator's time, in which guests are held and frames are lost that no switch lost.
            counts, longest, note = {name: sum(one[name] for one in gained) for name in COUNTS}, None, messages.gap_in_two_times()
            # One may be under way at a window's end, and is not lost.
            counts[LOST] = sum(max(0, one[LOST] - 1) for one in gained)
        for name, count in counts.items():
            yield Number(f"packets_{name}", count, "packets", window=STREAM)
        yield Number("longest_gap", longest, "seconds", window=STREAM, note=note)

    def _period_s(self) -> float:
        assert isinstance(self.settings, PacedOptions)
        return self.settings.period_us / 1e6


def _at(reports: Iterable[Report], sample: Sample) -> Report:
    """The report that the sample was made of. Raises ``ValueError`` if there is none."""
    found = next((report for report in reports if report.clock_s == sample.sender.clock_s), None)
    if found is None:
        raise ValueError(f"{REPORTS} has no report of {sample.sender.clock_s}")
    return found


def _counts(report: Report) -> dict[str, int]:
    return {**{name: getattr(report, name) for name in COUNTS}, LOST: report.offered - report.received}


def _gained(before: Report, after: Report) -> dict[str, int]:
    """What is under way at either end of a window belongs to none: one frame more or less."""
    return {name: count - _counts(before)[name] for name, count in _counts(after).items()}


def _of_window(window: str, gained: Mapping[str, int], before: Report, after: Report) -> Iterable[Number]:
    for name, value in {**gained, "disturbed": after.disturbed.count - before.disturbed.count}.items():
        yield Number(f"packets_{name}", value, "packets", window=window)
    yield Number("probe_stalled", after.stalls.seconds - before.stalls.seconds, "seconds", window=window)
    yield from _latencies(window, after.latency.since(before.latency))


def _latencies(window: str, latency: Latency) -> Iterable[Number]:
    yield Number("packets_timed", latency.count, "packets", window=window)
    if not latency.count:
        yield Number("latency_p50", None, "seconds", window=window, note=messages.nothing_arrived(window))
        return
    yield Number("latency_min", latency.buckets[0][0], "seconds", window=window)
    yield Number("latency_mean", latency.sum_s / latency.count, "seconds", window=window)
    yield Number("latency_max", latency.buckets[-1][1], "seconds", window=window)
    for name, percent in PERCENTILES.items():
        yield Number(name, latency.percentile(percent), "seconds", window=window)


TRAFFIC = PacedFrames
