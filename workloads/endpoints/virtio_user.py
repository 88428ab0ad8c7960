# SPDX-License-Identifier: GPL-2.0-or-later
"""Containers over virtio-user: a DPDK program holds the guest's side of a vhost-user port, without a virtual machine around it.

One program serves both ends: two processes that poll on one CPU would wait for each other's time slices, and no frame would get through
meanwhile. It is testpmd, which floods, with a thread for each end where there are CPUs enough; until a traffic asks for frames at a pace,
or for a flood at a given rate, which frame-probe sends. The switch finds its ports served by another program then, as if a guest had been
restarted. With ``driver: frame-flood`` it is frame-flood alone, which only floods.
"""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vsprof.switches.base import Port
from vsprof.terms.placement import Thread
from vsprof.testbeds import dpdk_telemetry
from vsprof.testbeds.base import Process, Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints import frame_flood, probe, testpmd, virtio_paths
from vsprof.workloads.endpoints.base import RUN, Counters, Endpoint, Flood, Frames
from vsprof.workloads.endpoints.frame_flood import FrameFlood, RingFlood
from vsprof.workloads.endpoints.own_programs import FRAME_FLOOD
from vsprof.workloads.endpoints.probe import HostProbe, Probe, ProbeFlood
from vsprof.workloads.endpoints.testpmd import PortFlood, Testpmd
from vsprof.workloads.endpoints.virtio_paths import PATHS

NAME = "virtio-user"
LINK_SECONDS = 30
DRIVERS = ("dpdk", "frame-flood")
"""Who is on the guest's side of the rings: DPDK's virtio-user driver, or frame-flood's own."""


LOST_FEATURES = "are not supported by vhost-user"
"""What the driver says when a switch that connects later does not offer what the path needs."""
ETHDEV = "/ethdev/stats"
LOUD = ("--log-level=pmd.net.virtio.init:info",)
"""For EAL: lets the driver say which path it takes."""


class VirtioUser(Endpoint):
    """One end: port ``index`` of the program that all ends share."""

    has_stack = False
    counts_aside = True
    stands_still = True
    interface = "virtio-user"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"path": tuple(PATHS), "driver": DRIVERS}

    def __init__(self, pair: "Ends", port: Port, number: int) -> None:
        self.name = f"container{number}"
        self.address = f"10.77.0.{number}"
        self.mac = f"52:54:00:76:67:{number:02x}"
        self.port, self._pair, self._index = port, pair, number - 1

    def device(self) -> str:
        server = ",server=1" if self.port.listener == "endpoint" else ""
        way = PATHS[self._pair.path].vdev_arguments()
        return f"net_virtio_user{self._index},mac={self.mac},path={self.port.where}{server},queue_size=1024,{way}"

    def flood(self, frames: Frames) -> Flood:
        return self._pair.flood(self._index, frames)

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        if self._pair.own_driver:
            return messages.no_pace_by_frame_flood(self.name) if paced else frame_flood.can_not_flood(self.name, flows)
        if not paced:
            return testpmd.can_not_flood(self.name, flows)
        if flows > 1:
            return messages.one_flow(self.name, flows)
        # frame-probe sends from the first port, and takes both.
        return self._pair.can_not_probe() if self._pair.ends[0] is self and len(self._pair.ends) == 2 else messages.no_pace(self.name)

    def can_not_pace(self, to: Endpoint) -> str | None:
        if self._pair.own_driver:
            return messages.no_pace_by_frame_flood(self.name)
        if [self, to] != self._pair.ends:
            return super().can_not_pace(to)
        return self._pair.can_not_probe()

    def probe(self) -> Probe:
        return self._pair.probe()

    def counters(self) -> Counters:
        return self._pair.counters(self._index)

    def asked(self) -> tuple[str, str]:
        """EAL's ``--file-prefix`` of the program, and the question to its telemetry that has this end's counters for an answer."""
        return self._pair.program.name, self._pair.question(self._index)

    def facts(self) -> dict[str, Any]:
        """The path, and what the driver said that it took."""
        return {"path": self._pair.path, "driver": self._pair.driver, **self._pair.taken(self._index)}

    def threads(self) -> list[Thread]:
        # Of the process that all share, once.
        return self._pair.program.threads() if self._index == 0 else []

    def processes(self) -> list[Process]:
        return self._pair.program.processes() if self._index == 0 else []

    def stop(self) -> None:
        self._pair.stop()


