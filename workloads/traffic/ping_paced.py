# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests at a fixed rate, each answered: ping's round trip, as percentiles.

ping sends on time whether or not an answer came, so a stall delays no request and hides none (no coordinated omission).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from hdrh.histogram import HdrHistogram
from pydantic import Field, field_validator

from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Data, Headline
from vsprof.workloads import messages
from vsprof.workloads.traffic.base import Options, Traffic, Window

PERCENTILES = {"rtt_p50": 50, "rtt_p90": 90, "rtt_p99": 99, "rtt_p999": 99.9}
FEWEST_REQUESTS = 20
"""In a window: fewer have no percentiles to speak of."""
SAME_RATE = 0.01
"""A fraction: by so much a rate may differ from that of a whole number of milliseconds. 333 is 3 ms."""
_REPLY = re.compile(r"^\[(?P<clock>\d+\.\d+)\] \d+ bytes from .* icmp_seq=(?P<number>\d+) .*time=(?P<ms>[\d.]+) ms", re.MULTILINE)


def interval_ms(rate_hz: float) -> int:
    """Between two requests: ping (iputils) takes whole milliseconds, and cuts the rest off."""
    return round(1000 / rate_hz)


class PingOptions(Options):
    load: str = "paced"
    rate_hz: float = Field(100, gt=0, le=1000)

    @field_validator("rate_hz")
    @classmethod
    def _is_whole_milliseconds(cls, rate_hz: float) -> float:
        if abs(1000 / rate_hz / interval_ms(rate_hz) - 1) > SAME_RATE:
            raise ValueError(messages.no_whole_milliseconds(rate_hz))
        return rate_hz

    @field_validator("load")
    @classmethod
    def _is_paced(cls, load: str) -> str:
        if load != "paced":
            raise ValueError(messages.other_load(load, "ping_paced", "paced"))
        return load


class PingPaced(Traffic):
    words, rank, kind = "paced ping", 40, "requests"
    # A request and an answer.
    data = Data("reply", "reply", "replies", rate=False, modelled="model_icmp_messages", modelled_scale=0.5)
    headlines = (
        Headline("rtt_p50", "round trip, median", better="less"),
        Headline("rtt_p99", "round trip, 99th percentile", better="less"),
    )
    options = PingOptions

    def least_seconds(self) -> float:
        settings = self.settings
        assert isinstance(settings, PingOptions)
        return FEWEST_REQUESTS / settings.rate_hz

    def asks_endpoints(self) -> bool:
        # ping's lines have the sender's clock.
        return True

    def start(self) -> None:
        settings = self.settings
        assert isinstance(settings, PingOptions)
        sender = self.topology.sender
        self._job = sender.spawn(
            f"ping -D -i {interval_ms(settings.rate_hz) / 1000:.3f} {self.topology.receiver.address} > /tmp/ping.txt 2>&1", may_fail=True
        )

    def check(self) -> None:
        if self._job.finished():
            sender = self.topology.sender
            raise messages.endpoint_failed(sender.name, "ping ended early", sender.run("cat /tmp/ping.txt"))

    def stop(self) -> dict[str, str]:
        settings = self.settings
        assert isinstance(settings, PingOptions)
        sender = self.topology.sender
        sender.kill("ping", "INT")
        self._job.result(30)
        return {"ping.txt": sender.run("cat /tmp/ping.txt"), "rate_hz.txt": str(settings.rate_hz)}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        answered = replies(raw["ping.txt"])
        for window in windows:
            before, after = window.endpoints()
            yield Number("window_seconds", after.sender.clock_s - before.sender.clock_s, "seconds", window=window.name)
            yield Number("request_rate", float(raw["rate_hz.txt"]), "packets/s", window=window.name)
            yield from _latency(window, answered)


def replies(text: str) -> list[tuple[float, int, float]]:
    """ping -D's answers as (sender's clock, sequence number, round trip in seconds)."""
    return [(float(m["clock"]), int(m["number"]), float(m["ms"]) / 1000) for m in _REPLY.finditer(text)]


def _latency(window: Window, answered: Sequence[tuple[float, int, float]]) -> Iterable[Number]:
    begin, end = (sample.sender.clock_s for sample in window.endpoints())
    # A request belongs to the window in which it was sent.
    inside = [(number, rtt) for clock, number, rtt in answered if begin <= clock - rtt < end]
    if not inside:
        yield Number("rtt_p50", None, "seconds", window=window.name, note="no request of this window was answered")
        return
    numbers = [number for number, _ in inside]
    yield Number("requests", max(numbers) - min(numbers) + 1, "packets", window=window.name)
    yield Number("replies", len(set(numbers)), "packets", window=window.name)
    trips = [rtt for _, rtt in inside]
    yield Number("rtt_min", min(trips), "seconds", window=window.name)
    yield Number("rtt_mean", sum(trips) / len(trips), "seconds", window=window.name)
    yield Number("rtt_max", max(trips), "seconds", window=window.name)
    # Nanoseconds up to a minute, to three digits.
    histogram = HdrHistogram(1, 60_000_000_000, 3)
    for rtt in trips:
        histogram.record_value(round(rtt * 1e9))
    for name, percentile in PERCENTILES.items():
        yield Number(name, histogram.get_value_at_percentile(percentile) / 1e9, "seconds", window=window.name)


TRAFFIC = PingPaced
