# SPDX-License-Identifier: GPL-2.0-or-later
"""Physical port, endpoint, physical port (PVP): frames come in by a port, the endpoint sends them back, they go out by the same port.

**No wire is behind the port**: it is DPDK's device net_null inside the switch, which hands out frames (all zeros) as fast as it is asked,
and swallows what is sent. It costs next to nothing, and never ends: what is measured is the switch and the endpoint, without any
network card, and always at saturation.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from vsprof.switches.base import Port
from vsprof.terms.schema import without_fcs
from vsprof.workloads.endpoints import virtio_user, vm
from vsprof.workloads.endpoints.virtio_user import VirtioUser
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.topologies.base import Topology

PORT = "phy"


class Pvp(Topology):
    accesses = ("virtio-user", "vhost-user")
    endpoints = ("testpmd", "kernel")
    needs_devices = True
    returns = True
    forwarding: ClassVar[tuple[str, ...]] = ("io", "mac")
    """How the endpoint sends back: as it came, or with MAC addresses set (testpmd's modes of these names)."""

    @classmethod
    def options_of(cls, access: str, options: Mapping[str, str] = {}) -> Mapping[str, tuple[str, ...]]:
        # Of a guest's programs testpmd alone changes addresses.
        other = access in vm.ACCESSES and options.get("endpoint") in {*cls.endpoints} - {"testpmd"}
        modes = cls.forwarding[:1] if other else cls.forwarding
        found = super().options_of(access, options)
        # frame-flood sends nothing back.
        drivers = {"driver": found["driver"][:1]} if "driver" in found else {}
        return {**found, **drivers, "forwarding": modes}

    def start(self) -> None:
        # The device first, so that both are a pair where ports are wired in the order of their making.
        device = self.switch.add_device(PORT, f"net_null0,size={without_fcs(self.frame_bytes)}")
        port = self.switch.add_port("p1", self.access)
        self.sender = self.receiver = self._guest(port) if self.access in vm.ACCESSES else self._container(port)
        self.sender_port = self.receiver_port = device
        self.switch.join(device, port)

    def forward(self, on: bool) -> str:
        """Let the endpoint send back what it gets, or stop; what its program says."""
        return self._forward(on)

    def endpoint_cpus(self) -> Sequence[int]:
        return self.plan.endpoints[:1]

    def endpoint_roles(self) -> dict[int, str]:
        return {self.plan.endpoints[0]: "guest"}

    def _container(self, port: Port) -> VirtioUser:
        ends = virtio_user.Ends(self.host, [port], self.endpoint_cpus(), self.chosen["path"], self.chosen["forwarding"])
        self._made += ends.ends
        self._forward: Callable[[bool], str] = lambda on: ends.testpmd().tell("start" if on else "stop")
        return ends.ends[0]

    def _guest(self, port: Port) -> Vm:
        [guest] = self._plug([port])
        self._forward = guest.forward
        return guest


TOPOLOGY = Pvp
