# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a kind of traffic.

Life cycle, in the order the runner uses it::

    traffic = UdpFlood(topology, options)
    traffic.unavailable()                # None, or why these endpoints can't send it
    traffic.start()                      # it flows from now on
    traffic.nothing_flows()              # None; or why there is nothing to measure: then nothing follows but stop and numbers
    # warm-up
    traffic.check()                      # it still does
    for each window:
        traffic.hold()                   # only where time is modelled in windows alone: before that, and
        traffic.go_on()                  # once it is
        before = traffic.sample()        # the endpoints' counters and clocks
        …                                # the window passes; switch counters are read by the window itself
        after = traffic.sample()
    traffic.before_own_windows()         # only where a collector has windows of its own, which follow now
    traffic.after_windows()
    raw = traffic.stop()                 # ends it; whatever its programs printed, by file name
    traffic.numbers(raw, windows)        # pure: computed from what was recorded, so it can be done again later

To add one, write one file here that defines a subclass and names it in ``TRAFFIC``.
"""

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from vsprof.switches.base import PortCounters
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Data, Headline
from vsprof.testbeds.base import MODELLED
from vsprof.workloads import messages
from vsprof.workloads.endpoints.base import Counters
from vsprof.workloads.topologies.base import Topology

SHORTEST_MODELLED_S, LONGEST_MODELLED_S = 0.001, 10.0
"""Of a window in modelled time. A second of it takes more than a real minute."""


class Options(BaseModel):
    """Settings of a kind of traffic, as an experiment's YAML gives them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    load: str = "saturation"
    """``saturation``: as much as goes through. ``equal``: the same offered rate for every switch. ``ndr``, ``pdr``: the no-drop and the
    partial-drop rate of each, searched first. ``paced``: a fixed rate of requests."""
    modelled_seconds: float | None = Field(None, ge=SHORTEST_MODELLED_S, le=LONGEST_MODELLED_S)
    """Length of this traffic's windows in modelled time, where it is another than that of the experiment's others."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Both endpoints' counters at nearly the same time."""

    sender: Counters
    receiver: Counters

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(Counters(**data["sender"]), Counters(**data["receiver"]))


@dataclass(frozen=True)
class Window:
    """What was recorded of one window, as far as traffic is concerned. Switch counters and their times are the testbed's."""

    name: str
    samples: tuple[Sample, Sample] | None
    """The endpoints' counters before and after; None where they were not asked."""
    switch_seconds: float
    into_switch: tuple[PortCounters | None, PortCounters | None]
    """The senders' ports before and after; None where the switch does not say."""
    out_of_switch: tuple[PortCounters | None, PortCounters | None]
    """The receivers' ports before and after."""

    def endpoints(self) -> tuple[Sample, Sample]:
        """Their counters before and after. Raises ``ValueError`` where they were not asked."""
        if self.samples is None:
            raise ValueError(f"{self.name}: the endpoints' counters were not recorded")
        return self.samples


class ModelledTime(Protocol):
    """The lab's clock, for a traffic that measures outside of windows. Who drives it is a collector, of which a traffic knows nothing."""

    def modelled_time(self) -> AbstractContextManager[None]:
        """While it lasts, time on the testbed is the modelled processor's."""

    def now(self) -> float:
        """Seconds of it so far."""

    def await_packets(self, rate_pps: int | None) -> None:
        """Let it pass until packets, which are sent at this rate, have come, and come no more; or until none has come for long."""

    def await_quiet(self, rate_pps: int | None) -> None:
        """Let it pass until packets come no more."""


