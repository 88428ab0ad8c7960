# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtual machine whose interfaces are served by a DPDK program and not by its kernel, as a network function's are.

It has two CPUs: the program polls on one of its own; on the other, of which nothing is measured, is all else: the guest's kernel, its
agent, and the program's main thread. The interfaces are taken from the kernel's driver and given to uio_pci_generic, which needs no IOMMU,
unless the program wants their interrupts.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vsprof.testbeds import pages
from vsprof.workloads import messages
from vsprof.workloads.endpoints import probe, virtio_features, virtio_paths
from vsprof.workloads.endpoints.base import Endpoint, Job
from vsprof.workloads.endpoints.virtio_paths import PATHS
from vsprof.workloads.endpoints.vm import Vm

HUGEPAGES = 48
"""Of 2 MiB, in the guest."""
LOG, SOCKET = "/run/dpdk.log", "/run/probe.sock"
PROBE_MIB = 64
"""frame-probe's hugepages."""
ANSWER_S = 20
"""How long frame-probe's answer may take, by the guest's clock."""
LOOK_S, LOOKS = 0.05, 1200
"""How long the guest waits between two looks at what its program said, by its own clock, and how often it looks."""
LINE_BY_LINE = "_STDBUF_O=L LD_PRELOAD=/usr/libexec/coreutils/libstdbuf.so"
"""What stdbuf -oL does (coreutils), of which the guest has the library alone: else the program's words would stay in its buffer."""
# $driver: what gives devices to a program. $1 and on: the interfaces. Prints the address of each one's device. Hugepages are set aside only
# now: to unpack its initramfs Linux 7.3 needs more memory than they would leave, and panics.
TAKE = f"""
echo {HUGEPAGES} > /proc/sys/vm/nr_hugepages
[ $(cat /proc/sys/vm/nr_hugepages) = {HUGEPAGES} ] || {{ echo "no room for {HUGEPAGES} hugepages" >&2; exit 1; }}
mountpoint -q /dev/hugepages || mount -t hugetlbfs none /dev/hugepages
for interface; do
    device=$(basename $(readlink -f /sys/class/net/$interface/device/..)) && ip link set $interface down || exit 1
    echo $device > /sys/bus/pci/drivers/virtio-pci/unbind
    echo $driver > /sys/bus/pci/devices/$device/driver_override
    echo $device > /sys/bus/pci/drivers/$driver/bind && echo $device || exit 1
done
"""


class DpdkVm(Vm):
    """A guest with a DPDK program. Its kernel has no interface left."""

    has_stack = False
    vcpus = 2
    driver: ClassVar[str] = "uio_pci_generic"
    """The kernel's driver that gives devices to a program."""
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{name: values for name, values in Vm.options.items() if name in ("endpoint", "accel", "guest_cpu", pages.GUEST)},
        "path": tuple(PATHS),
        # Its driver knows no event_idx.
        **virtio_features.options("indirect_desc"),
    }

    def __init__(self, *place: Any, **how: Any) -> None:
        """As ``Vm``."""
        super().__init__(*place, **how)
        self._path = PATHS[self.chosen["path"]]
        self._devices: list[str] = []
        self._job: Job | None = None

    def features(self) -> dict[str, str]:
        return {**super().features(), **self._path.features()}

    def can_not_burst(self) -> str | None:
        return Endpoint.can_not_burst(self)

    def facts(self) -> dict[str, Any]:
        """The path besides, and what the driver said that it took."""
        return {**super().facts(), "path": self.chosen["path"], "rx": self._path.said}

    def log(self) -> str:
        """What the program said so far."""
        return self.run(f"cat {LOG}")

    def ended(self) -> str | None:
        """What the program said if it ended by itself; None while it runs."""
        return self.log() if self._job is None or self._job.finished() else None

    def devices(self) -> list[str]:
        """The PCI address of each interface's device, which its kernel's own driver has no longer."""
        if not self._devices:
            self._devices = self.run(f"driver={self.driver}; set -- {' '.join(name for name, _ in self.interfaces())}\n{TAKE}").split()
        return self._devices

    def launch(self, program: str, eal: Sequence[str], more: Sequence[str], standard_input: str = "/dev/null") -> None:
        """Let a program serve the interfaces. ``eal``, ``more``: options of EAL and of its own. ``await_program`` waits for it."""
        vectorized = "vectorized=1" if self._path.vectorized else ""
        devices = [word for one in self.devices() for word in ("-a", ",".join(filter(None, (one, vectorized))))]
        # Its driver names the path at level info, and the features at level debug.
        loud = "--log-level=pmd.net.virtio.init:debug"
        words = [program, "--in-memory", "--lcores", "0@0,1@1", loud, *devices, *eal, "--", *more]
        # Opened to be written as well: else a program would see the end of its input after the first command.
        self._job = self.spawn(f"{LINE_BY_LINE} exec {shlex.join(words)} <> {standard_input} > {LOG} 2>&1", may_fail=True)

    def launch_probe(self) -> None:
        """Let frame-probe serve the interfaces. It says ``probe.READY``, and waits to be told what to do by ``ask_probe``."""
        self.launch(probe.PROGRAM, ["-m", str(PROBE_MIB)], ("--control", SOCKET, "--seconds", str(probe.LONGEST_S)))

    def ask_probe(self, command: str) -> str:
        """frame-probe's answer, a line. Raises ``RunFailed`` where none comes."""
        return self.run(f"echo {shlex.quote(command)} | socat -t {ANSWER_S} - UNIX-CONNECT:{SOCKET}", seconds=2 * ANSWER_S)

    def await_program(self, ready: str) -> None:
        """Wait until the program has said ``ready``.

        Raises ``RunFailed`` where it does not get ready, where its driver takes another path, or lacks a feature that was asked for.
        """
        said = self.run(f"{until(ready)}; cat {LOG}", seconds=120)
        if ready not in said:
            raise messages.endpoint_failed(self.name, "its program did not get ready", said)
        self._check(said)

    def _check(self, log: str) -> None:
        taken = virtio_paths.taken(log)
        for port, _ in enumerate(self._devices):
            if (seen := taken.get(port, {}).get("rx", "")) != self._path.said:
                raise messages.path_not_taken(self.name, self.chosen["path"], seen)
        self._check_features(virtio_features.of_driver(log))

    def _kernel_arguments(self) -> str:
        # Nothing but the program's thread runs on the second CPU, and no tick where the kernel can leave it out.
        return f"{super()._kernel_arguments()} isolcpus=1 nohz_full=1 rcu_nocbs=1"


def until(text: str) -> str:
    """A shell command of the guest's that waits until its program has said ``text``, but not for ever."""
    return f"for i in $(seq {LOOKS}); do grep -q '{text}' {LOG} && break; sleep {LOOK_S}; done"
