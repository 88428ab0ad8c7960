# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood, and what each hop counted of it: sent by the sender, into the switch, out of the switch, received.

Every hop is counted from before its first frame to after its last one has drained. The difference of two hops is the loss between them.
"""

import json
import time
from collections.abc import Mapping
from typing import Any

from vsprof.switches.base import PortCounters
from vsprof.testbeds.base import MODELLED
from vsprof.workloads import messages
from vsprof.workloads.endpoints import pktgen, probe
from vsprof.workloads.endpoints.base import PATIENCE_S, Flood, Frames
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.topologies.base import Topology

DRAIN_S = 0.5
FILE = "hops.json"
BEHIND = ("into_switch", "out_of_switch", "received")
"""The hops behind the sender."""


class CountedFlood:
    """Frames of one kind from a topology's sender to its receiver. They flow once one of these is made."""

    def __init__(self, topology: Topology, frames: Frames) -> None:
        self._topology, self._frames = topology, frames
        self.flood: Flood = topology.sender.flood(frames)
        self.flood.prepare()
        self._before = hops(topology)
        self.flood.start()

    def check(self) -> None:
        """Raise ``RunFailed`` if it ended by itself."""
        if words := self.flood.ended():
            raise messages.endpoint_failed(self._topology.sender.name, "the flood ended early", words)

    def end(self) -> dict[str, str]:
        """End it, let it drain, and return what was printed and counted since it was made, by file name."""
        printed = self.flood.stop()
        time.sleep(DRAIN_S)
        clock = self._topology.host.clock
        counted = {"before": self._before, "after": hops(self._topology), "rate_pps": self._frames.rate_pps, "clock": clock}
        return {**printed, FILE: json.dumps(counted)}


def hops(topology: Topology) -> dict[str, int]:
    """What each hop has counted so far."""
    ports = topology.switch.parse_port_counters(topology.host.run(topology.switch.port_counters(), timeout=PATIENCE_S).stdout)
    into: PortCounters = ports[topology.sender_port.name]
    out: PortCounters = ports[topology.receiver_port.name]
    sender = topology.sender.counters()
    # To ask takes time: an end that does both is asked once.
    receiver = sender if topology.receiver is topology.sender else topology.receiver.counters()
    return {
        "sent": sender.sent_packets,
        "into_switch": into.received_packets,
        "out_of_switch": out.sent_packets,
        "received": receiver.received_packets,
    }


def packets(raw: Mapping[str, str]) -> dict[str, int]:
    """Frames at each hop, from what ``end`` returned. Raises ``ValueError`` on anything else."""
    read = json.loads(raw[FILE])
    try:
        counted = {hop: read["after"][hop] - read["before"][hop] for hop in BEHIND}
        return {"sent": _sent(raw, read), **counted}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{FILE} is not as it was written: {error!r}") from error


def _sent(raw: Mapping[str, str], read: Mapping[str, Any]) -> int:
    """What a generator counted that it handed over; of one that does not count, what the endpoint's own interface did."""
    if pktgen.FILE in raw:
        return pktgen.frames_sent(raw[pktgen.FILE])
    if probe.FILE in raw:
        return Report.model_validate_json(raw[probe.FILE]).offered
    return read["after"]["sent"] - read["before"]["sent"]


def in_one_time(raw: Mapping[str, str]) -> bool:
    """Whether the same time passed from its begin to its end. In modelled time it begins and ends in the emulator's."""
    return json.loads(raw[FILE]).get("clock") != MODELLED


def rate_asked(raw: Mapping[str, str]) -> int | None:
    """Frames per second that were asked for; None at saturation. Raises ``ValueError`` as ``packets`` does."""
    read = json.loads(raw[FILE])
    if not isinstance(read, dict) or "rate_pps" not in read:
        raise ValueError(f"{FILE} is not as it was written: no rate_pps")
    return read["rate_pps"]
