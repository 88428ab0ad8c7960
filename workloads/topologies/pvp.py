# SPDX-License-Identifier: GPL-2.0-or-later
"""Physical port, endpoint, physical port (PVP): frames come in by a port, the endpoint sends them back, they go out by the same port.

**No wire is behind the port**: it is DPDK's device net_null inside the switch, which hands out frames (all zeros) as fast as it is asked,
and swallows what is sent. It costs next to nothing, and never ends: what is measured is the switch and the endpoint, without any
network card, and always at saturation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from terms.schema import FCS_BYTES
from workloads.endpoints import virtio_user
from workloads.topologies.base import Topology

PORT = "phy"


class Pvp(Topology):
    accesses = ("virtio-user",)
    needs_devices = True
    returns = True
    forwarding: ClassVar[tuple[str, ...]] = ("io", "mac")
    """How the endpoint sends back: as it came, or with MAC addresses set (testpmd's modes of these names)."""

    @classmethod
    def options_of(cls, access: str) -> Mapping[str, tuple[str, ...]]:
        return {**super().options_of(access), "forwarding": cls.forwarding}

    def start(self) -> None:
        # The device first, so that both are a pair where ports are wired in the order of their making.
        device = self.switch.add_device(PORT, f"net_null0,size={self.frame_bytes - FCS_BYTES}")
        port = self.switch.add_port("p1", self.access)
        self._ends = virtio_user.Ends(self.host, [port], self.plan.endpoints[:1], self.chosen["path"], self.chosen["forwarding"])
        [end] = self._ends.ends
        self._made.append(end)
        self.switch.join(device, port)
        self.sender = self.receiver = end
        self.sender_port = self.receiver_port = device

    def forward(self, on: bool) -> str:
        """Let the endpoint send back what it gets, or stop; what its program says."""
        return self._ends.testpmd().tell("start" if on else "stop")

    def endpoint_roles(self) -> dict[int, str]:
        return {self.plan.endpoints[0]: "guest"}


TOPOLOGY = Pvp
