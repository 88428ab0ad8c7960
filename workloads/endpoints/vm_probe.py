# SPDX-License-Identifier: GPL-2.0-or-later
"""frame-probe in a virtual machine with two interfaces: it sends from the first, receives on the second, and times each frame by one clock.

The machine is both ends of the path. Its frames are the only traffic: single ones at a fixed pace, and floods at a given rate.
"""

from collections.abc import Sequence
from typing import Any

from vsprof.switches.base import Port
from vsprof.terms.placement import Thread
from vsprof.testbeds.base import Process, Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import Counters, Endpoint, Flood, Frames
from vsprof.workloads.endpoints.probe import READY, Probe, ProbeFlood
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.endpoints.vm_dpdk import DpdkVm


class ProbeVm(DpdkVm):
    """The machine. Its ends are ``ends``."""

    slots = ("slot1", "slot2")

    def __init__(self, host: Testbed, number: int, **how: Any) -> None:
        """As ``Vm``."""
        super().__init__(host, number, **how)
        self.ends = [ProbeEnd(self, number + index) for index, _ in enumerate(self.slots)]
        self._ahead_s = 0.0

    def plug(self, *ports: Port) -> None:
        for end, port in zip(self.ends, ports, strict=True):
            end.port = port
        super().plug(*ports)

    def interfaces(self) -> Sequence[tuple[str, str]]:
        return [(end.interface, end.mac) for end in self.ends]

    def in_host_time(self, report: Report) -> Report:
        """The same, with moments as the host's clock has them."""
        gap = report.gap.model_copy(update={"began_s": report.gap.began_s - self._ahead_s})
        return report.model_copy(update={"clock_s": report.clock_s - self._ahead_s, "gap": gap})

    def flood(self, frames: Frames) -> Flood:
        return ProbeFlood(GuestProbe(self), frames)

    def begin(self) -> None:
        self._ahead_s = self._clock_ahead()
        self.launch_probe()

    def finish(self) -> None:
        self.await_program(READY)

    def _clock_ahead(self) -> float:
        """What the guest's clock is ahead of the host's [s], read between two readings of that."""
        before = float(self._host.run("echo $EPOCHREALTIME").stdout)
        guest = self.ask("guest-get-time") / 1e9
        return guest - (before + float(self._host.run("echo $EPOCHREALTIME").stdout)) / 2


class ProbeEnd(Endpoint):
    """One interface of the machine, which belongs to the first end."""

    has_stack = False

    def __init__(self, vm: ProbeVm, number: int) -> None:
        self._vm = vm
        self.interface = f"eth{number - 1}"
        self.name = f"{vm.name}-{self.interface}"
        self.address = f"10.77.0.{number}"
        self.mac = f"52:54:00:76:67:{number:02x}"

    def flood(self, frames: Frames) -> Flood:
        return self._vm.flood(frames)

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        if not paced:
            return messages.only_paced(self.name)
        if flows > 1:
            return messages.one_flow(self.name, flows)
        return None if self._is_first() else messages.no_pace(self.name)

    def can_not_pace(self, to: Endpoint) -> str | None:
        return None if [self, to] == self._vm.ends else super().can_not_pace(to)

    def probe(self) -> Probe:
        return GuestProbe(self._vm)

    def counters(self) -> Counters:
        return self.probe().report().counters()[self._vm.ends.index(self)]

    def facts(self) -> dict[str, Any]:
        return self._vm.facts()

    def threads(self) -> list[Thread]:
        return self._vm.threads() if self._is_first() else []

    def processes(self) -> list[Process]:
        return self._vm.processes() if self._is_first() else []

    def close(self) -> None:
        self._vm.close()

    def stop(self) -> None:
        self._vm.stop()

    def _is_first(self) -> bool:
        return self._vm.ends[0] is self


class GuestProbe(Probe):
    """The frame-probe of a machine."""

    def __init__(self, vm: ProbeVm) -> None:
        self._vm, self.name = vm, vm.name

    def report(self) -> Report:
        return self._vm.in_host_time(super().report())

    def log(self) -> str:
        return self._vm.log()

    def ended(self) -> str | None:
        return self._vm.ended()

    def _ask(self, command: str) -> str:
        return self._vm.ask_probe(command)
