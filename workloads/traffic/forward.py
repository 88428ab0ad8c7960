# SPDX-License-Identifier: GPL-2.0-or-later
"""What endpoints send back of frames that come by themselves (topology pvp). Nothing is sent here: forwarding is begun and ended.

``packet_rate_received`` is what came back out of the switch by the port that it had come in by; ``packet_rate_into_switch`` what had come
in there, ``packet_rate_to_endpoint`` what of it reached the endpoint, ``packet_rate_from_endpoint`` what that sent back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import field_validator

from terms.schema import Number
from terms.vocabulary import Data, Headline
from workloads import messages
from workloads.topologies.pvp import Pvp
from workloads.traffic.base import Options, Traffic, Window


class ForwardOptions(Options):
    @field_validator("load")
    @classmethod
    def _saturates(cls, load: str) -> str:
        if load != "saturation":
            raise ValueError(f"load {load!r}: forward knows only saturation")
        return load


class Forward(Traffic):
    words, rank = "forwarding", 30
    data = Data("packet", "packet sent back", "packet_rate_received")
    headlines = (
        Headline("packet_rate_received", "sent back", ("saturation",), better="more"),
        Headline("pmd_busy", "poll-mode thread busy", ("saturation",)),
    )
    options = ForwardOptions
    factors = frozenset({"frame_bytes"})
    needs_stack = False
    returns = True

    def start(self) -> None:
        self._pvp().forward(True)

    def asks_endpoints(self) -> bool:
        # What the endpoint sent back is its own count.
        return True

    def check(self) -> None:
        for process in self.topology.sender.processes():
            if not process.alive():
                raise messages.endpoint_failed(self.topology.sender.name, "forwarding ended early", process.log())

    def stop(self) -> dict[str, str]:
        return {"testpmd.txt": self._pvp().forward(False)}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        for window in windows:
            yield from _rates(window)

    def _pvp(self) -> Pvp:
        assert isinstance(self.topology, Pvp)
        return self.topology


def _rates(window: Window) -> Iterable[Number]:
    """Packets per second at each hop, each by its own clock. Raises ``ValueError`` where a clock stood still."""
    before, after = (sample.sender for sample in window.endpoints())
    endpoint_s, switch_s = after.clock_s - before.clock_s, window.switch_seconds
    if min(endpoint_s, switch_s) <= 0:
        raise ValueError(f"{window.name}: a clock stood still or went back: {endpoint_s}, {switch_s} s")
    # One port is both ends of the way.
    port_0, port_1 = window.into_switch
    rates = {
        "into_switch": (port_1.received_packets - port_0.received_packets) / switch_s,
        "to_endpoint": (after.received_packets - before.received_packets) / endpoint_s,
        "from_endpoint": (after.sent_packets - before.sent_packets) / endpoint_s,
        "received": (port_1.sent_packets - port_0.sent_packets) / switch_s,
    }
    yield Number("window_seconds", switch_s, "seconds", window=window.name)
    for hop, rate in rates.items():
        yield Number(f"packet_rate_{hop}", rate, "packets/s", window=window.name)
    yield Number("bit_rate_received", (port_1.sent_bytes - port_0.sent_bytes) * 8 / switch_s, "bit/s", window=window.name)


TRAFFIC = Forward
