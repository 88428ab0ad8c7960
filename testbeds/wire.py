# SPDX-License-Identifier: GPL-2.0-or-later
"""A wire between two network cards of a host: by one a switch is reached, at the other is who loads it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsprof.testbeds import messages

if TYPE_CHECKING:
    from vsprof.testbeds.base import Testbed

# $@: PCI addresses. vfio-pci would need an IOMMU, which the emulated host has not. The kernel's own driver may just be coming in for a new
# card: it then has the card before it can be told to let go of it (Linux, drivers/base/bus.c: bus_add_driver).
GIVE_DPDK = """
modprobe uio_pci_generic || exit 1
for address; do
    cd /sys/bus/pci/devices/$address && echo uio_pci_generic > driver_override || exit 1
    for try in {1..100}; do
        [ "$(basename "$(readlink driver)")" = uio_pci_generic ] && continue 2
        [ -e driver ] && echo $address > driver/unbind
        [ -e driver ] || echo $address > /sys/bus/pci/drivers_probe
        sleep 0.05
    done 2>/dev/null
    echo "${PWD##*/} stays with the driver $(basename "$(readlink driver)")" >&2
    exit 1
done
"""
# $1: a PCI address. Prints the interface's name.
GIVE_KERNEL = """
cd /sys/bus/pci/devices/$1 || exit 1
[ -e driver ] || { modprobe igb; echo $1 > /sys/bus/pci/drivers_probe; }
for try in {1..100}; do ls net 2>/dev/null | grep . && exit; sleep 0.05; done
exit 1
"""


# sys.argv[1]: the PCI address of an Intel 82576. Its last queue gets a ring of free descriptors, of which none is read: no frame is for it.
DROP = """
import mmap, sys
with open(f"/sys/bus/pci/devices/{sys.argv[1]}/resource0", "r+b") as registers:
    words = memoryview(mmap.mmap(registers.fileno(), 0)).cast("I")
RDLEN, RDT, RXDCTL, ENABLE = 0xC3C8, 0xC3D8, 0xC3E8, 1 << 25
for register, value in ((RDLEN, 4096), (RXDCTL, ENABLE), (RDT, 255)):
    words[register // 4] = value
sys.exit(0 if words[RXDCTL // 4] & ENABLE else "it has no such queue")
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


def drop_when_full(host: Testbed, address: str) -> None:
    """Let a card that DPDK drives drop what its ring has no room for, as real ones do. QEMU's takes no frame while none of its queues has
    room, and up to 10,000 (net/queue.c) wait for it meanwhile: short trials would never lose one. To be called once the card is started,
    which resets it. Raises ``RunFailed``."""
    done = host.run(shlex.join(["python3", "-S", "-c", DROP, address]), check=False)
    if done.status != 0:
        raise messages.card_not_set(address, done.stderr)


def _run(host: Testbed, script: str, *addresses: str) -> str:
    done = host.run(shlex.join(["bash", "-c", script, "bash", *addresses]), check=False)
    if done.status != 0:
        raise messages.card_not_bound(addresses, done.stderr)
    return done.stdout
