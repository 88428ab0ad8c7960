# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cases of an experiment an opened testbed can run. The others are left out, with the reason; nothing is passed off as another.

An emulated host can run everything. Of this very host the kernel, its modules and its hugepages decide.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner import experiment as experiments
from runner.experiment import AUTO, SWITCHES, Case, Experiment
from terms import errors, native_messages
from testbeds.base import Testbed
from workloads.endpoints import vm


@dataclass
class Offer:
    """The cases that can be run, and a sentence for each that can't."""

    cases: list[Case] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def of(host: Testbed, experiment: Experiment) -> Offer:
    """What ``host`` offers of ``experiment``. Raises ``BadInput`` when that is nothing."""
    offer, asked = Offer(), _Asked(host)
    for values in experiments.combinations(experiment):
        switch = str(values["switch"])
        case, why = _first(values, asked)
        if case is None and switch in experiment.instead_of:
            other = experiment.instead_of[switch]
            case, why_not = _first({**values, "switch": other, "access": AUTO}, asked)
            why += f"; {native_messages.stands_in(other) if case else why_not}"
        if why:
            what = switch if values["access"] == AUTO else f"{switch} over {values['access']}"
            offer.left_out.append(native_messages.left_out(what, why))
        if case is not None and case not in offer.cases:
            offer.cases.append(case)
    offer.left_out = list(dict.fromkeys(offer.left_out))
    if not offer.cases:
        raise errors.nothing_offered(host.name, offer.left_out)
    return offer


def accesses(host: Testbed) -> dict[str, tuple[list[str], str]]:
    """Of each switch the accesses that ``host`` offers, and why not the others."""
    asked, found = _Asked(host), {}
    for switch, one in SWITCHES.items():
        reasons = {access: asked.why_not(switch, access) for access in one.accesses}
        lacking = dict.fromkeys(reason for reason in reasons.values() if reason)
        found[switch] = ([access for access, reason in reasons.items() if reason is None], "; ".join(lacking))
    return found


def _first(values: Mapping[str, Any], asked: _Asked) -> tuple[Case | None, str]:
    """The case with the first access that the host offers; or none, and why none of them."""
    switch = str(values["switch"])
    accesses = experiments.accesses(values) if values["access"] == AUTO else [values["access"]]
    reasons = [asked.why_not(switch, access) for access in accesses]
    for access, reason in zip(accesses, reasons, strict=True):
        if reason is None:
            return experiments.case({**values, "access": access}), ""
    return None, "; ".join(dict.fromkeys(reason for reason in reasons if reason))


class _Asked:
    """The host's answers, each asked for once: to boot a guest takes seconds."""

    def __init__(self, host: Testbed) -> None:
        self._host = host
        self._switches: dict[str, str | None] = {}

    def why_not(self, switch: str, access: str) -> str | None:
        if switch not in self._switches:
            self._switches[switch] = SWITCHES[switch](self._host, self._host.plan()).unavailable()
        if why := self._switches[switch]:
            return why
        guests = self._guests if access in vm.ACCESSES else None
        return native_messages.no_guests(guests) if guests else None

    @functools.cached_property
    def _guests(self) -> str | None:
        return self._host.guests_boot()
