# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch's own histograms of a poll-mode thread, as ``dpif-netdev/pmd-perf-show`` prints them, and the load of its receive queues.

A bin has its upper bound and how often a value fell into it since the thread started; the last one has no bound. What is sampled, and when
(Open vSwitch, lib/dpif-netdev-perf.h): cycles and packets of every iteration; cycles per packet of those that received any; packets of each
batch; the fullest vhost queue and the upcalls of every iteration; cycles of each upcall.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vsprof.terms.schema import Number

TITLE = "Histograms"
COLUMNS = ("cycles/it", "packets/it", "cycles/pkt", "pkts/batch", "max vhost qlen", "upcalls/it", "cycles/upcall")
"""The names in the table's head, in its order."""
BINS = {"packets/it": "pmd_iteration_packets", "pkts/batch": "pmd_batch_packets", "max vhost qlen": "pmd_queue_fill"}
"""Told bin by bin, by our names: over windows and repetitions bins can be summed, where quantiles can't."""
QUANTILES = {
    "cycles/it": ("pmd_iteration_cycles", "TSC cycles"),
    "cycles/pkt": ("pmd_packet_cycles", "TSC cycles"),
    "upcalls/it": ("pmd_iteration_upcalls", "events"),
    "cycles/upcall": ("pmd_upcall_cycles", "TSC cycles"),
}
PARTS = {"p50": 0.5, "p99": 0.99}
SUSPICIOUS_US, SUSPICIOUS_FILL = 250, 128
"""From where on Open vSwitch itself calls an iteration suspicious (``pmd-perf-log-set``): it took so long; a queue had so many frames."""
RXQ_SECONDS = 5
"""The shortest time over which Open vSwitch tells a queue's load."""

_BIN = re.compile(r"(?:\d+|>) +\d+")
_DURATION = re.compile(r"^Measurement duration: ([\d.]+) s", re.MULTILINE)
_USED = re.compile(r"Used TSC cycles: +(\d+) +\( *([\d.]+) % of total cycles\)")
_RXQ = re.compile(r"^ +port: (\S+) +queue-id: +(\d+) .*pmd usage: +(?:(\d+) %|NOT AVAIL)", re.MULTILINE)
_THREAD = re.compile(r"^pmd thread numa_id \d+ core_id (\d+):$", re.MULTILINE)


@dataclass(frozen=True)
class Histogram:
    """Upper bounds of bins, the last infinite, and how often a value fell into each."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]

    def since(self, before: "Histogram") -> "Histogram":
        """What fell into them since. Raises ``ValueError`` if the bins are others, or one lost some."""
        if self.bounds != before.bounds:
            raise ValueError("the bins of a histogram are others at the end than at the begin")
        gained = tuple(now - then for now, then in zip(self.counts, before.counts, strict=True))
        if min(gained, default=0) < 0:
            raise ValueError("a histogram has less at the end than at the begin: its counts were cleared")
        return Histogram(self.bounds, gained)

    def quantile(self, part: float) -> float | None:
        """The bound at or below which that part of the values lies; None without values, infinite in the last bin."""
        total, seen = sum(self.counts), 0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            seen += count
            if count and seen >= math.ceil(part * total):
                return bound
        return None

    def above(self, least: float) -> int:
        """How many lie in bins of which no value is below ``least``."""
        lower = (-1.0, *self.bounds)
        return sum(count for below, count in zip(lower, self.counts, strict=False) if below + 1 >= least)


def read(text: str) -> dict[int, dict[str, Histogram]]:
    """By CPU and by name in the table's head; threads without histograms are left out."""
    return {cpu: found for cpu, part in _by_thread(text) if (found := _read(part))}


def _by_thread(text: str) -> Iterable[tuple[int, str]]:
    marks = list(_THREAD.finditer(text))
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)], strict=False):
        yield int(mark[1]), text[mark.end() : end]


def _read(text: str) -> dict[str, Histogram]:
    lines = iter(text.partition(f"\n{TITLE}\n")[2].splitlines())
    if " ".join(next(lines, "").split()) != " ".join(COLUMNS):
        return {}
    bounds: list[list[float]] = [[] for _ in COLUMNS]
    counts: list[list[int]] = [[] for _ in COLUMNS]
    for line in lines:
        bins = [one.split() for one in _BIN.findall(line)]
        if len(bins) != len(COLUMNS):
            break
        for place, (bound, count) in enumerate(bins):
            bounds[place].append(math.inf if bound == ">" else float(bound))
            counts[place].append(int(count))
    return {name: Histogram(tuple(bounds[at]), tuple(counts[at])) for at, name in enumerate(COLUMNS) if bounds[at][-1:] == [math.inf]}


def hertz(text: str, cpu: int) -> float | None:
    """The time-stamp counter's, by what a thread used of it in the time told; None where that is not told."""
    part = dict(_by_thread(text)).get(cpu, "")
    duration, used = _DURATION.search(text), _USED.search(part)
    if not duration or not used or not float(duration[1]) or not float(used[2]):
        return None
    return int(used[1]) / (float(used[2]) / 100) / float(duration[1])


def numbers(gained: Mapping[str, Histogram], hz: float | None, cpu: int, seconds: float) -> Iterable[Number]:
    """Of one thread in one window."""
    where = ("switch", cpu, "all", seconds, seconds)
    for name, ours in BINS.items():
        for bound, count in zip(gained[name].bounds, gained[name].counts, strict=True):
            yield Number(f"{ours}_{'more' if math.isinf(bound) else f'to_{bound:.0f}'}", count, "events", *where)
    for name, (ours, unit) in QUANTILES.items():
        for word, part in PARTS.items():
            value = gained[name].quantile(part)
            if value is None or math.isinf(value):
                why = "nothing of the kind in this window" if value is None else "beyond the last bin of Open vSwitch's histogram"
                yield Number(f"{ours}_{word}", None, unit, "switch", cpu, note=why)
            else:
                yield Number(f"{ours}_{word}", value, unit, *where)
    if hz is None:
        yield Number("pmd_long_iterations", None, "events", "switch", cpu, note="Open vSwitch did not say how long a cycle is")
    else:
        yield Number("pmd_long_iterations", gained["cycles/it"].above(SUSPICIOUS_US * 1e-6 * hz), "events", *where)
    yield Number("pmd_full_queue_iterations", gained["max vhost qlen"].above(SUSPICIOUS_FILL), "events", *where)


def queues(text: str, cpus: Sequence[int], seconds: float) -> Iterable[Number]:
    """What part of a thread's cycles each of its receive queues took in the last seconds of the window."""
    for cpu, part in _by_thread(text):
        for port, queue, percent in _RXQ.findall(part) if cpu in cpus else ():
            name, where = f"rxq_load_{port}_{queue}", ("switch", cpu)
            if not percent or seconds < RXQ_SECONDS:
                why = "not told" if not percent else f"the window is shorter than the {RXQ_SECONDS} s over which it is told"
                yield Number(name, None, "fraction", *where, note=why)
            else:
                yield Number(name, int(percent) / 100, "fraction", *where)
