# SPDX-License-Identifier: GPL-2.0-or-later
"""A wire between two network cards of a host: by one a switch is reached, at the other is who loads it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsprof.testbeds import messages

if TYPE_CHECKING:
    from vsprof.testbeds.base import Testbed

# $@: PCI addresses. vfio-pci would need an IOMMU, which the emulated host has not.
GIVE_DPDK = """
modprobe uio_pci_generic || exit 1
for address; do
    cd /sys/bus/pci/devices/$address || exit 1
    [ -e driver ] && echo $address > driver/unbind
    echo uio_pci_generic > driver_override && echo $address > /sys/bus/pci/drivers_probe
    [ "$(basename "$(readlink driver)")" = uio_pci_generic ] || exit 1
done
"""
# $1: a PCI address. Prints the interface's name.
GIVE_KERNEL = """
cd /sys/bus/pci/devices/$1 || exit 1
[ -e driver ] || { modprobe igb; echo $1 > /sys/bus/pci/drivers_probe; }
for try in {1..100}; do ls net 2>/dev/null | grep . && exit; sleep 0.05; done
exit 1
"""


@dataclass(frozen=True)
class Wire:
    """The PCI addresses of the cards at its ends."""

    switch: str
    load: str


def give_dpdk(host: Testbed, *addresses: str) -> None:
    """Bind the cards to a driver from which DPDK takes them. Raises ``RunFailed`` where that fails."""
    _run(host, GIVE_DPDK, *addresses)


def give_kernel(host: Testbed, address: str) -> str:
    """The kernel's interface of the card. Raises ``RunFailed`` where it gets none."""
    return _run(host, GIVE_KERNEL, address).strip()


def _run(host: Testbed, script: str, *addresses: str) -> str:
    done = host.run(shlex.join(["bash", "-c", script, "bash", *addresses]), check=False)
    if done.status != 0:
        raise messages.card_not_bound(addresses, done.stderr)
    return done.stdout
