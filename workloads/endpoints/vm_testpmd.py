# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's testpmd in a virtual machine: it floods, swallows what it gets, or sends it back.

Its generators send one flow as fast as it goes (``txonly``, which receives nothing), or several to an address of their own (``flowgen``).
So frame-probe takes its place for several flows, for a given rate, and where both ends of a pair send.
"""

import re
import shlex
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from vsprof.workloads import messages
from vsprof.workloads.endpoints import probe
from vsprof.workloads.endpoints.base import Counters, Flood, Frames
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.endpoints.vm_dpdk import LOG, LOOK_S, DpdkVm, until

INPUT = "/run/testpmd.in"
READY = "testpmd> "
MEMORY_MIB, MBUFS = 64, 8192
RECEIVER = "198.18.0.2"
"""testpmd's own. With its own sender, too, frames of all pairs would have one hash, and OVS-DPDK's EMC has two places for flows of one."""
_COUNTS = re.compile(r"(?P<way>RX|TX)-packets: (?P<packets>\d+) .*?(?P=way)-bytes: +(?P<bytes>\d+)")


class TestpmdVm(DpdkVm):
    __test__ = False
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {**DpdkVm.options, "queues": ("1", "2", "4")}
    """``queues``: pairs of rings of its interface, all served by the one thread that polls."""

    def __init__(self, *place: Any, options: Mapping[str, str] = {}, **how: Any) -> None:
        """As ``Vm``. With the option ``forwarding``, testpmd's mode (``io``, ``mac``), it sends back what it gets, once that is begun."""
        super().__init__(*place, options=options, **how)
        self._forwarding = options.get("forwarding", "")
        self._receives_too = options.get("ways") == "both"
        self._probes = False
        """Whether frame-probe has taken testpmd's place."""

    def flood(self, frames: Frames) -> Flood:
        by_testpmd = frames.flows == 1 and frames.rate_pps is None and not self._receives_too and not self._probes
        return TestpmdFlood(self, frames) if by_testpmd else ProbeInstead(self, frames)

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        return messages.one_queue(self.name) if self.chosen["queues"] != "1" and (paced or flows > 1 or self._receives_too) else None

    def counters(self) -> Counters:
        clock = self.ask("guest-get-time") / 1e9
        return self.probe_report(clock).counters()[0] if self._probes else counters_of(self.tell("show port stats 0"), clock)

    def serve_by_probe(self) -> None:
        """Let frame-probe serve the interface, in testpmd's place. It receives whatever comes, and sends nothing yet."""
        if not self._probes:
            self._quit()
            self.launch_probe()
            self.await_program(probe.READY)
            self._probes = True

    def probe_report(self, clock_s: float) -> Report:
        """What frame-probe has counted, at ``clock_s`` by the guest's clock."""
        return Report.model_validate_json(self.ask_probe("report")).model_copy(update={"clock_s": clock_s})

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
        self._quit()
        queues = [f"--{way}xq={self.chosen['queues']}" for way in "rt"]
        own = [
            "--interactive",
            f"--forward-mode={mode}",
            "--port-topology=loop",
            "--no-mlockall",
            f"--total-num-mbufs={MBUFS}",
            f"--tx-ip={self.address},{RECEIVER}",
            *queues,
            *more,
        ]
        self.launch("dpdk-testpmd", ["-m", str(MEMORY_MIB)], own, INPUT)

    def _quit(self) -> None:
        if self._job is not None:
            self.run(f"echo quit > {INPUT}; while pidof dpdk-testpmd > /dev/null; do sleep {LOOK_S}; done", seconds=120)

    def forward(self, on: bool) -> str:
        return self.tell("start" if on else "stop")

    def begin(self) -> None:
        self.serve(self._forwarding or "rxonly")

    def finish(self) -> None:
        self.await_program(READY)
        if not self._forwarding:
            self.tell("start")


class TestpmdFlood(Flood):
    """A flood of one flow by testpmd's own generator."""

    __test__ = False

    def __init__(self, vm: TestpmdVm, frames: Frames) -> None:
        self._vm, self._frames = vm, frames

    def prepare(self) -> None:
        frames = self._frames
        self._vm.tell("stop", "set fwd txonly", f"set eth-peer 0 {frames.target_mac}", f"set txpkts {frames.size}")

    def start(self) -> None:
        self._vm.tell("start")

    def ended(self) -> str | None:
        return self._vm.ended()

    def stop(self) -> dict[str, str]:
        return {"testpmd.txt": self._vm.tell("stop")}


class ProbeInstead(Flood):
    """A flood by frame-probe in testpmd's place."""

    def __init__(self, vm: TestpmdVm, frames: Frames) -> None:
        self._vm, self._frames, self._period_s = vm, frames, 1 / (frames.rate_pps or probe.FASTEST_PPS)

    def prepare(self) -> None:
        self._vm.serve_by_probe()

    def start(self) -> None:
        frames = self._frames
        start = probe.start_command(self._period_s, frames.frame_bytes, count_all=True, burst=probe.LARGEST_BURST)
        self._tell(f"{start} flows={frames.flows} target={frames.target_mac}")

    def ended(self) -> str | None:
        return self._vm.ended()

    def stop(self) -> dict[str, str]:
        self._tell("stop")
        return {probe.FILE: self._vm.probe_report(0.0).model_dump_json()}

    def due(self, printed: Mapping[str, str]) -> int:
        return probe.due(printed, self._period_s)

    def _tell(self, command: str) -> None:
        probe.accept(command, self._vm.ask_probe(command))


def counters_of(text: str, clock_s: float) -> Counters:
    """Read testpmd's answer to ``show port stats``. Raises ``ValueError`` on anything else."""
    found = {match["way"]: (int(match["packets"]), int(match["bytes"])) for match in _COUNTS.finditer(text)}
    if found.keys() != {"RX", "TX"}:
        raise ValueError(f"not testpmd's port statistics: {text[-200:]!r}")
    return Counters(clock_s, *found["RX"], *found["TX"])
