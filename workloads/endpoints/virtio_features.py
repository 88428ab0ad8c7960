# SPDX-License-Identifier: GPL-2.0-or-later
"""The features of a virtio network device that an experiment can switch, and what a guest's driver made of them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Switch = Literal["on", "off"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One bit of the features that device and driver agree on."""

    bit: int
    default: Switch
    """What QEMU offers where nothing is said."""


# Virtual I/O Device (VIRTIO) 1.2: section 5.1.3 for mrg_rxbuf, section 6 for all others. Defaults: QEMU, `-device virtio-net-pci,help`.
FEATURES: Mapping[str, Feature] = {
    "mrg_rxbuf": Feature(15, "on"),
    "indirect_desc": Feature(28, "on"),
    "event_idx": Feature(29, "on"),
    "packed": Feature(34, "off"),
    "in_order": Feature(35, "off"),
}
"""By QEMU's name, which is an option's name, too. ``mrg_rxbuf``: a frame may lie in several buffers. ``indirect_desc``: a descriptor may
name a table of others. ``event_idx``: each side says at which entry it wants to be told. ``packed``: one ring instead of three.
``in_order``: the switch gives buffers back in the order in which it got them."""
_NEGOTIATED = re.compile(r"features after negotiate = ([0-9a-f]+)")


def options(*names: str) -> dict[str, tuple[str, ...]]:
    """Options of an endpoint that switch these features: the values of each, its default first."""
    return {name: ("on", "off") if FEATURES[name].default == "on" else ("off", "on") for name in names}


def device(wanted: Mapping[str, str]) -> Iterator[str]:
    """The properties of QEMU's device that differ from its own defaults."""
    yield from (f"{name}={value}" for name, value in wanted.items() if value != FEATURES[name].default)


def of_kernel(printed: str) -> frozenset[str]:
    """The features that a kernel's driver agreed on: sysfs has a digit for each bit, the lowest first. Raises ``ValueError``."""
    bits = printed.strip()
    if not re.fullmatch("[01]{64,}", bits):
        raise ValueError(f"not the features of a virtio device: {bits[:80]!r}")
    return frozenset(name for name, feature in FEATURES.items() if bits[feature.bit] == "1")


def of_driver(log: str) -> frozenset[str]:
    """The same of DPDK's driver, which says a number at log level debug: the last one counts. Raises ``ValueError``."""
    said = _NEGOTIATED.findall(log)
    if not said:
        raise ValueError("DPDK's driver did not say which features it has")
    bits = int(said[-1], 16)
    return frozenset(name for name, feature in FEATURES.items() if bits >> feature.bit & 1)


def refused(wanted: Mapping[str, str], negotiated: frozenset[str]) -> list[str]:
    """Which features are not as they were asked for."""
    return [name for name, value in wanted.items() if (value == "on") != (name in negotiated)]
