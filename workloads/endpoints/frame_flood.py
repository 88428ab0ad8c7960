# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-flood (dataplane/flood) as the ends of a path: they cost so little that the switch between them is the limit.

It is told what to do, and asked what came, by DPDK's telemetry; dataplane/flood/README.md has the words.
"""

import json
from collections.abc import Mapping, Sequence

from vsprof.testbeds import dpdk_telemetry
from vsprof.testbeds.base import Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import PATIENCE_S, Flood, Frames
from vsprof.workloads.endpoints.own_programs import FRAME_FLOOD, OwnProcess
from vsprof.workloads.endpoints.virtio_paths import Path

RING = 1024
"""Descriptors, and so many flows at most."""
PORT = "/frame_flood/port"
FILE = "frame-flood.json"


class FrameFlood(OwnProcess):
    """A frame-flood with ``ports``: the arguments of each. The first of ``cpus`` polls the first port, and so on, in turns."""

    def __init__(self, host: Testbed, name: str, ports: Sequence[str], cpus: Sequence[int], path: Path) -> None:
        features = [f"--{word}" for word, state in (("packed", path.packed), ("mergeable", path.mrg_rxbuf)) if state == "on"]
        words = [
            "--in-memory", "-m", "16", "--no-pci", f"--file-prefix={name}",
            # The first lcore only speaks to the switch: on a CPU that another one polls.
            "--lcores", ",".join(f"{number}@{cpu}" for number, cpu in enumerate((cpus[-1], *cpus))),
            "--", f"--ring={RING}", *features, *(word for port in ports for word in ("--port", port)),
        ]  # fmt: skip
        self.ports = len(ports)
        super().__init__(host, FRAME_FLOOD, name, words, cpus)

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


class RingFlood(Flood):
    """A flood out of port ``port`` of a frame-flood, as fast as the switch takes frames."""

    def __init__(self, program: FrameFlood, port: int, frames: Frames) -> None:
        self._program, self._port, self._frames = program, port, frames

    def prepare(self) -> None:
        """Nothing: frames are laid out at the start, when those of an earlier flood have come back from the switch."""

    def start(self) -> None:
        one = self._frames
        self._before = self._counted()
        self._program.tell("start", self._port, one.size, one.flows, one.target_mac, one.source_address, one.target_address)

    def ended(self) -> str | None:
        return self._program.ended()

    def stop(self) -> dict[str, str]:
        self._program.tell("stop", self._port)
        grown = [{name: after[name] - before[name] for name in before} for before, after in zip(self._before, self._counted(), strict=True)]
        return {FILE: json.dumps({"sender": grown[self._port], "others": grown[: self._port] + grown[self._port + 1 :]})}

    def _counted(self) -> list[Mapping[str, int]]:
        return [self._program.counted(port) for port in range(self._program.ports)]


def question(port: int) -> str:
    """To telemetry, which has a port's counters for an answer."""
    return f"{PORT},{port}"


def can_not_flood(name: str, flows: int) -> str | None:
    """Why it can't send a flood of so many flows, or None."""
    return messages.too_many_flows_of_a_ring(name, flows, RING) if flows > RING else None


def behind(sender: Mapping[str, float], *others: Mapping[str, float]) -> float:
    """How often the ends were the limit, by what a flood's sender and the other ends counted meanwhile: the share of the rounds in which
    the switch had taken all that was sent, or had filled all the room of an end."""
    full = (other["received_full"] / max(1, other["receive_rounds"]) for other in others)
    return max(sender["sent_dry"] / max(1, sender["send_rounds"]), *full, 0.0)


def behind_in(text: str) -> float:
    """The same from ``FILE`` of a flood. Raises ``ValueError`` on anything else."""
    try:
        read = json.loads(text)
        return behind(read["sender"], *read["others"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not what frame-flood counted: {text[:200]!r}") from error
