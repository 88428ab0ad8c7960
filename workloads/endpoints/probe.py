# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-probe (dataplane/probe) as both ends of a path: frames at a pace, each timed by one clock.

It is told what to do over its control socket, one command a line; what it reports is described in dataplane/probe/README.md.
"""

import abc
import shlex
import time
from collections.abc import Mapping, Sequence

from vsprof.testbeds.base import Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import PATIENCE_S, RUN, Flood, Frames
from vsprof.workloads.endpoints.own_programs import FRAME_PROBE, OwnProcess
from vsprof.workloads.endpoints.probe_report import Report

PROGRAM = FRAME_PROBE.path
VARIABLE = FRAME_PROBE.variable
unavailable = FRAME_PROBE.unavailable
READY = f"{FRAME_PROBE.name}: ready"
"""What it says once it listens."""
MEMORY_MIB = 128
FASTEST_PPS = 100_000_000
"""The highest rate that it can be told: more than it reaches."""
LARGEST_BURST = 32
"""Frames that it sends at once at most."""
FLOW_SECONDS = 30
"""How long the first frame may take: the switch looks for its ports again once a second, and an emulated host is slow."""
LONGEST_S = 86400
LOOK_PERIOD_S, LOOK_DRAIN_S = 1e-3, 0.1
"""Before a flood: the pace of the frames by which its path is seen to be up, and how long the last of them may be under way."""
FILE = "probe.json"
# $1: the socket, then the commands.
ASK = r"""
import socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect(sys.argv[1])
    lines = asked.makefile("rw")
    for command in sys.argv[2:]:
        lines.write(command + "\n")
        lines.flush()
        print(lines.readline(), end="")
