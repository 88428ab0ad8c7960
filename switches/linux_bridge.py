# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own Ethernet bridge: the in-kernel baseline where there is no openvswitch module. It is no Open vSwitch.

Frames are forwarded in softirqs: of a veth port on the switch's CPU (RPS), of a tap in the context of whoever brings them.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from vsprof.switches import links
from vsprof.switches.base import MOVERS, Port, PortCounters, Switch
from vsprof.terms.placement import CpuPlan, Thread
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.base import Process, Testbed

BRIDGE = "br0"
_COUNT = re.compile(r"^/sys/class/net/(?P<port>[^/]+)/statistics/(?P<name>\w+):(?P<value>\d+)$", re.MULTILINE)


class LinuxBridge(Switch):
    words, rank, colour = "Linux bridge", 10, 0
    accesses = ("vhost-net", "virtio-net", "veth")
    options: ClassVar[Mapping[str, tuple[str, ...]]] = MOVERS
    """``switch_cpus``: as of kernel OVS."""
    reads = ("queues",)

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        self._ports: list[str] = []
        self._queues = int(options.get("queues", "1"))

    def unavailable(self) -> str | None:
        tried = self.host.run("ip link add vsprof-try type bridge && ip link delete vsprof-try", check=False)
        return testbeds_messages.kernel_lacks("bridge", tried.stderr) if tried.status != 0 else None

    def start(self) -> None:
        # Spanning tree would keep a new port silent for half a minute.
        self.host.run(f"ip link add {BRIDGE} type bridge stp_state 0 forward_delay 0 && ip link set {BRIDGE} up")
        links.silence(self.host, BRIDGE)

    def add_port(self, name: str, access: str) -> Port:
        port = links.add(self.host, name, access, self.plan.movers[len(self._ports) % len(self.plan.movers)], self._queues)
        self._ports.append(name)
        self.host.run(f"ip link set {name} master {BRIDGE}")
        return port

    def learn(self, port: Port, mac: str) -> None:
        self.host.run(f"bridge fdb replace {mac} dev {port.name} master static")

    def local_port(self) -> Port:
        return Port(BRIDGE, "internal", BRIDGE)

    def port_counters(self) -> str:
        ports = ",".join((BRIDGE, *self._ports))
        return f"grep . /sys/class/net/{{{ports}}}/statistics/{{rx,tx}}_{{packets,bytes}}"

    @classmethod
    def parse_port_counters(cls, text: str) -> dict[str, PortCounters]:
        """Read the kernel's counters: of a port, rx is what came from the endpoint. Of the bridge's own, the host is the endpoint."""
        found: dict[str, dict[str, int]] = {}
        for match in _COUNT.finditer(text):
            found.setdefault(match["port"], {})[match["name"]] = int(match["value"])
        return {port: _counters(port, counts) for port, counts in found.items() if len(counts) == 4}

    def threads(self) -> list[Thread]:
        return []

    def processes(self) -> list[Process]:
        return []

    def facts(self) -> dict[str, Any]:
        return {"version": [self.host.run("uname -r").stdout.strip()], "datapath": "bridge"}

    def stop(self) -> None:
        self.host.run(f"ip link delete {BRIDGE}", check=False)
        links.remove(self.host, self._ports)


def _counters(port: str, counts: dict[str, int]) -> PortCounters:
    received, sent = ((counts[f"{way}_packets"], counts[f"{way}_bytes"]) for way in ("rx", "tx"))
    # The host sends into the bridge by its interface's tx.
    (in_packets, in_bytes), (out_packets, out_bytes) = (sent, received) if port == BRIDGE else (received, sent)
    return PortCounters(in_packets, in_bytes, out_packets, out_bytes)


SWITCH = LinuxBridge
