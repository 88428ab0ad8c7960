# SPDX-License-Identifier: GPL-2.0-or-later
"""Contenders that are all alive on this host, of which one at a time runs, for slices of a tenth of a second.

A neighbour on the same core slows whatever runs for seconds, and by a factor. Two slices that follow one another meet it alike, so a ratio
is taken of such ones only, in the order A B B A. Those that wait are frozen: their rings, caches of flows and memory stay as they are.
The counters are read through connections that stay open, by threads that go before the polling ones. An answer took 0.2 to 0.3 ms, so the
length of a slice is known to a third of a percent.

What disturbed is told beside the ratios: the time that the hypervisor took away, and how long a loop took between slices that a neighbour
on the same core must slow, because it uses all that the core can do at once.
"""

import bisect
import contextlib
import json
import math
import os
import random
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vsprof.bench import messages
from vsprof.testbeds.base import Testbed
from vsprof.testbeds.native import Native
from vsprof.workloads.endpoints.frame_flood import behind

SECONDS = 0.1
SETTLE_S = 0.015
"""From thawing to the slice: caches are full of others' lines, and one side of each ring has begun before the other."""
TRIES = 3
"""On a machine with other work an endpoint may get no CPU for the whole of a slice."""
ANSWER_SECONDS = 20
ANSWER_BYTES = 1 << 18
FIRST = os.sched_param(1)
ANSWERING = "telemet"
"""In the names of DPDK's threads that answer telemetry."""
LOOPS, LOOP_VALUES = 400, 1024
"""Additions of so many numbers, which fit into L1D with their sums: 0.4 ms here."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What one slice saw of a contender."""

    packets_per_second: float
    busy_cycles_per_packet: float | None = None
    """vhost-switch's alone, while it counts by stage."""
    behind: float | None = None
    """See ``frame_flood.behind``: where the ends are frame-flood."""
    middle: float = 0.0
    """When it was, by the monotonic clock, in seconds."""
    loop_s: float = math.inf
    """How long the calibration loop took, before or after it: the longer one."""


class Telemetry:
    """A connection to a DPDK program's telemetry that stays open."""

    def __init__(self, host: Testbed, prefix: str, pid: int) -> None:
        """``prefix``: EAL's --file-prefix of the program. Raises ``RunFailed`` where nobody answers, as ``ask`` does."""
        self._prefix = prefix
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_SECONDS)
        try:
            # A connection's thread is made by the one that listens, and goes first as it does.
            for task in Path(f"/proc/{pid}/task").iterdir():
                if ANSWERING in (task / "comm").read_text():
                    first(int(task.name))
            self._connect(host.socket(f"/run/dpdk/{prefix}/dpdk_telemetry.v2"))
        except OSError as error:
            self.close()
            raise messages.telemetry_silent(prefix, error) from error

    def _connect(self, path: Path) -> None:
        folder = os.open(path.parent, os.O_PATH)
        try:
            # Through the folder: the path itself can be longer than an address may be.
            self._socket.connect(f"/proc/self/fd/{folder}/{path.name}")
            self._socket.recv(ANSWER_BYTES)
        finally:
            os.close(folder)

    def ask(self, question: str) -> Any:
        try:
            self._socket.send(question.encode())
            return json.loads(self._socket.recv(ANSWER_BYTES))[question.partition(",")[0]]
        except (OSError, ValueError, LookupError) as error:
            raise messages.telemetry_silent(self._prefix, error) from error

    def close(self) -> None:
        self._socket.close()


