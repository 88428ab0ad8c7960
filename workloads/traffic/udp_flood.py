# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP frames of one size from the guest kernel's packet generator (pktgen), at full speed or at a given rate.

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
from terms.schema import Number
from workloads.traffic.base import FCS_BYTES, Options, Traffic, Window, rates

SINK_ADDRESS = "10.77.0.250"
"""Nobody's: the frames reach the receiver by their MAC address, and its IP layer drops them without an answer."""
FIRST_PORT = 1024
DRAIN_S = 0.5
ENDED = "Result: OK"
"""What pktgen's device file says once a flood has ended; before, it says Starting or Running."""
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

    def start(self) -> None:
        sender = self.topology.sender
        sender.run(self._configuration())
        self._before = self._hops()
        self._counted: dict[str, str] | None = None
        self._send()

    def check(self) -> None:
        sender = self.topology.sender
        if not self._job.finished():
            return
        # The write that starts pktgen returns at once where its thread has not begun within 125 ms, as on a slow host. It runs all
        # the same.
        seen = sender.run(f"cat /proc/net/pktgen/{sender.interface}")
        if ENDED in seen:
            raise errors.endpoint_failed(sender.name, "pktgen ended early", seen)

    def before_own_windows(self) -> None:
        # A slower host loses what it would have carried: none of that belongs to the losses.
        self._counted = self._end()
        self._send()

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
        for hop, packets in {"sent": frames_sent(raw["pktgen.txt"]), **counted}.items():
            yield Number(f"packets_{hop}", packets, "packets", window=FLOOD)
        yield Number("offered_rate", asked, "packets/s", window=FLOOD, note="" if asked else "saturation: no rate was asked for")
        for window in windows:
            yield from rates(window)

    def _send(self) -> None:
        self._job = self.topology.sender.spawn("echo start > /proc/net/pktgen/pgctrl", may_fail=True)

    def _end(self) -> dict[str, str]:
        """End the flood, let it drain, and return what was counted since the first began."""
        sender = self.topology.sender
        sender.run("echo stop > /proc/net/pktgen/pgctrl")
        self._job.result(30)
        pktgen = sender.run(f"cat /proc/net/pktgen/{sender.interface}")
        time.sleep(DRAIN_S)
        hops = {"before": self._before, "after": self._hops(), "rate_pps": self._rate()}
        return {"pktgen.txt": pktgen, "hops.json": json.dumps(hops)}

    def _rate(self) -> int | None:
        assert isinstance(self.settings, FloodOptions)
        return self.settings.rate_pps

    def _configuration(self) -> str:
        sender, receiver, rate = self.topology.sender, self.topology.receiver, self._rate()
        # With several flows pktgen draws a port below the maximum; equal ends are one fixed port.
        last_port = FIRST_PORT + self.flows if self.flows > 1 else FIRST_PORT
        settings = [
            "count 0", f"pkt_size {self.frame_bytes - FCS_BYTES}", f"ratep {rate}" if rate else "delay 0",
            f"dst {SINK_ADDRESS}", f"dst_mac {receiver.mac}", f"src_min {sender.address}", f"src_max {sender.address}",
            "udp_dst_min 9", "udp_dst_max 9", f"udp_src_min {FIRST_PORT}", f"udp_src_max {last_port}",
            *(["flag UDPSRC_RND"] if self.flows > 1 else []),
        ]  # fmt: skip
        thread, device = "/proc/net/pktgen/kpktgend_0", f"/proc/net/pktgen/{sender.interface}"
        lines = [
            f"echo rem_device_all > {thread}",
            f"echo add_device {sender.interface} > {thread}",
            *(f"echo '{s}' > {device}" for s in settings),
        ]
        return " && ".join(lines)

    def _hops(self) -> dict[str, int]:
        topology = self.topology
        ports = topology.switch.parse_port_counters(topology.host.run(topology.switch.port_counters()).stdout)
        into: PortCounters = ports[topology.sender_port.name]
        out: PortCounters = ports[topology.receiver_port.name]
        return {
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
