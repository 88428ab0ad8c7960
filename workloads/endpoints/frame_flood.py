# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-flood (dataplane/flood) as the ends of a path: they cost so little that the switch between them is the limit.

It is told what to do, and asked what came, by DPDK's telemetry; dataplane/flood/README.md has the words.
"""

import json
import shlex
import time
from collections.abc import Mapping, Sequence

from vsprof.terms.placement import Thread
from vsprof.testbeds import dpdk_telemetry
from vsprof.testbeds.base import Process, Testbed
from vsprof.testbeds.threads import threads_of
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import PATIENCE_S, Flood, Frames
from vsprof.workloads.endpoints.own_programs import FRAME_FLOOD
from vsprof.workloads.endpoints.virtio_paths import Path

READY = "frame-flood: ready"
"""What it says once it listens."""
RING = 1024
"""Descriptors, and so many flows at most."""
START_SECONDS = 30
PORT = "/frame_flood/port"


class FrameFlood:
    """A frame-flood with ``ports``: the arguments of each. The first of ``cpus`` polls the first port, and so on, in turns."""

    def __init__(self, host: Testbed, name: str, ports: Sequence[str], cpus: Sequence[int], path: Path) -> None:
        self._host, self.name = host, name
        FRAME_FLOOD.bring(host)
        features = [f"--{word}" for word, state in (("packed", path.packed), ("mergeable", path.mrg_rxbuf)) if state == "on"]
        words = [
            FRAME_FLOOD.path, "--in-memory", "-m", "16", "--no-pci", f"--file-prefix={name}",
            # The first lcore only speaks to the switch: on a CPU that another one polls.
            "--lcores", ",".join(f"{number}@{cpu}" for number, cpu in enumerate((cpus[-1], *cpus))),
            "--", f"--ring={RING}", *features, *(word for port in ports for word in ("--port", port)),
        ]  # fmt: skip
        self._process: Process = host.start(name, shlex.join(words), cpus=sorted(set(cpus)))
        try:
            self._await_ready()
        except BaseException:
            # Nobody stops what was never made.
            self.stop()
            raise

    def tell(self, *words: object) -> None:
        """Give it a command of dataplane/flood/README.md's, and its parameters. Raises ``RunFailed`` where it refuses."""
        command, *parameters = map(str, words)
        question = f"/frame_flood/{command}"
        asked = dpdk_telemetry.command(self.name, [f"{question},{','.join(parameters)}"])
        answer = json.loads(self._host.run(asked, timeout=PATIENCE_S).stdout)[question]
        if (answer or {}).get("said") != "ok":
            raise messages.endpoint_failed(self.name, f"{' '.join(map(str, words))}: {answer}", self.log())

    def counted(self, port: int) -> Mapping[str, int]:
        """All that it counted of a port."""
        asked = dpdk_telemetry.command(self.name, [question(port)])
        found: Mapping[str, int] = json.loads(self._host.run(asked, timeout=PATIENCE_S).stdout)[PORT]
        return found

    def log(self) -> str:
        return self._process.log()

    def threads(self) -> list[Thread]:
        found = threads_of(self._host, self._process.pid)
        return [
            Thread(f"{self.name}:{name}", tid, "guest" if name.startswith("dpdk-worker") else "host-other", cpus)
            for tid, name, cpus in found
        ]

    def processes(self) -> list[Process]:
        return [self._process]

    def stop(self) -> None:
        self._process.stop()

    def _await_ready(self) -> None:
        patience = self._host.patience(START_SECONDS)
        while READY not in (log := self._process.log()):
            if not self._process.alive() or patience.over():
                raise messages.endpoint_failed(self.name, "frame-flood did not get ready", log)
            time.sleep(0.05)


class RingFlood(Flood):
    """A flood out of port ``port`` of a frame-flood, as fast as the switch takes frames."""

    def __init__(self, program: FrameFlood, port: int, frames: Frames) -> None:
        self._program, self._port, self._frames = program, port, frames

    def prepare(self) -> None:
        """Nothing: frames are laid out at the start, when those of an earlier flood have come back from the switch."""

    def start(self) -> None:
        self._program.tell("start", self._port, self._frames.size, self._frames.flows, self._frames.target_mac)

    def ended(self) -> str | None:
        return None if all(process.alive() for process in self._program.processes()) else self._program.log()

    def stop(self) -> dict[str, str]:
        self._program.tell("stop", self._port)
        return {"frame-flood.json": json.dumps(self._program.counted(self._port))}


def question(port: int) -> str:
    """To telemetry, which has a port's counters for an answer."""
    return f"{PORT},{port}"


def can_not_flood(name: str, flows: int) -> str | None:
    """Why it can't send a flood of so many flows, or None."""
    return messages.too_many_flows_of_a_ring(name, flows, RING) if flows > RING else None


def behind(sender: Mapping[str, float], receiver: Mapping[str, float]) -> float:
    """How often the ends were the limit, by what a flood's sender and receiver counted meanwhile: the share of the rounds in which the
    switch had taken all that was sent, or had filled all the room."""
    return max(sender["sent_dry"] / max(1, sender["send_rounds"]), receiver["received_full"] / max(1, receiver["receive_rounds"]))
