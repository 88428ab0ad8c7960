# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP frames of one size, at full speed or at a given rate: from the kernel's packet generator, or from testpmd.

Every hop is counted over the whole flood, from before its first frame to after its last one has drained: sent by the
sender, into the switch, out of the switch, received. The difference of two hops is the loss between them.

Where windows follow that slow the host down, the flood that is counted ends before them, and a second one is sent.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field, model_validator

from switches.base import PortCounters
from terms import errors
from terms.schema import FCS_BYTES, Number
from workloads.endpoints import pktgen
from workloads.endpoints.base import Frames
from workloads.traffic.base import Options, Traffic, Window, rates

SINK_ADDRESS = "10.77.0.250"
"""Nobody's: the frames reach the receiver by their MAC address, and its IP layer drops them without an answer."""
FIRST_PORT = 1024
DRAIN_S = 0.5
FLOOD = "flood"
"""The window name of what is counted over the whole flood."""


class FloodOptions(Options):
    rate_pps: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _rate_fits_load(self) -> FloodOptions:
        if self.load not in ("saturation", "equal"):
            raise ValueError(f"load {self.load!r}: use saturation or equal")
        if (self.load == "equal") != (self.rate_pps is not None):
            raise ValueError("load equal needs rate_pps, and load saturation takes none")
        return self


class UdpFlood(Traffic):
    options = FloodOptions
    needs_stack = False

    def unavailable(self) -> str | None:
        return super().unavailable() or self.topology.sender.can_not_flood(self._rate())

    def start(self) -> None:
        self._flood = self.topology.sender.flood(self._frames())
        self._flood.prepare()
        self._before = self._hops()
        self._counted: dict[str, str] | None = None
        self._flood.start()

    def check(self) -> None:
        if words := self._flood.ended():
            raise errors.endpoint_failed(self.topology.sender.name, "the flood ended early", words)

    def before_own_windows(self) -> None:
        # A slower host loses what it would have carried: none of that belongs to the losses.
        self._counted = self._end()
        self._flood.start()

    def stop(self) -> dict[str, str]:
        last = self._end()
        return self._counted or last

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        hops = json.loads(raw["hops.json"])
        try:
            counted = {hop: hops["after"][hop] - hops["before"][hop] for hop in ("into_switch", "out_of_switch", "received")}
            asked = hops["rate_pps"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"hops.json is not as it was written: {error!r}") from error
        # pktgen counts what it handed over; of another generator the endpoint's own interface counts it.
        sent = frames_sent(raw[pktgen.FILE]) if pktgen.FILE in raw else hops["after"]["sent"] - hops["before"]["sent"]
        for hop, packets in {"sent": sent, **counted}.items():
            yield Number(f"packets_{hop}", packets, "packets", window=FLOOD)
        yield Number("offered_rate", asked, "packets/s", window=FLOOD, note="" if asked else "saturation: no rate was asked for")
        for window in windows:
            yield from rates(window)

    def _end(self) -> dict[str, str]:
        """End the flood, let it drain, and return what was counted since the first began."""
        printed = self._flood.stop()
        time.sleep(DRAIN_S)
        hops = {"before": self._before, "after": self._hops(), "rate_pps": self._rate()}
        return {**printed, "hops.json": json.dumps(hops)}

    def _rate(self) -> int | None:
        assert isinstance(self.settings, FloodOptions)
        return self.settings.rate_pps

    def _frames(self) -> Frames:
        sender, receiver = self.topology.sender, self.topology.receiver
        return Frames(
            self.frame_bytes - FCS_BYTES, self.flows, self._rate(), sender.mac, receiver.mac, sender.address, SINK_ADDRESS, FIRST_PORT
        )

    def _hops(self) -> dict[str, int]:
        topology = self.topology
        ports = topology.switch.parse_port_counters(topology.host.run(topology.switch.port_counters()).stdout)
        into: PortCounters = ports[topology.sender_port.name]
        out: PortCounters = ports[topology.receiver_port.name]
        return {
            "sent": topology.sender.counters().sent_packets,
            "into_switch": into.received_packets,
            "out_of_switch": out.sent_packets,
            "received": topology.receiver.counters().received_packets,
        }


def frames_sent(text: str) -> int:
    """pktgen's own count of frames handed to the driver. Raises ``ValueError`` where there is none."""
    if found := re.search(r"^\s*pkts-sofar: (\d+)", text, re.MULTILINE):
        return int(found[1])
    raise ValueError("not pktgen's device file: no pkts-sofar")


TRAFFIC = UdpFlood
