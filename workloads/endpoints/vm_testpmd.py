# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's testpmd in a virtual machine: it floods, swallows what it gets, or sends it back."""

import re
import shlex
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import Counters, Flood, Frames
from vsprof.workloads.endpoints.vm_dpdk import LOG, LOOK_S, DpdkVm, until

INPUT = "/run/testpmd.in"
READY = "testpmd> "
MEMORY_MIB, MBUFS = 64, 8192
_COUNTS = re.compile(r"(?P<way>RX|TX)-packets: (?P<packets>\d+) .*?(?P=way)-bytes: +(?P<bytes>\d+)")


class TestpmdVm(DpdkVm):
    __test__ = False
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {**DpdkVm.options, "queues": ("1", "2", "4")}
    """``queues``: pairs of rings of its interface, all served by the one thread that polls; only where a switch reads them itself."""

    def __init__(self, *place: Any, options: Mapping[str, str] = {}, **how: Any) -> None:
        """As ``Vm``. With the option ``forwarding``, testpmd's mode (``io``, ``mac``), it sends back what it gets, once that is begun."""
        super().__init__(*place, options=options, **how)
        self._forwarding = options.get("forwarding", "")
        self.sends_and_receives = options.get("ways") == "both"

    def flood(self, frames: Frames) -> Flood:
        return TestpmdFlood(self, frames)

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        return messages.no_pace(self.name) if paced else None

    def counters(self) -> Counters:
        said, clock = self.tell("show port stats 0"), self.ask("guest-get-time")
        return counters_of(said, clock / 1e9)

    def tell(self, *commands: str) -> str:
        """Give testpmd commands, wait until it is through with them, and return what it said. Raises ``RunFailed`` if it ends instead."""
        # It knows neither mark, and says so: what lies between is the commands', and the second shows that all before it were done.
        begin, end = (f"{mark}{time.monotonic_ns()}" for mark in ("begin", "end"))
        told = f"printf '%s\\n' {shlex.join([begin, *commands, end])} > {INPUT}; {until(end)}; sed -n '/{begin}/,$p' {LOG}"
        said = self.run(told, seconds=120)
        if end not in said:
            raise messages.endpoint_failed(self.name, f"testpmd did not get through {'; '.join(commands)}", said or self.log())
        return said

    def serve(self, mode: str, *more: str) -> None:
        """Let a testpmd serve the interface, in the place of any that did. ``mode``: its forwarding mode; ``more``: options of its own.
        ``await_program(READY)`` waits for it."""
        self.run(f"[ -p {INPUT} ] || mkfifo {INPUT}")
        if self._job is not None:
            self.run(f"echo quit > {INPUT}; while pidof dpdk-testpmd > /dev/null; do sleep {LOOK_S}; done", seconds=120)
        queues = [f"--{way}xq={self.chosen['queues']}" for way in "rt"]
        own = [
            "--interactive",
            f"--forward-mode={mode}",
            "--port-topology=loop",
            "--no-mlockall",
            f"--total-num-mbufs={MBUFS}",
            *queues,
            *more,
        ]
        self.launch("dpdk-testpmd", ["-m", str(MEMORY_MIB)], own, INPUT)

    def forward(self, on: bool) -> str:
        return self.tell("start" if on else "stop")

    def begin(self) -> None:
        self.serve(self._forwarding or "rxonly")

    def finish(self) -> None:
        self.await_program(READY)
        if not self._forwarding:
            self.tell("start")


class TestpmdFlood(Flood):
    """A flood by testpmd's own generators: ``txonly`` for one flow, ``flowgen`` for several, or where it receives one at the same time."""

    __test__ = False

    def __init__(self, vm: TestpmdVm, frames: Frames) -> None:
        self._vm, self._frames = vm, frames

    def prepare(self) -> None:
        frames = self._frames
        mode = "flowgen" if frames.flows > 1 or self._vm.sends_and_receives else "txonly"
        if mode == "flowgen":
            # Told at its start alone.
            self._vm.serve(mode, f"--flowgen-flows={frames.flows}")
            self._vm.await_program(READY)
        # flowgen takes the length that it is told for one with FCS (app/test-pmd/flowgen.c), txonly for one without.
        size = frames.frame_bytes if mode == "flowgen" else frames.size
        self._vm.tell("stop", f"set fwd {mode}", f"set eth-peer 0 {frames.target_mac}", f"set txpkts {size}")

    def start(self) -> None:
        self._vm.tell("start")

    def ended(self) -> str | None:
        return self._vm.ended()

    def stop(self) -> dict[str, str]:
        return {"testpmd.txt": self._vm.tell("stop")}


def counters_of(text: str, clock_s: float) -> Counters:
    """Read testpmd's answer to ``show port stats``. Raises ``ValueError`` on anything else."""
    found = {match["way"]: (int(match["packets"]), int(match["bytes"])) for match in _COUNTS.finditer(text)}
    if found.keys() != {"RX", "TX"}:
        raise ValueError(f"not testpmd's port statistics: {text[-200:]!r}")
    return Counters(clock_s, *found["RX"], *found["TX"])