class Traffic(abc.ABC):
    """Traffic from a topology's sender to its receiver. See the module's text for the life cycle."""

    words: ClassVar[str] = ""
    """Its name as reports write it; empty: the file's."""
    rank: ClassVar[int] = 100
    """Its place among traffics of the same load in every table and figure, the lowest first."""
    data: ClassVar[Data | None] = None
    """What it carries, and counts are divided by; None: nothing is divided by it."""
    headlines: ClassVar[tuple[Headline, ...]] = ()
    """The numbers that a reader asks for first; the first is what it is judged by."""
    kind: ClassVar[str] = ""
    """One of ``terms.vocabulary.KINDS``: explanations of such a traffic hold of it."""
    saturates: ClassVar[bool] = True
    """Whether the path is full at the load ``saturation``."""
    called: ClassVar[str] = ""
    """How a sentence calls it, such as ``the flood``; empty: by its name."""

    options: ClassVar[type[Options]] = Options
    takes_all_routes: ClassVar[bool] = False
    """Whether it is sent along all ``routes`` of a topology that has several."""
    needs_stack: ClassVar[bool] = True
    """Whether its programs run on the endpoints' own network stack."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Options of a case that are for this traffic alone: without it they would change nothing."""
    factors: ClassVar[frozenset[str]] = frozenset()
    """Of ``frame_bytes`` and ``flows``, what it looks at: cases that differ in another one alone would be equal."""
    returns: ClassVar[bool] = False
    """Whether it is what endpoints send back, of frames that come by themselves."""
    outlasts_modelled_time: ClassVar[bool] = False
    """Whether what it is sent for takes longer than modelled time can last, so that in the lab it is in the emulator's."""

    def __init__(self, topology: Topology, settings: Options, frame_bytes: int, flows: int) -> None:
        self.topology, self.settings, self.frame_bytes, self.flows = topology, settings, frame_bytes, flows
        self.say: Callable[[str], None] = lambda text: None
        """Tells the user what it does now."""
        self.clock: ModelledTime | None = None
        """Where time is modelled, who drives it."""
        self.beside: tuple[Options, ...] = ()
        """The settings of all traffics of its kind in this run, its own among them."""

    def least_seconds(self) -> float:
        """How long a window must last, by the testbed's clock, to hold enough of what is counted here alone."""
        return 0.0

    def unavailable(self) -> str | None:
        """Why these endpoints can't send it, or None. Asked once they are up."""
        if self.topology.host.clock == MODELLED and self.outlasts_modelled_time:
            return messages.not_in_modelled_time(type(self).__module__.rpartition(".")[2])
        if self.returns != self.topology.returns:
            say = messages.nothing_returns if self.returns else messages.nothing_is_sent
            return say(type(self.topology).__module__.rpartition(".")[2])
        if len(self.topology.routes) > 1 and not self.takes_all_routes:
            return messages.one_route(type(self).__module__.rpartition(".")[2], len(self.topology.routes))
        ends = (self.topology.sender, self.topology.receiver)
        return next((messages.no_stack(end.name) for end in ends if self.needs_stack and not end.has_stack), None)

    @abc.abstractmethod
    def start(self) -> None:
        """Let it flow. Raises ``RunFailed`` when it does not."""

    def nothing_flows(self) -> str | None:
        """Why it does not flow though it could be started, or None. A search that found no rate is a result, without windows."""
        return None

    @abc.abstractmethod
    def check(self) -> None:
        """Raise ``RunFailed`` if it no longer flows. Asked after the warm-up and after each window."""

    def hold(self) -> None:
        """Called before modelled time begins. What is sent at a rate of its own must not owe what it could not send in the emulator's time:
        it would be made up for in the window."""

    def go_on(self) -> None:
        """Called when modelled time has begun."""

    def stands_still(self) -> bool:
        """Whether it may be frozen between two windows, with all processes of its host, and then goes on as if nothing had been."""
        return False

    def before_own_windows(self) -> None:
        """Called once, before windows in which the host is slowed down: what is counted over the whole traffic ends here.

        It must flow on. Nothing to do where everything is counted by window.
        """

    def after_windows(self) -> None:
        """Called once, when all windows are through: what would spoil them is done here, such as killing the switch."""

    @abc.abstractmethod
    def stop(self) -> dict[str, str]:
        """End it and return what its programs printed, by file name."""

    def asks_endpoints(self) -> bool:
        """Whether a window needs what its endpoints themselves count. The answer takes time of theirs, as packets do. In modelled time,
        which is short, that would be much of a window; what came out of the switch's port is then what the receiver got. So it is where
        there are several, whose clocks differ."""
        return self.topology.host.clock != MODELLED and len(self.topology.routes) == 1

    def sample(self) -> Sample:
        return Sample(self.topology.sender.counters(), self.topology.receiver.counters())

    @classmethod
    @abc.abstractmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        """All numbers of this traffic, computed from what was recorded and from nothing else."""


def rates(window: Window) -> Iterable[Number]:
    """Packets per second at each hop, and what the receiver's interface got. Each hop is timed by its own clock."""
    if window.switch_seconds <= 0:
        raise ValueError(f"{window.name}: the testbed's clock stood still or went back: {window.switch_seconds} s")
    sent, received, received_bytes = _rates_of_ends(window)
    hops = {
        "sent": sent,
        "into_switch": port_rate(window.into_switch, "received_packets", window.switch_seconds),
        "out_of_switch": port_rate(window.out_of_switch, "sent_packets", window.switch_seconds),
        "received": received,
    }
    yield Number("window_seconds", window.switch_seconds, "seconds", window=window.name)
    for hop, rate in hops.items():
        note = "" if rate is not None else messages.end_not_asked() if hop == "sent" else messages.port_not_counted()
        yield Number(f"packet_rate_{hop}", rate, "packets/s", window=window.name, note=note)
    bits = None if received_bytes is None else received_bytes * 8
    yield Number("bit_rate_received", bits, "bit/s", window=window.name, note="" if bits is not None else messages.port_not_counted())


def _rates_of_ends(window: Window) -> tuple[float | None, float | None, float | None]:
    """Packets sent, packets and bytes received, per second: by the ends, or, where those were not asked, by the receiver's port."""
    if window.samples is None:
        received = (port_rate(window.out_of_switch, name, window.switch_seconds) for name in ("sent_packets", "sent_bytes"))
        return None, *received
    before, after = window.samples
    sender_s, receiver_s = after.sender.clock_s - before.sender.clock_s, after.receiver.clock_s - before.receiver.clock_s
    if min(sender_s, receiver_s) <= 0:
        raise ValueError(f"{window.name}: an endpoint's clock stood still or went back: {sender_s}, {receiver_s} s")
    packets, size = (getattr(after.receiver, name) - getattr(before.receiver, name) for name in ("received_packets", "received_bytes"))
    return (after.sender.sent_packets - before.sender.sent_packets) / sender_s, packets / receiver_s, size / receiver_s


def port_rate(counters: tuple[PortCounters | None, PortCounters | None], name: str, seconds: float) -> float | None:
    """What a port counted per second, before and after; None where the switch does not say."""
    before, after = counters
    return None if before is None or after is None else (getattr(after, name) - getattr(before, name)) / seconds
