# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a switch.

Life cycle, in the order the runner uses it::

    switch = KernelOvs(host, plan, options)
    switch.unavailable()                   # None, or why it can't run on this host
    switch.start()                         # an empty bridge
    port = switch.add_port("p0", "vhost-net")
    switch.local_port()                    # the bridge's own interface on the host, for vm2host
    switch.ready()                         # the endpoints are up: from now on it runs as it will be measured
    switch.settle(flows)                   # traffic comes: what it learns of it, it learns now
    switch.threads()                       # who runs it, for the placement
    switch.kill(); switch.restart()        # only where a traffic asks for it, and can_not_restart() is None
    switch.port_counters()                 # a shell command, and parse_port_counters() reads what it prints
    switch.stop()

A switch knows a testbed and CPUs, but nothing of endpoints or traffic. To add one, write one file here that defines a
subclass and names it in ``SWITCH``; the file's name is the switch's name.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from vsprof.switches import messages
from vsprof.terms.placement import CpuPlan, Thread
from vsprof.testbeds.base import Process, Testbed

SWITCH_CPUS = "switch_cpus"
MOVERS: Mapping[str, tuple[str, ...]] = {SWITCH_CPUS: ("1", "2", "4", "8")}
"""The option of a switch that can move frames on several CPUs: on how many."""


@dataclass(frozen=True, slots=True)
class Port:
    """A switch's port. ``where`` is what the endpoint attaches to: a tap's name, a vhost-user socket's path, or an
    interface of the host."""

    name: str
    access: str
    where: str
    listener: str = "endpoint"
    """Of a vhost-user socket: who listens there, ``endpoint`` or ``switch``. The other connects."""


