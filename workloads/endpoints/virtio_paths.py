# SPDX-License-Identifier: GPL-2.0-or-later
"""The ways of DPDK's virtio driver through its rings, whoever offers these: a switch to virtio-user, or QEMU's device to a guest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Path:
    """The features that a way needs (``on``, ``off``), the driver's word for it, and whether the driver must be asked for vectors."""

    mrg_rxbuf: str
    in_order: str
    packed: str
    said: str
    vectorized: bool = False

    def features(self) -> dict[str, str]:
        """By QEMU's names."""
        return {name: getattr(self, name) for name in ("mrg_rxbuf", "in_order", "packed")}

    def vdev_arguments(self) -> str:
        """Arguments of a device net_virtio_user."""
        bits = {name: int(value == "on") for name, value in self.features().items()}
        more = [name for name, wanted in (("vectorized=1", self.vectorized), ("packed_vq=1", bits["packed"])) if wanted]
        return ",".join([f"mrg_rxbuf={bits['mrg_rxbuf']},in_order={bits['in_order']}", *more])


# https://doc.dpdk.org/guides-24.11/nics/virtio.html, "Virtio paths Selection and Usage". The driver takes the quickest way that the
# device's features allow; virtio-user's own default is in-order.
PATHS = {
    "mergeable": Path("on", "off", "off", "mergeable buffer"),
    "non-mergeable": Path("off", "off", "off", "standard"),
    "vector": Path("off", "off", "off", "vectorized", vectorized=True),
    "in-order": Path("on", "on", "off", "inorder"),
    "packed": Path("on", "off", "on", "packed ring mergeable buffer"),
}
"""By the value of the option ``path``."""
_SAID = re.compile(r"virtio: using (?P<path>.+) (?P<way>Rx|Tx) path on port (?P<port>\d+)")


def taken(log: str) -> Mapping[int, dict[str, str]]:
    """The driver's own words for the path of each port, ``rx`` and ``tx``: what it said last, for it says it again with each start."""
    found: dict[int, dict[str, str]] = {}
    for match in _SAID.finditer(log):
        found.setdefault(int(match["port"]), {})[match["way"].lower()] = match["path"]
    return found
