# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the kernel's datapath (the openvswitch module).

Frames are forwarded in the kernel, in the context of whoever brings them: the vhost worker or QEMU's main loop on the
way out of a guest. ovs-vswitchd sees only the first frame of a flow (an upcall).
"""

from __future__ import annotations

from switches.base import Port
from switches.ovs import BRIDGE, Ovs


class KernelOvs(Ovs):
    accesses = ("vhost-net", "virtio-net")
    daemon = "/usr/lib/openvswitch-switch/ovs-vswitchd"
    datapath = "system"

    def add_port(self, name: str, access: str) -> Port:
        # vnet_hdr: without it the tap passes no checksum or segmentation offload between guests, unlike any real set-up.
        self.host.run(f"ip tuntap add {name} mode tap vnet_hdr")
        self._ports.append(name)
        self._silence(name)
        self.host.run(f"ip link set {name} up")
        self.vsctl(f"add-port {BRIDGE} {name}")
        return Port(name, access, name)

    def stop(self) -> None:
        super().stop()
        for name in self._ports:
            self.host.run(f"ip link delete {name}", check=False)
        self._ports.clear()


SWITCH = KernelOvs
