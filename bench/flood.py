# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood at saturation through one switch, for as long as a benchmark looks at it."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from vsprof.runner.experiment import SWITCHES, TOPOLOGIES, TRAFFIC, Case
from vsprof.switches.base import Switch
from vsprof.testbeds.base import Testbed
from vsprof.workloads.topologies.base import Topology
from vsprof.workloads.traffic.base import Traffic

WARMUP_SECONDS = 1.5
Say = Callable[[str], None]


@dataclass(frozen=True)
class Flow:
    """A flood that flows: where, through what, and the traffic itself."""

    host: Testbed
    topology: Topology
    traffic: Traffic

    def sent(self) -> tuple[float, int]:
        """The host's clock, and the frames that have left the switch for the receiver."""
        switch = self.topology.switch
        printed = self.host.run(f"echo $EPOCHREALTIME; {switch.port_counters()}").stdout
        clock, _, ports = printed.partition("\n")
        return float(clock), switch.parse_port_counters(ports)[self.topology.receiver_port.name].sent_packets


@contextlib.contextmanager
def standing(host: Testbed, case: Case, say: Say, *, switches: Mapping[str, type[Switch]] = SWITCHES) -> Iterator[Topology]:
    """The path of ``case``, whose switch is one of ``switches``, on ``host``; all is taken away at the end. Raises ``VsprofError``."""
    with contextlib.ExitStack() as undo:
        undo.enter_context(host)
        say(f"{case.case_id}: starting")
        switch = switches[case.switch](host, host.plan(), case.options)
        undo.callback(switch.stop)
        topology = TOPOLOGIES[case.topology](host, switch, host.plan(), case.access, case.options)
        undo.callback(topology.stop)
        topology.boot()
        switch.start()
        with host.polling_last(switch.plan.movers):
            topology.start()
            switch.ready()
        yield topology


def flood(topology: Topology, frame_bytes: int, flows: int = 1) -> Traffic:
    """A flood that has been started."""
    kind = TRAFFIC["udp_flood"]
    traffic = kind(topology, kind.options(), frame_bytes, flows)
    traffic.start()
    return traffic


@contextlib.contextmanager
def flowing(host: Testbed, case: Case, say: Say, *, switches: Mapping[str, type[Switch]] = SWITCHES) -> Iterator[Flow]:
    """A flood of ``case`` that is warm; else as ``standing``."""
    with standing(host, case, say, switches=switches) as topology:
        traffic = flood(topology, case.frame_bytes, case.flows)
        try:
            time.sleep(WARMUP_SECONDS)
            yield Flow(host, topology, traffic)
        finally:
            traffic.stop()
