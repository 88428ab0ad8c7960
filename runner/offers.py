# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cases of an experiment an opened testbed can run. The others are left out, with the reason; nothing is passed off as another.

An emulated host can run everything. Of this very host the kernel, its modules and its hugepages decide.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vsprof.runner import experiment as experiments
from vsprof.runner import messages
from vsprof.runner.experiment import AUTO, SWITCHES, TOPOLOGIES, Case, Experiment
from vsprof.switches import links
from vsprof.terms import errors
from vsprof.terms.placement import PAIR
from vsprof.terms.schema import CARD
from vsprof.testbeds.base import KERNELS, MODELLED, Testbed
from vsprof.workloads.endpoints import vm

KVM, KERNEL = "kvm", "kernel"


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
            why += f"; {messages.stands_in(other) if case else why_not}"
        if why:
            offer.left_out.append(messages.left_out(_named(values, asked), why))
        if case is not None and values.get("accel") == AUTO and case.options.get("accel", KVM) != KVM:
            offer.left_out.append(messages.guests_emulated(str(asked.guests)))
        if case is not None and case not in offer.cases:
            offer.cases.append(case)
    offer.left_out = list(dict.fromkeys(offer.left_out))
    if not offer.cases:
        raise messages.nothing_offered(host.name, offer.left_out)
    return offer


def common(offered: Mapping[str, Offer]) -> Offer:
    """The cases that all of several testbeds can run, by their names; the others are left out. Raises ``BadInput`` when there is none."""
    every = {case.case_id: case for one in offered.values() for case in one.cases}
    lacking = {case: [name for name, one in offered.items() if every[case] not in one.cases] for case in every}
    reasons = [f"{name}: {why}" for name, one in offered.items() for why in one.left_out]
    reasons += [messages.not_everywhere(case, names) for case, names in lacking.items() if names]
    if not (found := [case for name, case in every.items() if not lacking[name]]):
        raise messages.nothing_in_common(reasons)
    return Offer(found, reasons)


def _named(values: Mapping[str, Any], asked: "_Asked") -> str:
    """What is left out: the switch, by its access where one was asked for; by its options where it could run without them."""
    switch = str(values["switch"])
    options = [f"{name}={value}" for name, value in _options(switch, values).items()]
    named = switch if values["access"] == AUTO else f"{switch} over {values['access']}"
    if asked.kernel_lacks(values):
        return f"{named} kernel={values[KERNEL]}"
    if asked.boot_lacks(values):
        known = TOPOLOGIES[str(values["topology"])].options_of(str(values["access"]), values)
        return " ".join([named, *(f"{name}={values[name]}" for name in known if values.get(name, AUTO) not in (AUTO, known[name][0]))])
    return " ".join([named, *options]) if asked.switch_lacks(switch, {}) is None and asked.switch_lacks(switch, values) else named


def accesses(host: Testbed) -> dict[str, tuple[list[str], str]]:
    """Of each switch the accesses that ``host`` offers, and why not the others."""
    asked, found = _Asked(host), {}
    for switch, one in SWITCHES.items():
        reasons = {access: asked.why_not({"switch": switch, "access": access}) for access in one.accesses}
        lacking = dict.fromkeys(reason for reason in reasons.values() if reason)
        found[switch] = ([access for access, reason in reasons.items() if reason is None], "; ".join(lacking))
    return found


def _first(values: Mapping[str, Any], asked: "_Asked") -> tuple[Case | None, str]:
    """The case with the first access that the host offers, and the first accelerator of guests; or none, and why none of them."""
    accesses = experiments.accesses(values) if values["access"] == AUTO else [values["access"]]
    accels = list(vm.CPUS) if values.get("accel") == AUTO else [values.get("accel", KVM)]
    reasons = {(access, accel): asked.why_not({**values, "access": access, "accel": accel}) for access in accesses for accel in accels}
    for (access, accel), reason in reasons.items():
        if reason is None:
            return experiments.case({**values, "access": access, **({"accel": accel} if "accel" in values else {})}), ""
    return None, "; ".join(dict.fromkeys(reason for reason in reasons.values() if reason))


