# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the kernel's datapath (the openvswitch module).

Frames are forwarded in the kernel, in the context of whoever brings them: the vhost worker or QEMU's main loop on the
way out of a guest, a softirq on the way out of a container. ovs-vswitchd sees only the first frame of a flow (an upcall).
"""

from __future__ import annotations

from switches import links
from switches.base import Port
from switches.ovs import BRIDGE, Ovs
from terms import errors


class KernelOvs(Ovs):
    accesses = ("vhost-net", "virtio-net", "veth")
    daemon = "/usr/lib/openvswitch-switch/ovs-vswitchd"
    datapath = "system"

    def unavailable(self) -> str | None:
        tried = self.host.run("[ -d /sys/module/openvswitch ] || modprobe openvswitch", check=False)
        return errors.kernel_lacks("openvswitch", tried.stderr) if tried.status != 0 else None

    def add_port(self, name: str, access: str) -> Port:
        port = links.add(self.host, name, access, self.plan.switch)
        self._ports.append(name)
        self.vsctl(f"add-port {BRIDGE} {name}")
        return port

    def stop(self) -> None:
        super().stop()
        links.remove(self.host, self._ports)


SWITCH = KernelOvs
