# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP frames of one size, at full speed or at a given rate: from the kernel's packet generator, from testpmd, or from frame-probe.

The rate is given, or it is the path's own no-drop or partial-drop rate, which is searched first (``workloads.search``): each trial of the
search is a short flood. Where a run has both, with the same settings, the first one searches both at once.

Every hop is counted over the whole flood, see ``workloads.traffic.counted``. Where windows follow that slow the host down, the flood that
is counted ends before them, and a second one is sent.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from pydantic import Field, model_validator

from vsprof.terms import flows
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import Data, Headline
from vsprof.testbeds.base import MODELLED
from vsprof.workloads import messages, search
from vsprof.workloads.endpoints import frame_flood
from vsprof.workloads.endpoints.base import Frames
from vsprof.workloads.search import Found, Settings, Trials
from vsprof.workloads.topologies.base import Route
from vsprof.workloads.traffic import counted, trials
from vsprof.workloads.traffic.base import Options, Traffic, Window, rates
from vsprof.workloads.traffic.counted import CountedFlood

SINK_ADDRESS = "10.77.0.250"
"""Nobody's: the frames reach the receiver by their MAC address."""
SOURCE_ADDRESS = "239.255.77.1"
"""A multicast group's, which no sender may have: the receiver's IP layer drops the frames without an answer, before it looks for a route
(Linux, ``ip_route_input_slow``). With a sender's own address Linux made a route entry for the first frame of each batch, and freed it by
RCU. OVS-DPDK's rate then varied from 1.18 to 1.46 Mpps within one campaign, with the timing of RCU's grace periods."""
FLOOD = "flood"
"""The window name of what is counted over the whole flood."""
LOADS = ("saturation", "equal", *search.LOSS_RATIOS)


class FloodOptions(Options):
    rate_pps: int | None = Field(None, ge=1)
    search: Settings | None = None

    @model_validator(mode="after")
    def _fits_load(self) -> Self:
        if self.load not in LOADS:
            raise ValueError(messages.unknown_load(self.load, LOADS))
        if (self.load == "equal") != (self.rate_pps is not None):
            raise ValueError(messages.rate_of_equal_load())
        if self.search is not None and self.load not in search.LOSS_RATIOS:
            raise ValueError(messages.not_searched(self.load, search.LOSS_RATIOS))
        return self


class UdpFlood(Traffic):
    words, rank, kind, called = "UDP flood", 20, "flood", "the flood"
    data = Data("packet", "packet received", "packet_rate_received")
    headlines = (
        Headline("packet_rate_received", "received", ("saturation",), "more", "delivers", "packets of a UDP flood"),
        Headline("search_rate", "found by search", ("ndr", "pdr"), better="more"),
        Headline("loss_total", "lost", ("saturation", "equal"), better="less"),
        Headline("loss_total", "lost when sent for long", ("ndr", "pdr"), better="less"),
        Headline("context_switches_per_second", "context switches per second", ("saturation",), better="less"),
        Headline("context_switches_per_packet", "context switches per packet", ("saturation", "ndr"), better="less"),
        Headline("pmd_busy", "poll-mode thread busy", ("saturation",)),
    )
    options = FloodOptions
    factors = frozenset({"frame_bytes", "flows"})
    needs_stack = False
    takes_all_routes = True

    def unavailable(self) -> str | None:
        sender, load = self.topology.sender, self.settings.load
        if why := super().unavailable() or sender.can_not_flood(load != "saturation", self.flows):
            return why
        if load in search.LOSS_RATIOS and len(self.topology.routes) > 1:
            return messages.not_searched_on_routes(len(self.topology.routes))
        in_bursts = self.topology.host.clock == MODELLED and load in search.LOSS_RATIOS
        return sender.can_not_burst() if in_bursts else None

    def start(self) -> None:
        settings = self._options()
        self._found: Found | None = None
        self._counted: dict[str, str] | None = None
        self._flood: CountedFlood | None = None
        rate = settings.rate_pps
        if settings.load in search.LOSS_RATIOS:
            self._found = self._search(settings)
            rate = self._found.rate_pps
        if not self.nothing_flows():
            self._flood = CountedFlood(self.topology, lambda route: self._frames_of(route, rate))

    def nothing_flows(self) -> str | None:
        return self._found.why if self._found and self._found.why else None

    def check(self) -> None:
        self._flowing().check()

    def hold(self) -> None:
        if self.settings.load != "saturation":
            self._flowing().hold()

    def go_on(self) -> None:
        if self.settings.load != "saturation":
            self._flowing().go_on()

    def stands_still(self) -> bool:
        # At a given rate it would make up for the time.
        return self.settings.load == "saturation" and self.topology.stands_still()

    def before_own_windows(self) -> None:
        # A slower host loses what it would have carried: none of that belongs to the losses.
        flood = self._flowing()
        self._counted = flood.end()
        flood.start()

    def stop(self) -> dict[str, str]:
        searched = {search.FILE: self._found.model_dump_json()} if self._found else {}
        if self._flood is None:
            return searched
        last = self._flood.end()
        return {**searched, **(self._counted or last)}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        found = Found.model_validate_json(raw[search.FILE]) if search.FILE in raw else None
        if found:
            yield from search.numbers(found)
        if found and found.why:
            return
        packets = counted.packets(raw)
        in_one_time = counted.in_one_time(raw)
        for hop, count in packets.items():
            value, note = (count, "") if in_one_time else (None, messages.counted_in_two_times())
            yield Number(f"packets_{hop}", value, "packets", window=FLOOD, note=note)
        # One of each sender.
        if told := [text for name, text in raw.items() if name.startswith(frame_flood.FILE.partition(".")[0])]:
            yield Number("ends_behind", max(map(frame_flood.behind_in, told)), "fraction", window=FLOOD)
        asked = counted.rate_asked(raw)
        yield Number("offered_rate", asked, "packets/s", window=FLOOD, note="" if asked else "saturation: no rate was asked for")
        for window in windows:
            yield from rates(window)

    def _search(self, settings: FloodOptions) -> Found:
        """The rate of this load, with those of the run's other floods that are searched in the same way; or what an earlier one found."""
        wanted, known = _searched(settings), self.topology.known
        if settings.load not in known or known[settings.load].settings != wanted:
            loads = [one.load for one in self.beside if isinstance(one, FloodOptions) and _searched(one) == wanted] or [settings.load]
            with self._trials() as means:
                known.update(search.find(loads, wanted, means))
        return known[settings.load]

    def _trials(self) -> contextlib.AbstractContextManager[Trials]:
        if self.topology.host.clock != MODELLED:
            return contextlib.nullcontext(trials.real(self.topology, self._frames, self.say))
        assert self.clock is not None
        return trials.modelled(self.topology, self._frames, self.clock, self.say)

    def _flowing(self) -> CountedFlood:
        assert self._flood is not None
        return self._flood

    def _options(self) -> FloodOptions:
        assert isinstance(self.settings, FloodOptions)
        return self.settings

    def _frames(self, rate_pps: int | None) -> Frames:
        return self._frames_of(self.topology.routes[0], rate_pps)

    def _frames_of(self, route: Route, rate_pps: int | None) -> Frames:
        target = SINK_ADDRESS if self.flows == 1 else flows.address(0)
        return Frames(self.frame_bytes, self.flows, rate_pps, route.sender.mac, route.receiver.mac, SOURCE_ADDRESS, target)


def _searched(settings: FloodOptions) -> Settings | None:
    """How its rate is searched; None where it is not."""
    return (settings.search or Settings()) if settings.load in search.LOSS_RATIOS else None


TRAFFIC = UdpFlood
