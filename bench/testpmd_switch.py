# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's testpmd between two endpoints, as the mark to measure switches by: its loop takes a burst from a port and hands it to the other.

``io`` does not look at the frames; ``mac`` writes new addresses into each. Its ports are net_vhost devices, which connect to the endpoints.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from vsprof.switches import messages as switches_messages
from vsprof.switches.base import Port, PortCounters, Switch
from vsprof.terms.placement import Thread
from vsprof.testbeds import dpdk_telemetry
from vsprof.testbeds.base import Process
from vsprof.workloads.endpoints.testpmd import Testpmd

NAME = "testpmd-switch"
RUN = "/run/vsprof-testpmd-switch"
PORTS = 2


class TestpmdSwitch(Switch):
    __test__ = False
    accesses = ("virtio-user", "vhost-user")
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"forward": ("io", "mac")}

    def start(self) -> None:
        self.host.run(f"rm -rf {RUN} && mkdir -p {RUN}")
        self._testpmd: Testpmd | None = None
        self._ports: list[Port] = []

    def add_port(self, name: str, access: str) -> Port:
        port = Port(name, access, f"{RUN}/{name}.sock")
        self._ports.append(port)
        # It wants all its ports when it starts.
        if len(self._ports) == PORTS:
            devices = [f"net_vhost{number},iface={port.where},client=1" for number, port in enumerate(self._ports)]
            self._testpmd = Testpmd(self.host, NAME, devices, [self.plan.switch], forward=self.chosen["forward"])
        return port

    def learn(self, port: Port, mac: str) -> None:
        """It knows no addresses: its two ports are a pair."""

    def local_port(self) -> Port:
        raise switches_messages.switch_failed("testpmd has no port on the host's network stack", "")

    def ready(self) -> None:
        self._running().tell("start")

    def port_counters(self) -> str:
        return dpdk_telemetry.command(NAME, [f"/ethdev/stats,{number}" for number in range(PORTS)])

    @classmethod
    def parse_port_counters(cls, text: str) -> dict[str, PortCounters]:
        counted = (found for _, _, _, found in dpdk_telemetry.answers(text))
        names = ("ipackets", "ibytes", "opackets", "obytes")
        return {f"p{number}": PortCounters(*(int(one[name]) for name in names)) for number, one in enumerate(counted, start=1)}

    def threads(self) -> list[Thread]:
        return self._running().threads()

    def processes(self) -> list[Process]:
        return self._testpmd.processes() if self._testpmd else []

    def facts(self) -> dict[str, Any]:
        return {"forward": self.chosen["forward"]}

    def stop(self) -> None:
        if testpmd := getattr(self, "_testpmd", None):
            testpmd.stop()
        self._testpmd = None
        self.host.run(f"rm -rf {RUN}", check=False)

    def _running(self) -> Testpmd:
        assert self._testpmd is not None
        return self._testpmd
