# SPDX-License-Identifier: GPL-2.0-or-later
"""What endpoints send back of frames that come by themselves (topology pvp). Nothing is sent here: forwarding is begun and ended.

``packet_rate_received`` is what came back out of the switch by the port that it had come in by; ``packet_rate_into_switch`` what had come
in there, ``packet_rate_to_endpoint`` what of it reached the endpoint, ``packet_rate_from_endpoint`` what that sent back.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import field_validator

from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Data, Headline
from vsprof.workloads import messages
from vsprof.workloads.topologies.pvp import Pvp
from vsprof.workloads.traffic.base import Options, Traffic, Window, port_rate


class ForwardOptions(Options):
    @field_validator("load")
    @classmethod
    def _saturates(cls, load: str) -> str:
        if load != "saturation":
            raise ValueError(messages.other_load(load, "forward", "saturation"))
        return load


class Forward(Traffic):
    words, rank, kind = "forwarding", 30, "forwarding"
    data = Data("packet", "packet sent back", "packet_rate_received")
    headlines = (
        Headline("packet_rate_received", "sent back", ("saturation",), "more", "brings back", "packets"),
        Headline("pmd_busy", "poll-mode thread busy", ("saturation",)),
    )
    options = ForwardOptions
    factors = frozenset({"frame_bytes", "flows"})
    needs_stack = False
    returns = True

    def unavailable(self) -> str | None:
        one = self.flows > 1 and not self.topology.makes_flows
        return super().unavailable() or (messages.comes_as_one_flow(self.flows) if one else None)

    def start(self) -> None:
        self._pvp().forward(True)

    def asks_endpoints(self) -> bool:
        # What the endpoint sent back is its own count.
        return super().asks_endpoints() or self.topology.sender.counts_aside

    def check(self) -> None:
        for process in self.topology.sender.processes():
            if not process.alive():
                raise messages.endpoint_failed(self.topology.sender.name, "forwarding ended early", process.log())

    def stands_still(self) -> bool:
        return self.topology.stands_still()

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
    switch_s = window.switch_seconds
    if switch_s <= 0:
        raise ValueError(f"{window.name}: the testbed's clock stood still or went back: {switch_s} s")
    to_endpoint, from_endpoint = (None, None) if window.samples is None else _rates_of_endpoint(window)
    # One port is both ends of the way.
    rates = {
        "into_switch": port_rate(window.into_switch, "received_packets", switch_s),
        "to_endpoint": to_endpoint,
        "from_endpoint": from_endpoint,
        "received": port_rate(window.into_switch, "sent_packets", switch_s),
    }
    yield Number("window_seconds", switch_s, "seconds", window=window.name)
    for hop, rate in rates.items():
        missing = messages.end_not_asked() if "endpoint" in hop else messages.port_not_counted()
        yield Number(f"packet_rate_{hop}", rate, "packets/s", window=window.name, note=missing if rate is None else "")
    sent = port_rate(window.into_switch, "sent_bytes", switch_s)
    bits = None if sent is None else sent * 8
    yield Number("bit_rate_received", bits, "bit/s", window=window.name, note="" if bits is not None else messages.port_not_counted())


def _rates_of_endpoint(window: Window) -> tuple[float, float]:
    """Packets per second that it got and sent. Raises ``ValueError`` where its clock stood still."""
    before, after = (sample.sender for sample in window.endpoints())
    seconds = after.clock_s - before.clock_s
    if seconds <= 0:
        raise ValueError(f"{window.name}: the endpoint's clock stood still or went back: {seconds} s")
    return (after.received_packets - before.received_packets) / seconds, (after.sent_packets - before.sent_packets) / seconds


TRAFFIC = Forward
