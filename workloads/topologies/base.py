# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a topology: bring up endpoints on a switch, and say who sends to whom.

To add one, write one file here that defines a subclass and names it in ``TOPOLOGY``.
"""

import abc
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from vsprof.switches.base import Port, Switch
from vsprof.terms import schema
from vsprof.terms.placement import NEAR, CpuPlan, Placement, Thread
from vsprof.testbeds.base import Testbed
from vsprof.workloads import messages
from vsprof.workloads.endpoints import virtio_user, vm
from vsprof.workloads.endpoints.base import NO_OFFLOADS, Endpoint, offloads_on
from vsprof.workloads.endpoints.container import Container
from vsprof.workloads.endpoints.virtio_paths import PATHS
from vsprof.workloads.endpoints.virtio_user import VirtioUser
from vsprof.workloads.endpoints.vm import Vm
from vsprof.workloads.endpoints.vm_probe import ProbeVm
from vsprof.workloads.endpoints.vm_switch import SwitchVm
from vsprof.workloads.endpoints.vm_testpmd import TestpmdVm

CONNECT_SECONDS = 30
_SOFTIRQ = re.compile(r"^/proc/(?P<tid>\d+)/comm:(?P<name>(?:ksoftirqd/(?P<cpu>\d+)|napi/.*))$", re.MULTILINE)
CONTAINERS: Mapping[str, type[Endpoint]] = {"virtio-user": VirtioUser, "veth": Container}
"""The kind of endpoint by access; any other takes a virtual machine."""
VMS: Mapping[str, type[Vm]] = {"kernel": Vm, "testpmd": TestpmdVm, "probe": ProbeVm, "vhost-switch": SwitchVm}
"""The kind of virtual machine by the option ``endpoint``."""


def sleeps(options: Mapping[str, str]) -> bool:
    """Whether the switch of a case with these ``options`` sleeps until it is interrupted (vhost-switch's ``rx``)."""
    return options.get("rx", "poll") != "poll"


@dataclass(frozen=True, slots=True)
class Route:
    """One way of frames: ``sender`` sends through ``sender_port``; ``receiver`` gets it from ``receiver_port``."""

    sender: Endpoint
    receiver: Endpoint
    sender_port: Port
    receiver_port: Port


class Topology(abc.ABC):
    """Endpoints on a switch. ``sender`` sends through ``sender_port``; ``receiver`` gets it from ``receiver_port``."""

    accesses: ClassVar[tuple[str, ...]] = tuple(access for access in schema.ACCESSES if access != schema.CARD)
    """How its endpoints can be reached."""
    endpoints: ClassVar[tuple[str, ...]] = vm.ENDPOINTS
    """Who can serve the interface of its virtual machines; the default is the first."""
    needs_devices: ClassVar[bool] = False
    """Whether a port of the switch must be one of DPDK's own devices."""
    needs_cards: ClassVar[bool] = False
    """Whether a port of the switch must be a network card of the host, at the end of a wire."""
    returns: ClassVar[bool] = False
    """Whether frames come in by themselves, and endpoints send them back: then there is nothing to send."""

    makes_flows: ClassVar[bool] = False
    """Whether frames that come by themselves are of as many flows as a case says."""

    ends_in_host: ClassVar[bool] = False
    """Whether an endpoint is the host itself, behind the switch's local port."""

    options: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Those that it has itself, beside its endpoints'; not with every access, see ``options_of``."""

    sender: Endpoint
    receiver: Endpoint
    sender_port: Port
    receiver_port: Port

    def __init__(
        self,
        host: Testbed,
        switch: Switch,
        plan: CpuPlan,
        access: str,
        options: Mapping[str, str] = {},
        frame_bytes: int = 64,
        flows: int = 1,
    ) -> None:
        """``options``: of a case; those of the switch among them are none of ours. ``frame_bytes``, with FCS, and ``flows``: for a topology
        that makes frames itself."""
        self.host, self.switch, self.plan, self.access, self.frame_bytes, self.flows = host, switch, plan, access, frame_bytes, flows
        self.chosen = {name: options.get(name, values[0]) for name, values in self.options_of(access, options).items()}
        """The value of each option of the endpoints."""
        self.known: dict[str, Any] = {}
        """What one traffic of a run found out of the path, for the next ones."""
        self._made: list[Endpoint] = []
        self._vms: list[Vm] | None = None
        """The virtual machines, once they are booted."""
        self._softirqs: list[Thread] = []
        self._offloads: dict[str, list[str]] = {}
        """Of each end with a network stack, which offloads it has."""

    @classmethod
    def options_of(cls, access: str, options: Mapping[str, str] = {}) -> Mapping[str, tuple[str, ...]]:
        """The options that endpoints reached by ``access`` have, in a case with these ``options``."""
        if access in CONTAINERS:
            return CONTAINERS[access].options
        found = VMS.get(options.get("endpoint", ""), VMS[cls.endpoints[0]]).options
        # QEMU's one main loop would serve them all.
        one = {"queues": ("1",)} if "queues" in found and access == "virtio-net" else {}
        return {**found, **one, "endpoint": cls.endpoints}

    @classmethod
    def ends(cls, options: Mapping[str, str]) -> int:
        """How many endpoints have a CPU of their own in a case with these ``options``."""
        return 2

    @property
    def routes(self) -> Sequence[Route]:
        """All ways that frames take, once it is started; the first is that of ``sender`` and ``receiver``."""
        return (Route(self.sender, self.receiver, self.sender_port, self.receiver_port),)

    @classmethod
    def boots(cls, options: Mapping[str, str]) -> Mapping[str, bool]:
        """What the host must boot with in a case with these ``options``, as ``Testbed.boot`` takes it; nothing: it stays as it is."""
        return {}

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        """Raise ``BadInput`` if the values ``given`` for options of a case do not go together. Each has been checked."""
        if given.get("guest_cpu") == "switch" and given.get("switch_cpus", "1") != "1":
            raise messages.which_of_the_switchs_cpus()
        if given.get("driver") == "frame-flood" and PATHS[given.get("path", "mergeable")].in_order == "on":
            raise messages.no_path_of_frame_flood(given["path"])

    def boot(self) -> None:
        """Boot the virtual machines, where its endpoints are any: before anything else runs on the host, which may have them booted.

        Raises ``RunFailed`` when one does not come up.
        """
        if self._vms is None:
            vms = [] if self.access in CONTAINERS else self._machines()
            if vms:
                vm.boot_all(self.host, vms)
            self._vms = vms

    @abc.abstractmethod
    def start(self) -> None:
        """Bring up the endpoints, and attach them. Raises ``RunFailed`` when one does not come up or they can't reach each other."""

    def stop(self) -> None:
        """Take the endpoints away. Safe to call at any time, and twice."""
        # One that can't be stopped, on a host that hangs, must not keep the others.
        with contextlib.ExitStack() as undo:
            for endpoint in reversed(self._made):
                undo.callback(endpoint.stop)
            self._made.clear()
            self._vms = None

    def close(self) -> None:
        """End the connections to the endpoints, which stay as they are. Safe to call at any time, and twice."""
        for endpoint in self._made:
            endpoint.close()

    def check(self) -> None:
        """Raise ``RunFailed`` if the switch or an endpoint died."""
        processes = [*self.switch.processes(), *(process for endpoint in self._made for process in endpoint.processes())]
        if died := self.host.died(processes):
            raise messages.died(died.name, died.log())

    def stands_still(self) -> bool:
        """Whether its endpoints and its switch, and what they send, stand still while the host's processes are frozen."""
        return self.switch.stands_still and bool(self._made) and all(endpoint.stands_still for endpoint in self._made)

    def facts(self) -> dict[str, Any]:
        """What the manifest should say of the endpoints, by name; of those that have something to say."""
        offloads = {name: {"offloads_on": on} for name, on in self._offloads.items()}
        return {one.name: said for one in self._made if (said := {**one.facts(), **offloads.get(one.name, {})})}

    def placement(self) -> Placement:
        """Where every thread is, and what each CPU is for."""
        threads = [*self.switch.threads(), *(thread for endpoint in self._made for thread in endpoint.threads()), *self._softirq_threads()]
        return Placement(threads, self.cpu_roles())

    def _softirq_threads(self) -> list[Thread]:
        """The kernel's own thread of each CPU for softirqs that were put off, and of each interface that is served by one (see
        ``switches.links``). Asked once: they come and go with CPUs and interfaces alone."""
        if not self._softirqs:
            # pgrep reads three files of each process, and takes a second in the lab.
            listed = self.host.run("grep -sHE '^(ksoftirqd|napi)/' /proc/[0-9]*/comm", check=False).stdout
            self._softirqs = [
                Thread(one["name"], int(one["tid"]), "softirq", (int(one["cpu"] or self.plan.switch),)) for one in _SOFTIRQ.finditer(listed)
            ]
        return self._softirqs

    def cpu_roles(self) -> dict[int, str]:
        """The role of each CPU: the one of what is pinned there; the housekeeping CPU is ``host-other`` whatever else it does."""
        roles = {**dict.fromkeys(self.plan.movers, self.switch.mover[self.access]), **self.endpoint_roles()}
        return {cpu: roles.get(cpu, "host-other") for cpu in range(self.host.cpus)} | {self.plan.housekeeping: "host-other"}

    @abc.abstractmethod
    def endpoint_roles(self) -> dict[int, str]:
        """The role of each endpoint's CPU."""

    @abc.abstractmethod
    def endpoint_cpus(self) -> Sequence[int]:
        """The CPU of each endpoint on the switch."""

    def _attach(self) -> list[Endpoint]:
        """All endpoints, each on a port of its own: of the kind that the access asks for."""
        cpus = self.endpoint_cpus()
        ports = [self.switch.add_port(f"p{number}", self.access) for number, _ in enumerate(cpus, start=1)]
        if self.access == "virtio-user":
            ends = virtio_user.Ends(self.host, ports, cpus, self.chosen["path"], driver=self.chosen["driver"]).ends
            self._made += ends
            return list(ends)
        if self.access == "veth":
            for number, (port, cpu) in enumerate(zip(ports, cpus, strict=True), start=1):
                self._made.append(Container(self.host, port, number, cpu))
            return list(self._made)
        self._plug(ports)
        return list(self._made)

    def _plug(self, ports: Sequence[Port]) -> list[Vm]:
        """The virtual machines, with their interfaces on ``ports``."""
        self.boot()
        assert self._vms
        vm.plug_all(self._vms, ports)
        return self._vms

    def _machines(self) -> list[Vm]:
        kind, cpus = VMS[self.chosen["endpoint"]], self.endpoint_cpus()
        # Of frame-probe's one is all ends, for only one clock can time a frame.
        cpus = cpus[:1] if kind is ProbeVm else cpus
        made = [kind(self.host, number, **self._place(cpu, self._movers(number - 1))) for number, cpu in enumerate(cpus, start=1)]
        self._made += [end for one in made for end in (one.ends if isinstance(one, ProbeVm) else [one])]
        return made

    def _movers(self, number: int) -> tuple[int, ...]:
        """The switch's CPUs, from the one on that moves the frames of endpoint ``number``, counted from 0, where not the switch itself
        decides that: both ends of a pair have the same, unless there are more CPUs than pairs."""
        movers, pairs = self.plan.movers, len(self.endpoint_cpus()) // 2
        first = (number // 2 if pairs >= len(movers) else number) % len(movers)
        return movers[first:] + movers[:first]

    def _place(self, cpu: int, movers: tuple[int, ...]) -> dict[str, Any]:
        """Where a VM is: its frames are moved by CPUs of the switch's, whatever the access; its memory is on its CPU's NUMA node."""
        return {
            "vcpu": movers[0] if self.chosen["guest_cpu"] == "switch" else cpu,
            "backend_cpus": movers,
            "housekeeping_cpu": self.plan.housekeeping,
            "node": self.plan.slots[NEAR].node if self.plan.slots else None,
            "options": self.chosen,
        }

    def _set_offloads(self) -> None:
        """Take the offloads of both ends away where the case says so, and remember what they have."""
        for end in dict.fromkeys(end for route in self.routes for end in (route.sender, route.receiver)):
            if not end.has_stack:
                continue
            if off := self.chosen.get("offloads") == "off":
                end.run(f"ethtool --offload {end.interface} {NO_OFFLOADS}", may_fail=True)
            self._offloads[end.name] = offloads_on(end.run(f"ethtool --show-offload {end.interface}"))
            if off and self._offloads[end.name]:
                raise messages.offloads_stay_on(end.name, self._offloads[end.name])

    def _check_path(self) -> None:
        """Both ends must reach each other before anything is measured; it also teaches the switch their addresses."""
        for route in self.routes:
            if route.sender.has_stack and route.receiver.has_stack:
                _ping(route.sender, route.receiver)
                _introduce(route.sender, route.receiver)
            if not route.sender.has_stack or not route.receiver.has_stack or self.switch.wants_addresses:
                for end, port in ((route.sender, route.sender_port), (route.receiver, route.receiver_port)):
                    self.switch.learn(port, end.mac)


def _ping(sender: Endpoint, receiver: Endpoint) -> None:
    reached = sender.run(
        f"for i in $(seq {CONNECT_SECONDS}); do ping -c 1 -W 1 {receiver.address} >/dev/null 2>&1 && echo yes && exit; done",
        seconds=2 * CONNECT_SECONDS + 10, may_fail=True,
    )  # fmt: skip
    if "yes" not in reached:
        raise messages.no_path(sender.name, receiver.name, CONNECT_SECONDS)


def _introduce(sender: Endpoint, receiver: Endpoint) -> None:
    """Tell each end the other's MAC address for good: an ARP request within a window would be counted as a frame of its traffic."""
    for end, other in ((sender, receiver), (receiver, sender)):
        # busybox's ip, which guests have, can't add neighbours.
        new = f"ip neigh replace {other.address} lladdr {other.mac} dev {end.interface} nud permanent"
        end.run(f"{new} 2>/dev/null || arp -i {end.interface} -s {other.address} {other.mac}")
