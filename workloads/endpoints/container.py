# SPDX-License-Identifier: GPL-2.0-or-later
"""A container: a network namespace of the host with one end of a veth pair, and the host kernel's network stack."""

from collections.abc import Mapping
from typing import ClassVar

from vsprof.switches.base import Port
from vsprof.terms.placement import Thread
from vsprof.testbeds.base import Process, Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints import pktgen, testpmd
from vsprof.workloads.endpoints.base import STACK_OPTIONS, Counters, Endpoint, Flood, Frames, Job
from vsprof.workloads.endpoints.host_end import Commands, counters_of, read_counters
from vsprof.workloads.endpoints.pktgen import Pktgen
from vsprof.workloads.endpoints.testpmd import PacketSocketFlood


class Container(Endpoint):
    """What it sends and receives is done by the host's kernel on ``cpu``."""

    interface = "eth0"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = STACK_OPTIONS

    def __init__(self, host: Testbed, port: Port, number: int, cpu: int) -> None:
        self.name = f"container{number}"
        self.address = f"10.77.0.{number}"
        self.mac = f"52:54:00:76:67:{number:02x}"
        self.port = port
        self._host, self._cpu = host, cpu
        self._commands = Commands(host, self.name, cpu, within=f"ip netns exec {self.name}")
        self._floods: list[PacketSocketFlood] = []
        self._start()

    def _start(self) -> None:
        name, inside = self.name, f"ip -netns {self.name}"
        self._host.run(
            f"ip netns add {name} && ip link set {self.port.where} netns {name}"
            f" && {inside} link set {self.port.where} name {self.interface} address {self.mac}"
            f" && {inside} addr add {self.address}/24 dev {self.interface}"
        )
        # Only what is sent on purpose is to be counted; and what arrives is received on the endpoint's own CPU (RPS).
        self.run(
            f"echo 1 > /proc/sys/net/ipv6/conf/{self.interface}/disable_ipv6;"
            f" echo {1 << self._cpu:x} > /sys/class/net/{self.interface}/queues/rx-0/rps_cpus;"
            f" ip link set lo up; ip link set {self.interface} up"
        )

    def flood(self, frames: Frames) -> Flood:
        if self._has_pktgen():
            return Pktgen(self, frames, self._cpu)
        for earlier in self._floods:
            earlier.end()
        flood = PacketSocketFlood(self._host, f"{self.name}-flood{len(self._floods)}", self.name, self.interface, frames, self._cpu)
        self._floods.append(flood)
        return flood

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        if self._has_pktgen():
            return None
        return messages.no_pace(self.name) if paced else testpmd.can_not_flood(self.name, flows)

    def can_not_burst(self) -> str | None:
        return None if self._has_pktgen() else super().can_not_burst()

    def spawn(self, command: str, *, may_fail: bool = False) -> Job:
        return self._commands.spawn(command, may_fail=may_fail)

    def kill(self, program: str, signal: str) -> None:
        # All containers share the host's process ids: only what runs in this one is meant.
        self._host.run(f"for p in $(ip netns pids {self.name}); do [ $(cat /proc/$p/comm) = {program} ] && kill -{signal} $p; done; true")

    def counters(self) -> Counters:
        return counters_of(self._host.run(self._commands.wrapped(read_counters(self.interface))).stdout)

    def threads(self) -> list[Thread]:
        return [*self._commands.threads("guest"), *(thread for flood in self._floods for thread in flood.threads())]

    def processes(self) -> list[Process]:
        return [process for flood in self._floods for process in flood.processes()]

    def stop(self) -> None:
        for flood in self._floods:
            flood.end()
        self._floods.clear()
        self._commands.stop()
        self._host.run(f"ip netns delete {self.name}", check=False)

    def _has_pktgen(self) -> bool:
        return self._host.run(f"[ -d {pktgen.FOLDER} ]", check=False).status == 0