class Ends:
    """The ends on ``ports``, and the program that serves them.

    With ``forwarding`` (``io``, ``mac``) each sends back what it gets, once that is begun; else it sends floods, and swallows what it gets.
    """

    def __init__(
        self, host: Testbed, ports: Sequence[Port], cpus: Sequence[int], path: str, forwarding: str = "", driver: str = DRIVERS[0]
    ) -> None:
        self._host, self._cpus, self.path, self._forwarding, self.driver = host, list(dict.fromkeys(cpus)), path, forwarding, driver
        self.own_driver = driver == "frame-flood"
        self.ends = [VirtioUser(self, port, number) for number, port in enumerate(ports, start=1)]
        self._served = 0
        self._flood: PortFlood | None = None
        self._stopped = False
        self.program: Testpmd | HostProbe | FrameFlood = self._make_frame_flood() if self.own_driver else self._make_testpmd()
        self._check_path()

    def taken(self, index: int) -> dict[str, str]:
        """The driver's own words for the path that port ``index`` takes, if it has any."""
        return virtio_paths.taken(self.program.log()).get(index, {})

    def _check_path(self) -> None:
        if self.own_driver:
            # It takes no switch that does not offer what the path needs; and it is there before the switch has found it.
            try:
                self._await_links()
            except BaseException:
                # Nobody stops what was never made.
                self.stop()
                raise
            return
        for index, end in enumerate(self.ends):
            seen = self.taken(index).get("rx", "")
            if seen != PATHS[self.path].said or LOST_FEATURES in self.program.log():
                self.stop()
                raise messages.path_not_taken(end.name, self.path, seen)

    def testpmd(self) -> Testpmd:
        """testpmd, in the place of any other program."""
        if not isinstance(self.program, Testpmd):
            self.program.stop()
            self.program = self._make_testpmd()
            self._check_path()
            self._await_links()
        return self.program

    def flood(self, index: int, frames: Frames) -> Flood:
        if isinstance(self.program, FrameFlood):
            return RingFlood(self.program, index, frames)
        if frames.rate_pps:
            return ProbeFlood(self.probe(), frames)
        testpmd = self.testpmd()
        if self._flood is not None:
            self._flood.remove()
        # Behind the ends' own ports and the one of ``_make_testpmd``.
        self._flood = PortFlood(self._host, testpmd, index, len(self.ends) + 1, frames)
        return self._flood

    def can_not_probe(self) -> str | None:
        return probe.unavailable(self._host)

    def probe(self) -> Probe:
        if not isinstance(self.program, HostProbe):
            self.program.stop()
            self._flood = None
            self.program = HostProbe(self._host, self._name(), [end.device() for end in self.ends], self._cpus, more=LOUD)
            self._check_path()
        return self.program

    def _make_frame_flood(self) -> FrameFlood:
        if why := FRAME_FLOOD.unavailable(self._host):
            raise messages.endpoint_failed(NAME, why, "")
        if PATHS[self.path].in_order == "on":
            raise messages.no_path_of_frame_flood(self.path)
        server = lambda port: ",server=1" if port.listener == "endpoint" else ""  # noqa: E731
        ports = [f"mac={end.mac},path={end.port.where}{server(end.port)}" for end in self.ends]
        return FrameFlood(self._host, self._name(), ports, self._cpus, PATHS[self.path])

    def _make_testpmd(self) -> Testpmd:
        # A port that gives nothing and takes everything makes the receiver's counterpart.
        devices = [*(end.device() for end in self.ends), *([] if self._forwarding else ["net_null0,no-rx=1"])]
        how = {"forward": self._forwarding, "topology": "loop"} if self._forwarding else {}
        return Testpmd(self._host, self._name(), devices, self._cpus, more=LOUD, **how)

    def _await_links(self) -> None:
        """Until the switch serves the ports again: what is sent before is lost, and is none of its losses."""
        question, up = (frame_flood.PORT, '"up": 1') if self.own_driver else ("/ethdev/link_status", '"UP"')
        asked = dpdk_telemetry.command(self.program.name, [f"{question},{index}" for index, _ in enumerate(self.ends)])
        patience = self._host.patience(LINK_SECONDS)
        while (said := self._host.run(asked).stdout).count(up) < len(self.ends):
            if patience.over():
                words = f"{self.program.log()}\n{said}"
                raise messages.endpoint_failed(self.program.name, f"the switch did not take up its ports in {LINK_SECONDS} s", words)
            time.sleep(0.1)

    def _name(self) -> str:
        """A new one for each program: the log of one that had the same would be taken for its own."""
        self._served += 1
        return f"{NAME}{self._served}"

    def question(self, index: int) -> str:
        """To the program's telemetry, which has a port's counters for an answer."""
        return frame_flood.question(index) if self.own_driver else f"{ETHDEV},{index}"

    def counters(self, index: int) -> Counters:
        return counters_of(self._host.run(dpdk_telemetry.command(self.program.name, [self.question(index)])).stdout)

    def stop(self) -> None:
        if not self._stopped:
            self.program.stop()
            self._host.run(f"rm -f {RUN}/{NAME}*.pcap", check=False)
        self._stopped = True


def counters_of(text: str) -> Counters:
    """Read telemetry's answer to /ethdev/stats, or frame-flood's to /frame_flood/port. Raises ``ValueError`` on anything else."""
    try:
        answer = json.loads(text)
        found = answer[ETHDEV if ETHDEV in answer else frame_flood.PORT]
        return Counters(answer["clock"], *(int(found[name]) for name in ("ipackets", "ibytes", "opackets", "obytes")))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not DPDK's telemetry: {text[:200]!r}") from error
