# SPDX-License-Identifier: GPL-2.0-or-later
"""A wire between two network cards of a host: by one a switch is reached, at the other is who loads it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vsprof.testbeds import messages

if TYPE_CHECKING:
    from vsprof.testbeds.base import Testbed

# $1: the parameter of vfio_iommu_type1, or nothing; then PCI addresses. vfio-pci, without which DPDK gets no interrupts of a card, takes
# those behind an IOMMU alone. The lab's remaps no interrupts, hence the parameter. The kernel's own driver may just be coming in for a new
# card: it then has the card before it can be told to let go of it (Linux, drivers/base/bus.c: bus_add_driver).
GIVE_DPDK = """
parameter=$1
shift
for address; do
    cd /sys/bus/pci/devices/$address || exit 1
    wanted=uio_pci_generic
    [ -e iommu_group ] && wanted=vfio-pci && { modprobe vfio_iommu_type1 $parameter || exit 1; }
    modprobe $wanted && echo $wanted > driver_override || exit 1
    for try in {1..100}; do
        [ "$(basename "$(readlink driver)")" = $wanted ] && continue 2
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
[ -e driver ] || { modprobe "$(cat modalias)"; echo $1 > /sys/bus/pci/drivers_probe; }
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


# $1: a PCI address; then CPUs. A queue's interrupt has the next number after that of the queue before it.
STEER = """
cd /sys/bus/pci/devices/$1/msi_irqs || exit 1
cpus=("${@:2}") next=0
for irq in $(ls -v); do echo ${cpus[next++ % ${#cpus[@]}]} > /proc/irq/$irq/smp_affinity_list || exit 1; done
"""
# sys.argv[1]: the PCI address of an Intel 82576 as QEMU emulates it, [2]: microseconds. IVAR0 names the vector of the first receive queue.
# A vector's EITR has the interval: QEMU 10.0 takes bits 1 to 14 as they are, in units of 1.024 us, where a real one takes bits 2 to 14 in
# microseconds (a test in the lab counts interrupts).
THROTTLE = """
import mmap, sys
with open(f"/sys/bus/pci/devices/{sys.argv[1]}/resource0", "r+b") as registers:
    words = memoryview(mmap.mmap(registers.fileno(), 0)).cast("I")
IVAR0, EITR0, VALID, VECTOR, MASK = 0x1700, 0x1680, 0x80, 0x1f, 0x7ffe
vector, interval = words[IVAR0 // 4], round(int(sys.argv[2]) / 1.024) & ~1
if not vector & VALID:
    sys.exit("its receive queue has no vector")
at = EITR0 // 4 + (vector & VECTOR)
words[at] = interval
sys.exit(0 if words[at] & MASK == interval else f"it has no interval of {sys.argv[2]} us between interrupts")
"""


@dataclass(frozen=True)
class Wire:
    """The PCI addresses of the cards at its ends."""

    switch: str
    load: str


def give_dpdk(host: Testbed, *addresses: str) -> None:
    """Bind the cards to a driver from which DPDK takes them. Raises ``RunFailed`` where that fails."""
    parameter = "allow_unsafe_interrupts=1" if host.cards_emulated else ""
    done = host.run(shlex.join(["bash", "-c", GIVE_DPDK, "bash", parameter, *addresses]), check=False)
    if done.status != 0:
        raise messages.card_not_bound(addresses, done.stderr)


def give_kernel(host: Testbed, address: str) -> str:
    """The kernel's interface of the card, which the run has. Raises ``RunFailed`` where it gets none."""
    done = host.run(shlex.join(["bash", "-c", GIVE_KERNEL, "bash", address]), check=False)
    if done.status != 0:
        raise messages.card_not_bound([address], done.stderr)
    interface = done.stdout.strip()
    host.adopt_interface(interface)
    return interface


def drop_when_full(host: Testbed, address: str) -> None:
    """Let a card that DPDK drives drop what its ring has no room for, as real ones do. QEMU's takes no frame while none of its queues has
    room, and up to 10,000 (net/queue.c) wait for it meanwhile: short trials would never lose one. To be called once the card is started,
    which resets it. A real one is left alone. Raises ``RunFailed``."""
    if not host.cards_emulated:
        return
    done = host.run(shlex.join(["python3", "-S", "-c", DROP, address]), check=False)
    if done.status != 0:
        raise messages.card_not_set(address, done.stderr)


def steer_interrupts(host: Testbed, address: str, *cpus: int) -> None:
    """Let ``cpus`` take the interrupts of a card that its driver has started, in turn. Raises ``RunFailed``."""
    _set_interrupts(host, address, ["bash", "-c", STEER, "bash", address, *map(str, cpus)])


def throttle_interrupts(host: Testbed, address: str, microseconds: int) -> None:
    """Let a card of the lab that DPDK has started interrupt at most once in so many microseconds for frames received; 0: whenever it has
    something. A real one keeps its driver's interval, and gets no other. Raises ``RunFailed``."""
    if host.cards_emulated:
        _set_interrupts(host, address, ["python3", "-S", "-c", THROTTLE, address, str(microseconds)])
    elif microseconds:
        raise messages.interval_not_set(address, microseconds)


def _set_interrupts(host: Testbed, address: str, command: list[str]) -> None:
    done = host.run(shlex.join(command), check=False)
    if done.status != 0:
        raise messages.no_card_interrupts(address, done.stderr)
