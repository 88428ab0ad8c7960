# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-probe at the other end of one or two wires: by a network card it sends at a given rate, and by the same or another one it receives
what comes back.

It is no part of what is measured, and has a CPU of its own, of which nothing is counted.
"""

from collections.abc import Sequence
from dataclasses import replace

from vsprof.switches.base import Port
from vsprof.terms.placement import Thread
from vsprof.testbeds import wire
from vsprof.testbeds.base import Process, Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints import probe
from vsprof.workloads.endpoints.base import Burst, Counters, Endpoint, Flood, Frames
from vsprof.workloads.endpoints.probe import HostProbe, Probe, ProbeFlood

NAME = "generator"


class WireProbe(Endpoint):
    """A frame-probe on the network cards at the PCI addresses ``cards``: both ends of a path that begins at the first one and ends at the
    last."""

    has_stack = False
    name = interface = NAME
    # Its frames name no address that anybody looks at.
    address = mac = ""

    def __init__(self, host: Testbed, cards: Sequence[str], port: Port, cpu: int, housekeeping_cpu: int) -> None:
        """``port``: of the switch, at the first wire's other end."""
        if why := probe.unavailable(host):
            raise messages.endpoint_failed(NAME, why, "")
        self.port = port
        wire.give_dpdk(host, *cards)
        self._probe = HostProbe(host, NAME, [], [cpu, housekeeping_cpu], cards=cards)
        for card in cards:
            wire.drop_when_full(host, card)

    def flood(self, frames: Frames) -> Flood:
        return WireFlood(self._probe, frames)

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        if not paced:
            return messages.only_paced_on_wire(self.name)
        return messages.one_flow(self.name, flows) if flows > 1 else None

    def can_not_burst(self) -> str | None:
        return None

    def can_not_pace(self, to: Endpoint) -> str | None:
        return None if to is self else super().can_not_pace(to)

    def probe(self) -> Probe:
        return self._probe

    def counters(self) -> Counters:
        sent, received = self._probe.report().counters()
        return replace(sent, received_packets=received.received_packets, received_bytes=received.received_bytes)

    def threads(self) -> list[Thread]:
        return [Thread(thread.name, thread.tid, "host-other", thread.cpus) for thread in self._probe.threads()]

    def processes(self) -> list[Process]:
        return self._probe.processes()

    def stop(self) -> None:
        self._probe.stop()


class WireFlood(ProbeFlood):
    """A flood at a given rate: frames that became due at once go at once, for each call of a card's driver costs as much as many frames."""

    awaits_bursts = True

    def __init__(self, sender: HostProbe, frames: Frames) -> None:
        super().__init__(sender, frames)
        self._sender = sender
        self._sent: Burst | None = None

    def prepare(self) -> None:
        super().prepare()
        self._sender.settle()

    def start(self) -> None:
        self._sender.flow(self._period_s, self._frame_bytes)

    def hold(self) -> None:
        # What is sent in the emulator's time fills every ring, and at a rate that is just carried they would stay full.
        self._sender.pause()
        self._sender.settle()

    def go_on(self) -> None:
        self.start()

    def burst(self, count: int, rate_pps: int | None) -> None:
        period_s = 1 / (rate_pps or probe.FASTEST_PPS)
        report = self._sender.burst(count, period_s, self._frame_bytes)
        # Each moment is a frame, or one that was skipped.
        self._sent = Burst(report.offered, (report.offered + report.skipped) * period_s)

    def burst_sent(self) -> Burst | None:
        return self._sent
