# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's own network stack, and commands that run on the host."""

import shlex

from vsprof.switches.base import Port
from vsprof.terms.placement import Thread
from vsprof.testbeds.base import Process, Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import RUN, Counters, Endpoint, Flood, Frames, Job
from vsprof.workloads.endpoints.pktgen import Pktgen


class Commands:
    """Commands on the host, each pinned to an endpoint's CPU; ``within`` is put before each, to run it in a namespace."""

    def __init__(self, host: Testbed, name: str, cpu: int, within: str = "") -> None:
        self._host, self._name, self._cpu, self._within = host, name, cpu, within
        self._jobs: list[HostJob] = []

    def spawn(self, command: str, *, may_fail: bool) -> Job:
        job = HostJob(self._host, f"{self._name}-job-{len(self._jobs)}", self._name, self.wrapped(command), self._cpu, may_fail)
        self._jobs.append(job)
        return job

    def wrapped(self, command: str) -> str:
        return f"{self._within} {shlex.join(['sh', '-c', command])}" if self._within else command

    def threads(self, role: str) -> list[Thread]:
        return [thread for job in self._jobs for thread in job.threads(role)]

    def stop(self) -> None:
        for job in self._jobs:
            job.stop()
        self._jobs.clear()


def read_counters(interface: str) -> str:
    """A shell command that prints the clock and an interface's counters, for ``counters_of``."""
    return f"date +%s.%N; cd /sys/class/net/{interface}/statistics && cat rx_packets rx_bytes tx_packets tx_bytes"


def counters_of(printed: str) -> Counters:
    clock, *counts = printed.split()
    return Counters(float(clock), *map(int, counts))


class HostEnd(Endpoint):
    """The host's own network stack, on the switch's local port."""

    name = "host"
    address = "10.77.0.100"

    def __init__(self, host: Testbed, port: Port, cpu: int) -> None:
        self.port, self.interface = port, port.where
        self._host, self._cpu = host, cpu
        self._commands = Commands(host, self.name, cpu)
        host.run(f"ip addr add {self.address}/24 dev {self.interface} && ip link set {self.interface} up")
        self.mac = host.run(f"cat /sys/class/net/{self.interface}/address").stdout.strip()

    def spawn(self, command: str, *, may_fail: bool = False) -> Job:
        return self._commands.spawn(command, may_fail=may_fail)

    def flood(self, frames: Frames) -> Flood:
        return Pktgen(self, frames, self._cpu)

    def counters(self) -> Counters:
        return counters_of(self._host.run(read_counters(self.interface)).stdout)

    def threads(self) -> list[Thread]:
        return self._commands.threads("host-other")

    def processes(self) -> list[Process]:
        return []

    def stop(self) -> None:
        self._commands.stop()
        self._host.run(f"ip addr del {self.address}/24 dev {self.interface}", check=False)


class HostJob(Job):
    """A command on the host, pinned as an endpoint is."""

    def __init__(self, host: Testbed, name: str, endpoint: str, command: str, cpu: int, may_fail: bool) -> None:
        self._host, self._endpoint, self._command, self._cpu, self._may_fail = host, endpoint, command, cpu, may_fail
        self._out = f"{RUN}/vsprof-{name}"
        # A sub-shell: the command may say exit, and its status must be written all the same.
        whole = f"( {command}\n) > {self._out}.out 2> {self._out}.err; echo $? > {self._out}.status"
        host.run(f"rm -f {self._out}.*")
        self._process = host.start(name, shlex.join(["/bin/sh", "-c", whole]), cpus=[cpu])

    def finished(self) -> bool:
        return self._host.run(f"[ -s {self._out}.status ]", check=False).status == 0

    def result(self, seconds: float) -> str:
        polls = max(1, round(seconds * 10))
        waited = self._host.run(
            f"for i in $(seq {polls}); do [ -s {self._out}.status ] && exit 0; sleep 0.1; done; exit 1", timeout=seconds + 30, check=False
        )
        if waited.status != 0:
            raise messages.endpoint_failed(self._endpoint, f"no end after {seconds:.0f} s: {self._command}", "")
        status = int(self._host.run(f"cat {self._out}.status").stdout)
        if status != 0 and not self._may_fail:
            words = self._host.run(f"cat {self._out}.err").stdout
            raise messages.endpoint_failed(self._endpoint, f"exit status {status}: {self._command}", words)
        return self._host.run(f"cat {self._out}.out").stdout

    def threads(self, role: str) -> list[Thread]:
        listed = self._host.run(f"ps -o pid= --ppid {self._process.pid}; echo {self._process.pid}", check=False).stdout.split()
        return [Thread(f"{self._endpoint}:traffic", int(pid), role, (self._cpu,)) for pid in listed]

    def stop(self) -> None:
        self._process.stop()
