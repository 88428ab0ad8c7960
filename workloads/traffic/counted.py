# SPDX-License-Identifier: GPL-2.0-or-later
"""A flood, and what each hop counted of it: sent by the sender, into the switch, out of the switch, received.

Every hop is counted from before its first frame to after its last one has drained. The difference of two hops is the loss between them.
"""

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from vsprof.testbeds.base import MODELLED
from vsprof.workloads import messages
from vsprof.workloads.endpoints import pktgen, probe
from vsprof.workloads.endpoints.base import PATIENCE_S, Flood, Frames
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.topologies.base import Route, Topology

DRAIN_S = 0.5
FILE = "hops.json"
BEHIND = ("into_switch", "out_of_switch", "received")
"""The hops behind the sender."""


class CountedFlood:
    """Frames of one kind along every route of a topology. They flow once one of these is made."""

    def __init__(self, topology: Topology, frames: Callable[[Route], Frames]) -> None:
        """``frames``: those of each route; all at one rate."""
        self._topology = topology
        self._rate_pps = frames(topology.routes[0]).rate_pps
        self.floods: list[Flood] = [route.sender.flood(frames(route)) for route in topology.routes]
        with _polling_last(topology):
            for flood in self.floods:
                flood.prepare()
        self._before = hops(topology)
        self.start()

    def start(self) -> None:
        with self._as_fast_as_it_goes():
            for flood in self.floods:
                flood.start()

    def hold(self) -> None:
        """See ``Flood.hold``."""
        for flood in self.floods:
            flood.hold()

    def go_on(self) -> None:
        for flood in self.floods:
            flood.go_on()

    def check(self) -> None:
        """Raise ``RunFailed`` if it ended by itself."""
        for route, flood in zip(self._topology.routes, self.floods, strict=True):
            if words := flood.ended():
                raise messages.endpoint_failed(route.sender.name, "the flood ended early", words)

    def end(self) -> dict[str, str]:
        """End it, let it drain, and return what was printed and counted since it was made, by file name."""
        with self._as_fast_as_it_goes():
            printed = {_of_route(name, number): text for number, flood in enumerate(self.floods) for name, text in flood.stop().items()}
        time.sleep(DRAIN_S)
        clock = self._topology.host.clock
        counted = {"before": self._before, "after": hops(self._topology), "rate_pps": self._rate_pps, "clock": clock}
        return {**printed, FILE: json.dumps(counted)}

    def _as_fast_as_it_goes(self) -> AbstractContextManager[None]:
        """A flood at a rate would lose frames where its switch came last; one that has no rate loses some in any case."""
        return _polling_last(self._topology) if self._rate_pps is None else contextlib.nullcontext()


def _polling_last(topology: Topology) -> AbstractContextManager[None]:
    """See ``Testbed.polling_last``: whoever is asked answers sooner where many poll."""
    return topology.host.polling_last(topology.plan.own)


def _of_route(file: str, number: int) -> str:
    """The name of a sender's file: as it is for the first route, with the route's number for the others."""
    stem, _, suffix = file.rpartition(".")
    return f"{stem}-{number + 1}.{suffix}" if number else file


def hops(topology: Topology) -> dict[str, int]:
    """What each hop has counted so far, of all routes together."""
    # To ask takes time: an end that is on several routes is asked once.
    ends = {end.name: end for route in topology.routes for end in (route.sender, route.receiver)}
    with _polling_last(topology):
        ports = topology.switch.parse_port_counters(topology.host.run(topology.switch.port_counters(), timeout=PATIENCE_S).stdout)
        asked = {name: end.counters() for name, end in ends.items()}
    return {
        "sent": sum(asked[route.sender.name].sent_packets for route in topology.routes),
        "into_switch": sum(ports[route.sender_port.name].received_packets for route in topology.routes),
        "out_of_switch": sum(ports[route.receiver_port.name].sent_packets for route in topology.routes),
        "received": sum(asked[route.receiver.name].received_packets for route in topology.routes),
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
    if told := _of_routes(raw, pktgen.FILE):
        return sum(map(pktgen.frames_sent, told))
    if told := _of_routes(raw, probe.FILE):
        reports = map(Report.model_validate_json, told)
        # As fast as it goes, whatever found no room was not sent: it says nothing of the path.
        return sum(one.offered if read["rate_pps"] else one.sent for one in reports)
    return read["after"]["sent"] - read["before"]["sent"]


def _of_routes(raw: Mapping[str, str], file: str) -> list[str]:
    """What every route's sender printed, by the name of the first one's file: see ``_of_route``."""
    stem, _, suffix = file.rpartition(".")
    return [text for name, text in raw.items() if re.fullmatch(rf"{stem}(-\d+)?\.{suffix}", name)]


def in_one_time(raw: Mapping[str, str]) -> bool:
    """Whether the same time passed from its begin to its end. In modelled time it begins and ends in the emulator's."""
    return json.loads(raw[FILE]).get("clock") != MODELLED


def rate_asked(raw: Mapping[str, str]) -> int | None:
    """Frames per second that were asked for; None at saturation. Raises ``ValueError`` as ``packets`` does."""
    read = json.loads(raw[FILE])
    if not isinstance(read, dict) or "rate_pps" not in read:
        raise ValueError(f"{FILE} is not as it was written: no rate_pps")
    return read["rate_pps"]