class Contender:
    """A flood through a switch on a testbed of its own, frozen whenever it is not its turn."""

    def __init__(
        self,
        host: Native,
        packets: Callable[[], int],
        busy: Callable[[], Mapping[str, float]],
        sent: Callable[[], Mapping[str, float]] = dict,
        received: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """``packets``: those that the receiver has got; ``busy``: ``busy_cycles`` and ``timed_packets`` of the switch, if it counts them;
        ``sent``, ``received``: what frame-flood counted of each end, if it is they. All are asked in a slice, and must take no time."""
        self.host, self._packets, self._others = host, packets, (busy, sent, received)

    @contextlib.contextmanager
    def awake(self) -> Iterator[None]:
        self.host.thaw()
        try:
            yield
        finally:
            self.host.freeze()

    def slice(self, meanwhile: Callable[[], object] = lambda: time.sleep(SECONDS)) -> Slice:
        """Let it run for as long as ``meanwhile`` does. Raises ``RunFailed`` where nothing came, several times."""
        for _ in range(TRIES):
            with self.awake():
                time.sleep(SETTLE_S)
                others_before, (began, before) = [ask() for ask in self._others], self._counted()
                meanwhile()
                (ended, after), others_after = self._counted(), [ask() for ask in self._others]
            if after > before:
                timed, sent, received = (_grown(*each) for each in zip(others_before, others_after, strict=True))
                busy = timed["busy_cycles"] / timed["timed_packets"] if timed.get("timed_packets") else None
                rate, middle = (after - before) / (ended - began), (began + ended) / 2
                return Slice(rate, busy, behind(sent, received) if sent and received else None, middle)
        raise messages.nothing_in_slice(TRIES, ended - began)

    def _counted(self) -> tuple[float, int]:
        asked = time.monotonic()
        packets = self._packets()
        return (asked + time.monotonic()) / 2, packets


def _grown(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


class Disturbance:
    """What took the switch's CPU away, or slowed it, while slices lasted."""

    def __init__(self, cpu: int) -> None:
        self._cpu, self._began, self._stolen = cpu, time.monotonic(), _stolen_s(cpu)
        self._values = np.ones(LOOP_VALUES)
        self.loops: dict[float, float] = {}
        """Seconds that each took, by when it began; in order."""

    def look(self) -> None:
        """Run the loop once on the switch's CPU. Nothing else may want it."""
        home = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self._cpu})
        try:
            sums = np.empty(LOOP_VALUES)
            began = time.monotonic()
            for _ in range(LOOPS):
                np.add(self._values, self._values, out=sums)
            self.loops[began] = time.monotonic() - began
        finally:
            os.sched_setaffinity(0, home)

    def stolen(self) -> float:
        """The share of the time that the hypervisor gave to others while the CPU wanted to run."""
        return (_stolen_s(self._cpu) - self._stolen) / (time.monotonic() - self._began)

    def slowed(self) -> float:
        """How much longer the slowest twentieth of the loops took than the median one; 0: not at all."""
        took = [*self.loops.values()]
        return float(np.quantile(took, 0.95)) / statistics.median(took) - 1 if took else math.nan

    def beside(self, one: Slice) -> Slice:
        """The same with its ``loop_s``: loops were looked at before it and after it."""
        began, took = [*self.loops], [*self.loops.values()]
        after = bisect.bisect(began, one.middle)
        return replace(one, loop_s=max(took[max(after - 1, 0) : after + 1]))


def ratio(one: Callable[[], float], other: Callable[[], float], between: Callable[[], None] = lambda: None) -> float:
    """``one`` over ``other``, by the geometric means of two looks at each in the order A B B A, whose first is chosen by chance: what
    drifts steadily cancels. ``between`` is called before each look."""
    first, second = random.sample((one, other), 2)
    logs: dict[Callable[[], float], float] = {one: 0.0, other: 0.0}
    for look in (first, second, second, first):
        between()
        logs[look] += math.log(look())
    return math.exp((logs[one] - logs[other]) / 2)


@contextlib.contextmanager
def before_others() -> Iterator[None]:
    """While it lasts, this process comes before all that poll on its CPU; what it starts does not."""
    policy, given = os.sched_getscheduler(0), os.sched_getparam(0)
    first(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, given)


def first(thread: int) -> None:
    """Let a thread run whenever it wants to, unless this process may not say so: its answers then come later, and no more."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(thread, os.SCHED_FIFO | (os.SCHED_RESET_ON_FORK if thread == 0 else 0), FIRST)


def _stolen_s(cpu: int) -> float:
    """Since the boot (proc_stat(5): the eighth number)."""
    line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith(f"cpu{cpu} "))
    return int(line.split()[8]) / os.sysconf("SC_CLK_TCK")