@dataclass(frozen=True, slots=True)
class PortCounters:
    """What a port counted since it was made. ``received``: from the endpoint into the switch; ``sent``: out of the switch."""

    received_packets: int
    received_bytes: int
    sent_packets: int
    sent_bytes: int

    def __add__(self, other: "PortCounters") -> "PortCounters":
        """Of two ports together."""
        return PortCounters(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


class Switch(abc.ABC):
    """Something that forwards frames between ports. See the module's text for the life cycle."""

    words: ClassVar[str] = ""
    """Its name as reports write it; empty: the file's."""

    rank: ClassVar[int] = 100
    """Its place among switches in every table and figure, the lowest first."""

    colour: ClassVar[int | None] = None
    """Its slot in the palette of figures (analysis/style.yaml); None: one that is free in the result."""

    program: ClassVar[str] = ""
    """The program whose threads are the switch's, as reports write it; empty: it is called as the switch is."""

    accesses: ClassVar[tuple[str, ...]]
    """How endpoints can reach it; the first is its default."""

    stands_still: bool = True
    """Whether it does nothing to the others of its host while its processes are frozen."""
    takes_devices: ClassVar[bool] = False
    """Whether ``add_device`` and ``join`` are there."""

    takes_cards: ClassVar[bool] = False
    """Whether ``add_card`` and ``join`` are there."""

    options: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """What an experiment can fix or vary of it, and the values that each option allows; the first is the default."""

    reads: ClassVar[tuple[str, ...]] = ()
    """Options of endpoints on which depends what it can do."""

    node_options: ClassVar[frozenset[str]] = frozenset()
    """Those of them that choose between the NUMA nodes of a host that has two."""

    host_options: ClassVar[frozenset[str]] = frozenset()
    """Those of them that only matter where the host is an endpoint: they choose the way to its network stack."""

    card_options: ClassVar[frozenset[str]] = frozenset()
    """Those of them that only matter where a port is a network card of the host."""

    table_options: ClassVar[frozenset[str]] = frozenset()
    """Those of them that only matter where it decides by itself where frames go: see ``join``."""

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        """``options``: of a case; those of endpoints among them are none of ours. The endpoints follow ``self.plan``, where an option may
        have chosen another of the switch's slots."""
        self.host, self.plan = host, plan
        self.chosen = {name: options.get(name, values[0]) for name, values in self.options.items()}
        """The value of each of its options."""

        self.cards: list[str] = []
        """The PCI addresses of the network cards that ``add_card`` makes ports, told before ``start``; only where ``takes_cards``."""
        self.release = options.get("release")
        """The Debian release that its programs come from; None where the case does not ask for one: the testbed's own."""

    @classmethod
    def movers(cls, given: Mapping[str, str]) -> int:
        """On how many CPUs it moves frames in a case with these options."""
        return int(given.get(SWITCH_CPUS, "1"))

    mover: ClassVar[Mapping[str, str]] = {
        "vhost-user": "switch", "virtio-user": "switch", "card": "switch", "vhost-net": "vhost", "virtio-net": "vhost", "veth": "softirq",
    }  # fmt: skip
    """The role of the CPU that moves frames, by access."""

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        """Raise ``BadInput`` if the values ``given`` for options of a case, and its ``access``, do not go together. Each has been
        checked."""

    def unavailable(self) -> str | None:
        """Why it can't run on this host, or None. Asked before it is started."""
        return None

    def of_release(self, command: str) -> str:
        """The command line that runs ``command``, a program with its arguments, as the case's release has it."""
        return f"{self.host.enter(self.release)} {command}".strip() if self.release else command

    def release_lacking(self) -> str | None:
        """Why the case's release can't be run here, or None."""
        return self.host.release_lacking(self.release) if self.release else None

    @abc.abstractmethod
    def start(self) -> None:
        """Start with no port. Raises ``RunFailed`` with the switch's own words when it does not come up."""

    @abc.abstractmethod
    def add_port(self, name: str, access: str) -> Port:
        """Make a port that an endpoint can attach to."""

    def add_device(self, name: str, device: str, queues: int = 1) -> Port:
        """Make a port of one of DPDK's own devices, such as ``net_null0,size=60``, which receives by so many ``queues``; only where
        ``takes_devices``."""
        raise NotImplementedError

    def add_card(self, name: str, number: int = 0) -> Port:
        """Make a port of this one of the ``cards``; only where ``takes_cards``."""
        raise NotImplementedError

    def join(self, one: Port, other: Port) -> None:
        """Let all that comes in by either port go out by the other, whatever its addresses; only where it takes devices or cards."""
        raise NotImplementedError

    @abc.abstractmethod
    def learn(self, port: Port, mac: str) -> None:
        """Tell it who is behind a port: an endpoint that only receives would never say so itself."""

    @property
    def wants_addresses(self) -> bool:
        """Whether it must be told by ``learn`` who is behind a port, even of endpoints that say so themselves."""
        return False

    @abc.abstractmethod
    def local_port(self) -> Port:
        """The switch's own interface on the host's network stack."""

    def ready(self) -> None:
        """Told once the endpoints are up. A switch that idled cheaply until then starts to run as it will be measured."""

    def settle(self, flows: int) -> None:
        """Told once traffic of so many flows comes, before windows: returns when it has in its tables what that brings there. Raises
        ``RunFailed``."""

    def can_not_restart(self) -> str | None:
        """Why it can't be killed and restarted while endpoints are attached, or None."""
        return messages.can_not_restart()

    def kill(self) -> None:
        """End it as a crash would (SIGKILL): nothing is tidied up. For a switch that can be restarted."""
        raise NotImplementedError

    def restart(self) -> None:
        """After ``kill``: start it again with the ports that it had, as its service would. Returns once it runs; raises ``RunFailed``."""
        raise NotImplementedError

    @abc.abstractmethod
    def port_counters(self) -> str:
        """A shell command that prints all ports' counters as they are now."""

    @classmethod
    @abc.abstractmethod
    def parse_port_counters(cls, text: str) -> dict[str, PortCounters]:
        """Counters by port name, from what ``port_counters`` printed."""

    @abc.abstractmethod
    def threads(self) -> list[Thread]:
        """The switch's threads as they are now."""

    @abc.abstractmethod
    def processes(self) -> list[Process]:
        """Its processes as they are now: if one ends by itself during a run, the run has failed."""

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """Version and settings, for the manifest."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop it and take its ports away. Safe to call at any time, and twice."""
