# SPDX-License-Identifier: GPL-2.0-or-later
"""One QEMU process that is the lab host, and its instance folder. It emulates (TCG), or runs under KVM where that is asked for.

A machine never writes to the image or a snapshot: its disk is a throw-away overlay in the instance folder, so any number
can run at once and a machine that is killed spoils nothing. QEMU dies with the process that started it.
"""

import contextlib
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.terms import errors, locks
from vsprof.testbeds import messages, processes
from vsprof.testbeds.emulator import threads
from vsprof.testbeds.emulator.image import Image
from vsprof.testbeds.emulator.kernels import Kernel
from vsprof.testbeds.emulator.likeness import ITSELF, Likeness
from vsprof.testbeds.emulator.needs import LAB_MEMORY_BYTES
from vsprof.testbeds.patience import Patience
from vsprof.testbeds.qmp import Monitor

CONTROL_MAC = "52:54:00:76:73:01"
"""The control channel's interface; the role ``lab`` knows it by this address."""
ACCELERATORS = {
    # Without fast short REP MOVSB and its like: the default profile's processor has none, and kernels copy otherwise where there is none.
    "tcg": ["-accel", "tcg,thread=multi,tb-size=1024", "-cpu", "max,-fsrm,-fzrm,-fsrs,-fsrc"],
    # pmu: the virtual machine gets hardware counters, where this machine has a PMU.
    "kvm": ["-accel", "kvm", "-cpu", "host,pmu=on"],
}
"""QEMU's options by the value of ACCEL."""
HUGEPAGES = 1024
"""Hugepages of 2 MiB that the lab host sets aside at boot: 1 GiB for OVS-DPDK, 256 MiB for each of two guests, and room."""
GUEST_HUGEPAGES = 128
"""The same for each further guest."""
GUESTS = {6: 4, 8: 6, 16: 8}
"""How many guests there is room for, by CPUs of a lab of one node with more than four: as many as have a CPU each beside the switch and the
host. Two in any other."""

SLOTS = ("slot0", "slot1", "slot2", "slot3")
"""Empty PCIe slots, by name, each for a disk or a network card that a running machine gets later: a snapshot must have had them from the
start."""

ANSWER_SECONDS = 60
"""Of QEMU's monitor."""
BEHIND = 10
"""Niceness for which the kernel gives a thread a tenth. With much less it would answer the other CPUs' interrupts too late."""
YOUNG_SECONDS = 60
"""An instance's folder without a lock is left for so long to who has just made it."""

PLUGIN_REFUSED = ("Could not load plugin", ": -plugin")
"""What QEMU says of a plug-in that it can't load, and, built without plug-ins, of the option itself."""


@dataclass(frozen=True)
class Shape:
    """What a snapshot depends on, beside the image."""

    cpus: int = 4
    nodes: int = 1
    """NUMA nodes: one, or two with half of the processors and of the memory each."""
    accel: str = "tcg"
    """A key of ``ACCELERATORS``."""
    like: Likeness = ITSELF
    """Not under KVM, where the processor is this machine's."""
    kernel: Kernel | None = None
    """What it boots; None: the image's own."""
    iommu: bool = False
    """Whether it has one, without which vfio-pci takes no card. Devices that the kernel drives go past it."""
    threaded_irqs: bool = False
    """Whether its kernel handles interrupts in threads."""

    @property
    def hugepages(self) -> int:
        return HUGEPAGES + GUEST_HUGEPAGES * ((GUESTS.get(self.cpus, 2) if self.nodes == 1 else 2) - 2)

    @property
    def memory_bytes(self) -> int:
        return LAB_MEMORY_BYTES + self.more_bytes

    @property
    def more_bytes(self) -> int:
        """Beyond ``LAB_MEMORY_BYTES``: the hugepages of further guests, and half as much for their QEMUs and the host."""
        return (self.hugepages - HUGEPAGES << 21) * 3 // 2

    @property
    def name(self) -> str:
        nodes = f"-{self.nodes}nodes" if self.nodes > 1 else ""
        accel = f"-{self.accel}" if self.accel != "tcg" else ""
        more = f"{'-iommu' if self.iommu else ''}{'-threadirqs' if self.threaded_irqs else ''}"
        return f"{self.cpus}cpus-{self.memory_bytes >> 20}MiB{nodes}{accel}{self.like.name}{self.kernel.name if self.kernel else ''}{more}"

    def accelerator(self) -> list[str]:
        """QEMU's options for what runs the machine's instructions, and for its processor."""
        *options, processor = ACCELERATORS[self.accel]
        return [*options, processor + (self.like.processor if self.accel == "tcg" else "")]

    def kernel_arguments(self) -> str:
        """CPU 0 is the housekeeping CPU; all others are left to the roles pinned there."""
        pinned = f"1-{self.cpus - 1}" if self.cpus > 2 else "1"
        return " ".join((
            "root=/dev/vda rw console=ttyS0 quiet audit=0 net.ifnames=0",
            # A real processor's mitigations belong to what is measured.
            *([self.like.kernel] if self.accel == "tcg" else []),
            # iomem: registers of a card that vfio-pci has can be set from outside nevertheless (see testbeds/wire.py).
            *(["intel_iommu=on iommu=pt iomem=relaxed"] if self.iommu else []),
            *(["threadirqs"] if self.threaded_irqs else []),
            # Symbols stay put.
            "nokaslr",
            f"isolcpus=managed_irq,domain,{pinned} irqaffinity=0",
            *([] if self.like.ticks else [f"nohz_full={pinned} rcu_nocbs={pinned}"]),
            f"hugepagesz=2M hugepages={self.hugepages} transparent_hugepage=never",
            # The emulated clock follows this machine's, whose pauses would make the kernel distrust the TSC.
            "tsc=reliable no_timer_check nowatchdog",
            # Or each session had an equal share of a CPU, whatever its priority: the probes of a window could not give way.
            *([] if self.like.sessions else ["noautogroup"]),
        ))  # fmt: skip


