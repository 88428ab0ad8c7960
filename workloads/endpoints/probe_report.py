# SPDX-License-Identifier: GPL-2.0-or-later
"""What frame-probe reports (dataplane/probe/README.md has its fields), and what lies between two reports. Seconds, and frames."""

from collections import Counter

from pydantic import BaseModel, ConfigDict, Field

from vsprof.workloads.endpoints.base import Counters

Buckets = list[tuple[float, float, int]]
"""Lowest and highest latency [s], and the number of frames; in ascending order."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Latency(_Part):
    count: int
    sum_s: float
    buckets: Buckets

    def since(self, before: "Latency") -> "Latency":
        """What was added after ``before``. Raises ``ValueError`` if that is less than nothing."""
        gained = Counter({(low, high): count for low, high, count in self.buckets})
        gained.subtract({(low, high): count for low, high, count in before.buckets})
        if any(count < 0 for count in gained.values()):
            raise ValueError("frame-probe's counts went back: its stream was restarted between two reports")
        buckets = [(low, high, count) for (low, high), count in sorted(gained.items()) if count]
        return Latency(count=sum(gained.values()), sum_s=self.sum_s - before.sum_s, buckets=buckets)

    def percentile(self, percent: float) -> float:
        """What ``percent`` of the frames do not exceed (nearest rank), to the width of a bucket. Raises ``ValueError`` without any."""
        wanted, seen = percent / 100 * self.count, 0
        for _, high, count in self.buckets:
            seen += count
            if seen >= wanted:
                return high
        raise ValueError("no frames")


class Gap(_Part):
    longest_s: float
    began_s: float
    open: bool


class Stalls(_Part):
    count: int
    seconds: float
    longest_s: float


class Port(_Part):
    received_packets: int
    received_bytes: int
    sent_packets: int
    sent_bytes: int


class Report(_Part):
    """Everything counted since the stream began. Reading one raises ``ValueError`` on what frame-probe did not print."""

    clock_s: float
    arrived: int
    offered: int
    sent: int
    skipped: int
    received: int
    reordered: int
    duplicates: int
    gap: Gap
    stalls: Stalls
    latency: Latency
    disturbed: Latency
    ports: tuple[Port, ...] = Field(min_length=1, max_length=2)

    def counters(self) -> tuple[Counters, Counters]:
        """What the port that sends and the one that receives counted; they may be the same."""
        return self._counted(self.ports[0]), self._counted(self.ports[-1])

    def _counted(self, port: Port) -> Counters:
        return Counters(self.clock_s, port.received_packets, port.received_bytes, port.sent_packets, port.sent_bytes)
