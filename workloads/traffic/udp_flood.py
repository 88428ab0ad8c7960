# SPDX-License-Identifier: GPL-2.0-or-later
"""UDP frames of one size, at full speed or at a given rate: from the kernel's packet generator, from testpmd, or from frame-probe.

The rate is given, or it is the path's own no-drop or partial-drop rate, which is searched first (``workloads.search``): each trial of the
search is a short flood.

Every hop is counted over the whole flood, see ``workloads.traffic.counted``. Where windows follow that slow the host down, the flood that
is counted ends before them, and a second one is sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field, model_validator

from terms import errors, search_messages, units
from terms.schema import FCS_BYTES, Number
from workloads import search
from workloads.endpoints.base import Frames
from workloads.search import Found, Settings, Trial
from workloads.traffic import counted
from workloads.traffic.base import Options, Traffic, Window, rates
from workloads.traffic.counted import CountedFlood

SINK_ADDRESS = "10.77.0.250"
"""Nobody's: the frames reach the receiver by their MAC address, and its IP layer drops them without an answer."""
FIRST_PORT = 1024
FLOOD = "flood"
"""The window name of what is counted over the whole flood."""
LOADS = ("saturation", "equal", *search.LOSS_RATIOS)


class FloodOptions(Options):
    rate_pps: int | None = Field(None, ge=1)
    search: Settings | None = None

    @model_validator(mode="after")
    def _fits_load(self) -> FloodOptions:
        if self.load not in LOADS:
            raise ValueError(f"load {self.load!r}: use one of {', '.join(LOADS)}")
        if (self.load == "equal") != (self.rate_pps is not None):
            raise ValueError("load equal needs rate_pps, and no other load takes it")
        if self.search is not None and self.load not in search.LOSS_RATIOS:
            raise ValueError(f"only the loads {', '.join(search.LOSS_RATIOS)} are searched")
        return self


class UdpFlood(Traffic):
    options = FloodOptions
    needs_stack = False

    def unavailable(self) -> str | None:
        return super().unavailable() or self.topology.sender.can_not_flood(self.settings.load != "saturation", self.flows)

    def timed_by_windows(self) -> bool:
        # The trials of a search are floods by themselves.
        return self.settings.load not in search.LOSS_RATIOS

    def start(self) -> None:
        settings = self._options()
        self._found: Found | None = None
        self._counted: dict[str, str] | None = None
        self._flood: CountedFlood | None = None
        rate = settings.rate_pps
        if settings.load in search.LOSS_RATIOS:
            self._found = search.find(settings.load, settings.search or Settings(), self._try)
            rate = self._found.rate_pps
        if not self.nothing_flows():
            self._flood = CountedFlood(self.topology, self._frames(rate))

    def nothing_flows(self) -> str | None:
        return self._found.why if self._found and self._found.why else None

    def check(self) -> None:
        self._flowing().check()

    def hold(self) -> None:
        if self.settings.load != "saturation":
            self._flowing().flood.hold()

    def go_on(self) -> None:
        if self.settings.load != "saturation":
            self._flowing().flood.go_on()

    def before_own_windows(self) -> None:
        # A slower host loses what it would have carried: none of that belongs to the losses.
        flood = self._flowing()
        self._counted = flood.end()
        flood.flood.start()

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
            value, note = (count, "") if in_one_time else (None, errors.counted_in_two_times())
            yield Number(f"packets_{hop}", value, "packets", window=FLOOD, note=note)
        asked = counted.rate_asked(raw)
        yield Number("offered_rate", asked, "packets/s", window=FLOOD, note="" if asked else "saturation: no rate was asked for")
        for window in windows:
            yield from rates(window)

    def _try(self, rate_pps: int, seconds: float) -> Trial:
        """One trial of the search: a flood of its own. Raises ``RunFailed`` if nothing at all was sent: that says nothing of the path."""
        self.say(search_messages.trial(units.si(rate_pps, "packets/s")))
        trial = CountedFlood(self.topology, self._frames(rate_pps))
        time.sleep(seconds)
        trial.check()
        printed = trial.end()
        hops = counted.packets(printed)
        if hops["sent"] <= 0:
            raise errors.endpoint_failed(self.topology.sender.name, search_messages.nothing_sent(rate_pps), "")
        return Trial(rate_pps=rate_pps, due=trial.flood.due(printed), **hops)

    def _flowing(self) -> CountedFlood:
        assert self._flood is not None
        return self._flood

    def _options(self) -> FloodOptions:
        assert isinstance(self.settings, FloodOptions)
        return self.settings

    def _frames(self, rate_pps: int | None) -> Frames:
        sender, receiver = self.topology.sender, self.topology.receiver
        size = self.frame_bytes - FCS_BYTES
        return Frames(size, self.flows, rate_pps, sender.mac, receiver.mac, sender.address, SINK_ADDRESS, FIRST_PORT)


TRAFFIC = UdpFlood