"""


class Probe(abc.ABC):
    """A frame-probe: it sends from its first port and receives on its last one. ``name``: of its process."""

    name: str

    def send(self, period_s: float, frame_bytes: int) -> None:
        """Let frames flow at a pace, counted from zero once they arrive. Raises ``RunFailed`` when none does."""
        self.begin(period_s, frame_bytes)
        end = time.monotonic() + FLOW_SECONDS
        while not self.report().arrived:
            if self.ended() or time.monotonic() > end:
                raise messages.nothing_arrives(FLOW_SECONDS, self.log())
            time.sleep(0.1)
        # Again: until the switch had found its ports, frames were lost that are none of its losses.
        self.begin(period_s, frame_bytes)

    def begin(self, period_s: float, frame_bytes: int, *, count_all: bool = False) -> None:
        """Let frames flow at a pace over a path that is known to be up. ``count_all``: the first ones, too, which count as warm-up else."""
        self._tell(start_command(period_s, frame_bytes, count_all=count_all))

    def pause(self) -> None:
        """Send no more; what is under way is still received."""
        self._tell("stop")

    def report(self) -> Report:
        """Everything counted since ``send``."""
        return _read(self._ask("report"))

    @abc.abstractmethod
    def log(self) -> str:
        """What it printed so far."""

    @abc.abstractmethod
    def ended(self) -> str | None:
        """What it printed if it ended by itself; None while it runs."""

    @abc.abstractmethod
    def _ask(self, command: str) -> str:
        """Its answer, a line, to a command over its control socket. Raises ``RunFailed`` where none comes."""

    def _tell(self, command: str) -> None:
        accept(command, self._ask(command))


class HostProbe(OwnProcess, Probe):
    """A frame-probe on the host itself, with ``devices``. It polls on the first of ``cpus``."""

    def __init__(
        self, host: Testbed, name: str, devices: Sequence[str], cpus: Sequence[int], more: Sequence[str] = (), cards: Sequence[str] = ()
    ) -> None:
        """``more``: options of EAL. ``cards``: network cards that are ports, too, by their PCI addresses."""
        self._socket = f"{RUN}/{name}.control"
        allowed = [word for card in cards for word in ("-a", card)] or ["--no-pci"]
        words = [
            "--in-memory", "--single-file-segments", "-m", str(MEMORY_MIB), *allowed, f"--file-prefix={name}",
            # The first lcore only listens: on another CPU than the one that polls, where there is one.
            "--lcores", f"0@{cpus[-1]},1@{cpus[0]}",
            *(f"--vdev={device}" for device in devices), *more,
            "--", "--control", self._socket, "--seconds", str(LONGEST_S),
        ]  # fmt: skip
        super().__init__(host, FRAME_PROBE, name, words, cpus)

    def stop(self) -> None:
        super().stop()
        self._host.run(f"rm -f {self._socket}", check=False)

    def flow(self, period_s: float, frame_bytes: int) -> None:
        """As ``begin``: all count, and frames that are due at once go at once."""
        self._tell(start_command(period_s, frame_bytes, count_all=True, burst=LARGEST_BURST))

    def settle(self) -> None:
        """After ``pause``: wait until nothing comes any more."""
        _read(self._ask("wait"))

    def burst(self, count: int, period_s: float, frame_bytes: int) -> Report:
        """Let so many frames flow, and wait until none comes any more; everything counted of them. Meanwhile nobody is asked anything."""
        command = start_command(period_s, frame_bytes, count_all=True, burst=LARGEST_BURST, count=count)
        begun, _, report = self._ask(command, "wait").partition("\n")
        accept(command, begun)
        return _read(report)

    def _ask(self, *commands: str) -> str:
        asked = self._host.run(shlex.join(["python3", "-S", "-c", ASK, self._socket, *commands]), timeout=PATIENCE_S, check=False)
        if asked.status != 0:
            raise messages.refused(f"{asked.stderr}\n{self.log()}")
        return asked.stdout


class ProbeFlood(Flood):
    """A flood at a given rate: one frame each period, of one flow. A moment that the probe misses is skipped, never made up for."""

    def __init__(self, probe: Probe, frames: Frames) -> None:
        self._probe, self._period_s, self._frame_bytes = probe, 1 / (frames.rate_pps or FASTEST_PPS), frames.frame_bytes

    def prepare(self) -> None:
        # Until the switch has found the ports, frames are lost that are none of its losses.
        self._probe.send(LOOK_PERIOD_S, self._frame_bytes)
        self._probe.pause()
        time.sleep(LOOK_DRAIN_S)

    def start(self) -> None:
        self._probe.begin(self._period_s, self._frame_bytes, count_all=True)

    def ended(self) -> str | None:
        return self._probe.ended()

    def stop(self) -> dict[str, str]:
        self._probe.pause()
        return {FILE: self._probe.report().model_dump_json()}

    def due(self, printed: Mapping[str, str]) -> int:
        return due(printed, self._period_s)


def due(printed: Mapping[str, str], period_s: float) -> int:
    """Frames that a pace made due, by what was printed of a flood that is over."""
    report = Report.model_validate_json(printed[FILE])
    # What it skipped because its CPU was taken away is no sign that it can't keep the pace: nothing was due then.
    return report.offered + max(0, report.skipped - int(report.stalls.seconds / period_s))


def start_command(period_s: float, frame_bytes: int, *, count_all: bool = False, burst: int = 1, count: int = 0) -> str:
    """The command to begin. ``burst``: frames that go at once at most; ``count``: with how many it ends, 0: it does not."""
    return (
        f"start period-us={period_s * 1e6:.9g} frame-bytes={frame_bytes}{' warmup=0' if count_all else ''}"
        f"{f' burst={burst}' if burst > 1 else ''}{f' count={count}' if count else ''}"
    )


def accept(command: str, answer: str) -> None:
    """Raise ``RunFailed`` where frame-probe did not take a command."""
    if answer.strip() != "ok":
        raise messages.refused(f"{command}: {answer}")


def _read(answer: str) -> Report:
    try:
        return Report.model_validate_json(answer)
    except ValueError:
        raise messages.refused(answer) from None