class Instance:
    """A folder for sockets, the overlay disk and logs, locked by the process that uses it.

    It lies in the temporary folder because the path of a Unix socket is limited to 107 bytes.
    """

    PREFIX = f"vsprof-{os.getuid()}-"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=self.PREFIX))
        self._lock = locks.take(self.folder / "lock", f"{self.folder}")

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    @classmethod
    def remove_stale(cls) -> list[Path]:
        """Remove the folders whose process was killed before it could; return them."""
        removed = []
        for folder in Path(tempfile.gettempdir()).glob(f"{cls.PREFIX}*"):
            # Anybody may make a folder or a FIFO of such a name there. Ours are locked right after they are made.
            with contextlib.suppress(OSError, errors.BadInput):
                found = folder.lstat()
                young = time.time() - found.st_mtime < YOUNG_SECONDS and not (folder / "lock").exists()
                if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or young:
                    continue
                with locks.take(folder / "lock", f"{folder}"):
                    shutil.rmtree(folder, ignore_errors=True)
                    removed.append(folder)
        return removed


def _may_raise() -> bool:
    """Whether this process may give a thread back the priority that it had (setpriority(2))."""
    return os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[0] >= 20


class Machine:
    """The emulator's process and its QMP monitor."""

    def __init__(self, image: Image, shape: Shape, folder: Path, plugins: Sequence[Path] = ()) -> None:
        self.image, self.shape, self.folder, self.plugins = image, shape, folder, plugins
        self.serial = folder / "serial.log"
        self.port = 0
        self._free_slots = list(SLOTS)
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor = Monitor(folder / "qmp", patience=lambda seconds: Patience(seconds, self.held_up))

    def start(self, disk: Path, *, boot: bool) -> None:
        """Start QEMU on the overlay ``disk``: from the kernel on, or (``boot=False``) waiting for a snapshot's state.

        Plug-ins are loaded for a snapshot's state alone: what is booted becomes a snapshot, which must suit any of them.
        The port of the control channel is picked again when another program takes it first. Raises ``VsprofError`` with
        QEMU's own words when it does not start: ``PluginNotLoaded`` when that is a plug-in's fault.
        """
        more = self._kernel() if boot else ["-incoming", "defer", *self._plugin_options()]
        # What gives QEMU another clock also gives its main loop other sleeps: see qemu_clock.h.
        preload = [] if boot else self._preloaded()
        for _ in range(5):
            self.port = _free_port()
            self._spawn([*self._arguments(disk), *more], preload)
            if self._connect():
                return
            if "hostfwd" not in self.output():
                break
        raise self._not_started(self.output(), with_plugins="-plugin" in more)

    def plugin_socket(self, plugin: Path) -> Path:
        """The Unix socket on which ``plugin`` is told to listen."""
        return self.folder / f"{plugin.stem}.ctl"

    def create_overlay(self, disk: Path, overlay: Path) -> Path:
        """Make ``overlay``, which takes all writes in the place of ``disk``."""
        backing = "raw" if disk.suffix == ".raw" else "qcow2"
        command = [*self.image.program("qemu-img"), "create", "-q", "-f", "qcow2", "-b", str(disk), "-F", backing, str(overlay)]
        made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if made.returncode != 0:
            raise messages.build_step_failed(command, made.returncode, made.stderr)
        return overlay

    def qmp(self, command: str, **arguments: Any) -> Any:
        """Execute a command of QEMU's monitor. Raises ``VsprofError`` when it fails or the emulator is gone."""
        try:
            return self._monitor.execute(command, seconds=ANSWER_SECONDS, **arguments)
        except errors.RunFailed as error:
            raise messages.emulator_failed(f"{error}\n{self.output()}") from error

    def attach(self, disk: Path, name: str) -> None:
        """Give the running machine the raw image ``disk``, which it only reads, as a further disk with the serial number ``name``.

        Raises ``VsprofError`` when it has as many as it has slots.
        """
        slot = self._slot(name)
        self.qmp("blockdev-add", **{
            "driver": "raw", "node-name": name, "read-only": True,
            "file": {"driver": "file", "filename": str(disk), "read-only": True},
        })  # fmt: skip
        # One queue: by default each CPU would get one, with an interrupt of its own.
        self.qmp("device_add", driver="virtio-blk-pci", bus=slot, drive=name, serial=name, **{"num-queues": 1})

    def add_card(self, name: str, mac: str, wire: int = 1) -> None:
        """Give the running machine a network card, on a wire with all others that it was given on that one.

        Raises ``VsprofError`` when it has as many cards and disks as it has slots.
        """
        slot = self._slot(name)
        self.qmp("netdev_add", type="hubport", id=name, hubid=wire)
        self.qmp("device_add", driver="igb", bus=slot, netdev=name, mac=mac)

    def _slot(self, name: str) -> str:
        if not self._free_slots:
            raise messages.no_slot_left(name, len(SLOTS))
        return self._free_slots.pop(0)

    def wait_until(self, done: Callable[[], bool], seconds: float, waiting_for: str) -> None:
        """Poll ``done`` until it holds. Raises ``VsprofError`` when QEMU ends or the time is over."""
        patience = Patience(seconds, self.held_up)
        while not done():
            self.check_alive()
            if patience.over():
                raise messages.emulator_stuck(waiting_for, seconds, self.console())
            time.sleep(0.02)

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def check_alive(self) -> None:
        """Raise ``VsprofError`` with QEMU's last words if it ended."""
        if not self.alive():
            raise messages.emulator_failed(self.output())

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def held_up(self) -> dict[int, float]:
        """How long each of QEMU's threads has waited for a CPU of this machine so far [s]; empty where the kernel does not say."""
        return threads.waited(self.pid)

    @contextlib.contextmanager
    def behind_others(self, cpus: Sequence[int]) -> Iterator[None]:
        """While it lasts, these emulated CPUs get a tenth of what others get of this machine's. Where it could not be taken back, for it
        takes rights, nothing changes."""
        if not _may_raise():
            yield
            return
        of_cpu = {cpu["cpu-index"]: cpu["thread-id"] for cpu in self.qmp("query-cpus-fast")}
        before = {thread: os.getpriority(os.PRIO_PROCESS, thread) for cpu, thread in of_cpu.items() if cpu in cpus}
        try:
            for thread, nice in before.items():
                os.setpriority(os.PRIO_PROCESS, thread, nice + BEHIND)
            yield
        finally:
            # Where QEMU has ended, its threads have, too.
            with contextlib.suppress(ProcessLookupError):
                for thread, nice in before.items():
                    os.setpriority(os.PRIO_PROCESS, thread, nice)

    def doing(self) -> str:
        """What each emulated CPU and QEMU's main loop do at this moment: where to look when the lab does not answer."""
        return threads.doing(self.pid, self._monitor)

    def output(self) -> str:
        """What QEMU itself printed."""
        return (self.folder / "qemu.log").read_text(errors="replace").strip()

    def console(self, lines: int = 10) -> str:
        """The last lines of the emulated serial console."""
        text = self.serial.read_text(errors="replace") if self.serial.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """End QEMU, and wait for its end. Nothing of the machine is worth a clean shutdown."""
        self._monitor.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _arguments(self, overlay: Path) -> list[str]:
        share = self.image.tree / "usr/share"
        return [
            "-L", str(share / "qemu"), "-L", str(share / "seabios"),
            # A lab whose kernel fails must end: what came up in its place would answer nothing, and be waited for.
            "-no-reboot",
            "-nodefaults", "-no-user-config", "-display", "none", "-sandbox", "on,spawn=deny",
            "-machine", "q35", *self.shape.accelerator(),
            # Before all devices. It remaps no interrupts: else the kernel would take up the x2APIC, which no other lab has.
            *(["-device", "intel-iommu,intremap=off"] if self.shape.iommu else []),
            "-smp", str(self.shape.cpus), "-m", f"{self.shape.memory_bytes >> 20}M", *self._nodes(),
            "-drive", f"file={overlay},if=virtio,format=qcow2,cache=unsafe",
            # restrict: the lab reaches nothing outside; only this machine's loopback reaches its SSH.
            "-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22",
            "-device", f"virtio-net-pci,netdev=control,mac={CONTROL_MAC}",
            "-device", "virtio-rng-pci",
            *self._slots(),
            "-serial", f"file:{self.serial}",
            "-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off",
        ]  # fmt: skip

    def _slots(self) -> list[str]:
        ports = [f"pcie-root-port,id={slot},chassis={number},slot={number}" for number, slot in enumerate(SLOTS, start=1)]
        return [word for port in ports for word in ("-device", port)]

    def _nodes(self) -> list[str]:
        """Memory of a file each, though never written to it: the plug-in of the model tells the nodes' memory by the files' names."""
        if self.shape.nodes == 1:
            return []
        memory, cpus = (self.shape.memory_bytes >> 20) // self.shape.nodes, self.shape.cpus // self.shape.nodes
        options = []
        for node in range(self.shape.nodes):
            file = f"{self.folder / f'node{node}.ram'}".replace(",", ",,")
            options += ["-object", f"memory-backend-file,id=ram{node},size={memory}M,share=off,mem-path={file}"]
            options += ["-numa", f"node,nodeid={node},cpus={node * cpus}-{(node + 1) * cpus - 1},memdev=ram{node}"]
        return [*options, "-numa", "dist,src=0,dst=1,val=21"]

    def _kernel(self) -> list[str]:
        other = self.shape.kernel
        kernel, initrd = (other.vmlinux, other.initrd) if other else (self.image.kernel, self.image.initrd)
        return ["-kernel", str(kernel), "-initrd", str(initrd), "-append", self.shape.kernel_arguments()]

    def _plugin_options(self) -> list[str]:
        # QEMU takes a comma for the end of a value, and two for one that belongs to it.
        named = [(f"{plugin}".replace(",", ",,"), f"{self.plugin_socket(plugin)}".replace(",", ",,")) for plugin in self.plugins]
        return [word for file, control in named for word in ("-plugin", f"file={file},control={control}")]

    def _not_started(self, words: str, *, with_plugins: bool) -> errors.VsprofError:
        status = self._process.poll() if self._process is not None else None
        # A plug-in that crashes takes QEMU along. Killed is another matter: that does the kernel where memory is short.
        crashed = status is not None and status < 0 and status != -signal.SIGKILL
        if with_plugins and (crashed or any(refused in words for refused in PLUGIN_REFUSED)):
            files = [f"{plugin}" for plugin in self.plugins]
            return messages.plugin_not_loaded([file for file in files if file in words] or files, words)
        return messages.emulator_failed(words)

    def _preloaded(self) -> list[Path]:
        """The plug-ins by paths that the loader takes, whatever their own."""
        links = [self.folder / f"preload{number}.so" for number, _ in enumerate(self.plugins)]
        for link, plugin in zip(links, self.plugins, strict=True):
            link.unlink(missing_ok=True)
            link.symlink_to(plugin)
        return links

    def _spawn(self, arguments: list[str], preload: Sequence[Path] = ()) -> None:
        with (self.folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*self.image.program("qemu-system-x86_64", preload), *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, preexec_fn=processes.dying_with_parent(),
                # Ctrl-C must reach the runner alone: it stops the machine when the run's record is safe.
                start_new_session=True,
            )  # fmt: skip

    def _connect(self) -> bool:
        """Connect to the monitor as soon as it listens; False when QEMU ends first."""
        for _ in range(500):
            if not self.alive():
                return False
            if self._monitor.connect():
                return True
            time.sleep(0.02)
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def instance() -> Iterator[Instance]:
    one = Instance()
    try:
        yield one
    finally:
        one.remove()
