# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of an endpoint: one end of the traffic."""

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from vsprof.switches.base import Port
from vsprof.terms.placement import Thread
from vsprof.terms.schema import without_fcs
from vsprof.testbeds.base import Process
from vsprof.workloads import messages

if TYPE_CHECKING:
    from vsprof.workloads.endpoints.probe import Probe

RUN = "/run"
PATIENCE_S = 600
"""Of this machine: how long what is asked for in modelled time may take, some milliseconds of it. A second of it takes minutes, and
a busy machine ten times as long."""
STACK_OPTIONS: Mapping[str, tuple[str, ...]] = {"offloads": ("on", "off"), "tcp_window": ("system", "64K", "8K")}
"""Options of an end with a network stack. ``offloads``: whether it leaves checksums and segmentation to others wherever they take them.
``tcp_window``: the buffer of each end of a TCP connection, as iperf3's ``-w`` has it; ``system``: it grows as the kernel sees fit."""
NO_OFFLOADS = "rx off tx off sg off tso off gso off gro off"
"""In ethtool's words. Not all can be set everywhere: ``offloads_on`` says what is."""
OFFLOADS = ("tx-checksumming", "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload")
"""Those that must be off for ``offloads: off``. rx-checksumming alone saves nobody anything, and is often fixed."""


@dataclass(frozen=True, slots=True)
class Counters:
    """An interface's counters, and the endpoint's own clock (seconds) when they were read."""

    clock_s: float
    received_packets: int
    received_bytes: int
    sent_packets: int
    sent_bytes: int


def offloads_on(printed: str) -> list[str]:
    """Which of ``OFFLOADS`` are on, by what ``ethtool --show-offload`` printed. Raises ``ValueError`` where it says nothing of one."""
    said = dict(line.strip().split(": ", 1) for line in printed.splitlines() if ": " in line)
    if unknown := [name for name in OFFLOADS if name not in said]:
        raise ValueError(f"not ethtool's features: no {', '.join(unknown)} in {printed[:200]!r}")
    return [name for name in OFFLOADS if said[name].startswith("on")]


class Job(abc.ABC):
    """A command that runs on an endpoint beside us."""

    @abc.abstractmethod
    def finished(self) -> bool:
        """Whether it ended."""

    @abc.abstractmethod
    def result(self, seconds: float) -> str:
        """Wait for its end and return its standard output. Raises ``RunFailed`` when it takes longer or fails."""


@dataclass(frozen=True, slots=True)
class Frames:
    """What a flood consists of: UDP frames of ``frame_bytes`` (with FCS) in ``flows`` flows, which differ in their destination address."""

    frame_bytes: int
    flows: int
    rate_pps: int | None
    """None: as fast as it goes."""
    source_mac: str
    target_mac: str
    source_address: str
    target_address: str
    """The first flow's."""
    source_port: int = 1024
    target_port: int = 9

    @property
    def size(self) -> int:
        """Bytes of a frame as interfaces and generators count them, without FCS."""
        return without_fcs(self.frame_bytes)


@dataclass(frozen=True, slots=True)
class Burst:
    """Frames that were sent, and how long that took by the sender's own clock [seconds]."""

    sent: int
    seconds: float