def _room_lacks(host: Testbed, values: Mapping[str, Any], endpoints: int) -> str | None:
    dpdk = SWITCHES[str(values["switch"])].takes_devices
    return host.room_lacking(endpoints, dpdk=dpdk) if endpoints > PAIR.endpoints else None


def _lost(values: Mapping[str, Any]) -> list[str]:
    """What the combination asks of its topology that endpoints reached in this way do not have: without it, it would be another."""
    topology = TOPOLOGIES[str(values["topology"])]
    known = topology.options_of(str(values["access"]), values)
    asked = {name: str(values[name]) for name in topology.options if values.get(name, AUTO) != AUTO}
    return [f"{name}={value}" for name, value in asked.items() if name not in known and value != topology.options[name][0]]


def _options(switch: str, values: Mapping[str, Any]) -> dict[str, str]:
    """The options of the switch, and those of its endpoints that it reads, which are not left at their defaults."""
    names = [*SWITCHES[switch].options, *SWITCHES[switch].reads]
    return {name: str(values[name]) for name in names if values.get(name, AUTO) != AUTO}


_ON_WIRES = frozenset(name for name, one in TOPOLOGIES.items() if one.needs_cards)


class _Asked:
    """The host's answers, each asked for once: to boot a guest takes seconds."""

    def __init__(self, host: Testbed) -> None:
        self._host = host
        self._switches: dict[tuple[str, frozenset[tuple[str, str]]], str | None] = {}
        self._kernels: dict[str, str | None] = {}
        self._boots: dict[tuple[str, ...], str | None] = {}

    def why_not(self, values: Mapping[str, Any]) -> str | None:
        """Why a switch can't run with these options and this access here, or None."""
        access = values["access"]
        if (chosen := experiments.of_processor(values)) and self._host.clock != MODELLED:
            return messages.processor_is_real(next(iter(chosen)))
        if (values.get("topology") in _ON_WIRES or access == CARD) and (why := self._host.wire_lacking()):
            return why
        if why := self._host_lacks(values) or self.switch_lacks(str(values["switch"]), values):
            return why
        if access not in vm.ACCESSES:
            return None
        if access == "vhost-net" and self._vhost_net:
            return self._vhost_net
        guests = self.guests if values.get("accel", KVM) == KVM else None
        return messages.no_guests(guests) if guests else None

    def _host_lacks(self, values: Mapping[str, Any]) -> str | None:
        return self.cpus_lack(values) or self.kernel_lacks(values) or self.boot_lacks(values)

    def cpus_lack(self, values: Mapping[str, Any]) -> str | None:
        if "topology" not in values:
            return None
        if lost := _lost(values):
            return messages.not_with_these_endpoints(lost, str(values["access"]), str(values.get("endpoint", AUTO)))
        duties = experiments.duties(values)
        try:
            self._host.plan(duties)
        except errors.BadInput as error:
            return str(error)
        return _room_lacks(self._host, values, duties.endpoints)

    def kernel_lacks(self, values: Mapping[str, Any]) -> str | None:
        if KERNEL not in values:
            return None
        kernel = KERNELS[0] if values[KERNEL] == AUTO else str(values[KERNEL])
        if kernel not in self._kernels:
            self._kernels[kernel] = self._host.kernel_lacking(kernel)
        return self._kernels[kernel]

    def boot_lacks(self, values: Mapping[str, Any]) -> str | None:
        topology = TOPOLOGIES.get(str(values.get("topology")))
        wanted = topology.boots({name: str(value) for name, value in values.items() if value != AUTO}) if topology else {}
        if (key := tuple(wanted)) not in self._boots:
            self._boots[key] = self._host.boot_lacking(**wanted) if wanted else None
        return self._boots[key]

    def switch_lacks(self, switch: str, values: Mapping[str, Any]) -> str | None:
        options = _options(switch, values)
        key = (switch, frozenset(options.items()))
        if key not in self._switches:
            self._switches[key] = SWITCHES[switch](self._host, self._host.plan(), options).unavailable()
        return self._switches[key]

    @functools.cached_property
    def guests(self) -> str | None:
        return self._host.guests_boot()

    @functools.cached_property
    def _vhost_net(self) -> str | None:
        return links.vhost_net_lacking(self._host)
