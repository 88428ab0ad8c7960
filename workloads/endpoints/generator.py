# SPDX-License-Identifier: GPL-2.0-or-later
"""What loads a wire from its other end: a testpmd that sends as fast as it can, and swallows what comes back.

It is no part of what is measured, and has a CPU of its own, of which nothing is counted.
"""

from vsprof.terms.placement import Thread
from vsprof.testbeds import dpdk_telemetry, wire
from vsprof.testbeds.base import Process, Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import Counters, Endpoint, Flood, Frames
from vsprof.workloads.endpoints.testpmd import Testpmd
from vsprof.workloads.endpoints.virtio_user import counters_of

NAME = "generator"


class Generator(Endpoint):
    """A testpmd on the network card at PCI address ``card``, which floods (mode ``flowgen``) while it is told to."""

    has_stack = False
    name = interface = NAME

    def __init__(self, host: Testbed, card: str, cpu: int, frame_bytes: int, flows: int = 1) -> None:
        """``frame_bytes``: of a frame, with FCS, which the mode ``flowgen`` is told, too. ``flows``: they differ in their IP address."""
        wire.give_dpdk(host, card)
        self._host = host
        own = [f"--txpkts={frame_bytes}", f"--flowgen-flows={flows}"]
        self._testpmd = Testpmd(host, NAME, [], [cpu], cards=[card], forward="flowgen", topology="loop", own=own)
        wire.drop_when_full(host, card)

    def send(self, on: bool) -> str:
        return self._testpmd.tell("start" if on else "stop")

    def flood(self, frames: Frames) -> Flood:
        raise messages.endpoint_failed(self.name, "it loads a wire by itself, and sends no flood of others", "")

    def counters(self) -> Counters:
        return counters_of(self._host.run(dpdk_telemetry.command(NAME, ["/ethdev/stats,0"])).stdout)

    def threads(self) -> list[Thread]:
        return [Thread(thread.name, thread.tid, "host-other", thread.cpus) for thread in self._testpmd.threads()]

    def processes(self) -> list[Process]:
        return self._testpmd.processes()

    def stop(self) -> None:
        self._testpmd.stop()
