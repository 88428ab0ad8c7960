# SPDX-License-Identifier: GPL-2.0-or-later
"""How deep a real host's CPUs may sleep: Linux takes no idle state whose exit takes longer than the latency that a process asks for, as
long as that process has /dev/cpu_dma_latency open (Documentation/power/pm_qos_interface.rst). vhost-switch can be that process."""

import re
from typing import TYPE_CHECKING

from vsprof.testbeds import messages

if TYPE_CHECKING:
    from vsprof.testbeds.base import Testbed

AWAKE = "C0"
STATES = "grep -s '' /sys/devices/system/cpu/cpu0/cpuidle/state*/name /sys/devices/system/cpu/cpu0/cpuidle/state*/latency"
"""Prints lines such as ``…/state1/name:C1`` and ``…/state1/latency:2``."""
_LINE = re.compile(r"/(state\d+)/(name|latency):(\S+)$", re.MULTILINE)


def read(printed: str) -> dict[str, int]:
    """Each state's exit latency [us] by its name, from what ``STATES`` printed. ``C6_ACPI`` and ``C6-HSW`` are C6."""
    said: dict[str, dict[str, str]] = {}
    for state, what, value in _LINE.findall(printed):
        said.setdefault(state, {})[what] = value
    both = (one for one in said.values() if one.keys() == {"name", "latency"} and one["latency"].isdigit())
    return {re.split(r"[-_]", one["name"])[0]: int(one["latency"]) for one in both}


def lacking(host: "Testbed", deepest: str) -> str | None:
    """Why ``deepest`` can't be had there, or None."""
    states = read(host.run(STATES, check=False).stdout)
    if not states:
        return messages.no_idle_states()
    return None if deepest == AWAKE or deepest in states else messages.no_such_idle_state(deepest, states)


def latency_us(host: "Testbed", deepest: str) -> int:
    """What a process must ask for so that no CPU of ``host`` takes a deeper state. Raises ``KeyError`` where it has none of that name."""
    return {AWAKE: 0, **read(host.run(STATES, check=False).stdout)}[deepest]