class Flood(abc.ABC):
    """Frames sent from an endpoint until they are stopped. It can be started again."""

    awaits_bursts: ClassVar[bool] = False
    """Whether ``burst`` returns once the last frame has drained, and not at once: where frames can't be seen to come and go, for no kernel
    receives them."""

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make everything ready to send. Once, before the first start."""

    @abc.abstractmethod
    def start(self) -> None:
        """Send."""

    def hold(self) -> None:
        """Send nothing until ``go_on``, and owe nothing for that time. For a flood at a given rate that makes up for what it could not
        send in time; nothing to do for any other."""

    def go_on(self) -> None:
        """Send again, from now on at the rate given."""

    @abc.abstractmethod
    def ended(self) -> str | None:
        """What its program says if it ended by itself; None while it sends."""

    @abc.abstractmethod
    def stop(self) -> dict[str, str]:
        """Stop sending, and return what its program printed, by file name."""

    def burst(self, count: int, rate_pps: int | None) -> None:
        """Send so many frames at this rate, or as fast as it goes, from some moment within the next tenths of a second on. While they are
        sent nobody is asked or told anything. Returns at once, or see ``awaits_bursts``. Only where the endpoint can: see
        ``Endpoint.can_not_burst``."""
        raise NotImplementedError

    def burst_sent(self) -> Burst | None:
        """The last one; None where it has not ended."""
        raise NotImplementedError

    def due(self, printed: Mapping[str, str]) -> int:
        """Frames that its rate made due from start to stop, by its program's own clock; ``printed``: what ``stop`` returned.

        Asked only of a flood at a given rate. Raises ``ValueError`` if the program does not tell.
        """
        raise NotImplementedError


class Endpoint(abc.ABC):
    """One end of the traffic: an interface with an address, and commands that run there."""

    name: str
    port: Port
    interface: str
    address: str
    mac: str

    has_stack: ClassVar[bool] = True
    """Whether it has a network stack and a shell. Without one it can be flooded and flood, and maybe send frames at a pace."""

    counts_aside: ClassVar[bool] = False
    """Whether its counters can be read within a window of modelled time: in no time that is its packets', and at once."""

    stands_still: ClassVar[bool] = False
    """Whether what it sends and receives stands still while its host's processes are frozen. What kernels do by themselves goes on."""

    options: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """What an experiment can fix or vary of it, and the values that each option allows; the first is the default."""

    @abc.abstractmethod
    def flood(self, frames: Frames) -> Flood:
        """A flood of ``frames`` from here, not yet begun."""

    def can_not_flood(self, paced: bool, flows: int) -> str | None:
        """Why no flood of ``flows`` flows can be sent from here, or None. ``paced``: at a given rate, and not as fast as it goes."""
        return None

    def can_not_burst(self) -> str | None:
        """Why no given number of frames can be sent from here, or None. In modelled time a search needs that."""
        return messages.no_burst(self.name)

    def can_not_pace(self, to: "Endpoint") -> str | None:
        """Why frames at a fixed pace, each timed, can't be sent from here to ``to``; or None."""
        return messages.not_probed(self.name, to.name)

    def probe(self) -> "Probe":
        """What sends such frames. Asked only of an endpoint that can."""
        raise NotImplementedError

    def spawn(self, command: str, *, may_fail: bool = False) -> Job:
        """Start a shell command. With ``may_fail`` its exit status does not matter (it will be interrupted). Raises ``RunFailed`` where
        DPDK serves the interface, so that there is no stack for a command to use."""
        raise messages.endpoint_failed(self.name, f"it has no network stack: {command}", "")

    def run(self, command: str, *, seconds: float = 30, may_fail: bool = False) -> str:
        """Run a shell command to its end and return its standard output."""
        return self.spawn(command, may_fail=may_fail).result(seconds)

    def kill(self, program: str, signal: str) -> None:
        """Send ``signal`` (INT, KILL) to every process of ``program`` that runs here, if any does."""
        self.run(f"kill -{signal} $(pidof {program})", may_fail=True)

    @abc.abstractmethod
    def counters(self) -> Counters:
        """The interface's counters now."""

    def facts(self) -> dict[str, Any]:
        """What the manifest should say of it."""
        return {}

    @abc.abstractmethod
    def threads(self) -> list[Thread]:
        """The threads of the host that make this endpoint."""

    @abc.abstractmethod
    def processes(self) -> list[Process]:
        """Its processes on the host: if one ends during a run, the run has failed."""

    def close(self) -> None:
        """End the connections to it, and leave it as it is. Safe to call at any time, and twice."""
        return

    @abc.abstractmethod
    def stop(self) -> None:
        """Take it away. Safe to call at any time, and twice."""
