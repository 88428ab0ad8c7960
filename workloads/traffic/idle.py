# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing is sent: what a switch costs by being there, and a poll-mode thread by looking for frames in vain.

The endpoints are up and reach each other. What their windows still count of frames is the endpoints' own (ARP, say).
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import field_validator

from vsprof.terms.schema import Number
from vsprof.workloads import messages
from vsprof.workloads.traffic.base import Options, Traffic, Window, rates


class IdleOptions(Options):
    load: str = "none"

    @field_validator("load")
    @classmethod
    def _is_none(cls, load: str) -> str:
        if load != "none":
            raise ValueError(messages.other_load(load, "idle", "none"))
        return load


class Idle(Traffic):
    words, rank, kind = "idle", 70, "nothing"
    options = IdleOptions
    takes_all_routes = True
    needs_stack = False

    def start(self) -> None:
        """Nothing flows."""

    def check(self) -> None:
        """Nothing can end early."""

    def stands_still(self) -> bool:
        return self.topology.stands_still()

    def stop(self) -> dict[str, str]:
        return {}

    @classmethod
    def numbers(cls, raw: Mapping[str, str], windows: Sequence[Window]) -> Iterable[Number]:
        for window in windows:
            yield from rates(window)


TRAFFIC = Idle
