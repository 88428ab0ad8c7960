# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch in a virtual machine: it sends each frame back, and may sleep until one comes.

testpmd always polls. Here the machine's processor sleeps, too, and a frame takes the way through its host: the switch's notification, KVM's
interrupt into the machine, the machine's own handler, and an eventfd to the program.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from vsprof.workloads.endpoints.vm_dpdk import DpdkVm

PROGRAM, READY = "/usr/local/bin/vhost-switch", "vhost-switch: ready"
MEMORY_MIB = 64
CPUS = {"worker": 1, "other": 0}
"""The machine's CPUs, by the option ``guest_irq_cpu``."""
# The machine's IOMMU remaps no interrupts, hence the parameter.
LOAD_VFIO = """
[ -e /modules/vfio ] || { echo "its image has no vfio modules, it is an earlier vsprof's: call make host again" >&2; exit 1; }
while read -r one; do
    case $one in vfio_iommu_type1.ko) parameter=allow_unsafe_interrupts=1 ;; *) parameter= ;; esac
    insmod /modules/$one $parameter || exit 1
done < /modules/vfio
"""
# $1: a CPU. Fails where the program got no interrupt.
STEER = """
irqs=$(grep vfio-msix /proc/interrupts | cut -d: -f1) && [ -n "$irqs" ] || { echo "no interrupt is the program's" >&2; exit 1; }
for irq in $irqs; do echo $1 > /proc/irq/$irq/smp_affinity_list || exit 1; done
"""


class SwitchVm(DpdkVm):
    """A machine with an IOMMU: vfio-pci, without which DPDK gets no interrupts of a virtio device, takes devices behind one alone."""

    driver = "vfio-pci"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **DpdkVm.options,
        "guest_rx": ("interrupt", "adaptive", "poll"),
        "guest_irq_cpu": tuple(CPUS),
    }
    """``guest_rx``: whether its program sleeps at once where there is nothing, after 300 us of nothing, or never. ``guest_irq_cpu``: which
    of the machine's CPUs handles the interrupt: the program's, or the other one, from which the program is then woken."""

    def forward(self, on: bool) -> str:
        """It does so from its start to its end."""
        return ""

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), **{name: self.chosen[name] for name in ("guest_rx", "guest_irq_cpu")}}

    def begin(self) -> None:
        self.run(LOAD_VFIO)
        # As its device does not address memory through the IOMMU, its driver must do so by physical addresses.
        eal = ["-m", str(MEMORY_MIB), "--iova-mode=pa"]
        ports = [f"--port=p{number},dev={device}" for number, device in enumerate(self.devices())]
        self.launch(PROGRAM, eal, ["--forward=loop", f"--rx={self.chosen['guest_rx']}", "--stages=off", *ports])

    def finish(self) -> None:
        self.await_program(READY)
        if self.chosen["guest_rx"] != "poll":
            self.steer_interrupts(self.chosen["guest_irq_cpu"])

    def steer_interrupts(self, cpu: str) -> None:
        """Let this one of ``CPUS`` handle the interrupts of its interface. Raises ``RunFailed``."""
        self.run(f"set -- {CPUS[cpu]}\n{STEER}")

    def _kernel_arguments(self) -> str:
        return f"{super()._kernel_arguments()} intel_iommu=on iommu=pt"

    def _slots(self) -> list[str]:
        # Before the devices behind it.
        return ["-device", "intel-iommu,intremap=off", *super()._slots()]
