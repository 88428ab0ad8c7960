# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbed ``lab``: a Debian host with kernel OVS, vhost-net, nested KVM and OVS-DPDK, emulated by QEMU.

It runs on any x86-64 Linux, without root, KVM, PMU or NIC. While windows last, the modelled processor drives its clock: so what it
measures are counters of real programs, and rates that are that processor's, not the emulator's.
"""

import contextlib
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vsprof.terms import errors
from vsprof.terms import messages as terms_messages
from vsprof.terms.placement import PAIR, CpuPlan, Duties
from vsprof.testbeds import messages
from vsprof.testbeds.base import EMULATED, KERNELS, MODELLED, RELEASES, Completed, Process
from vsprof.testbeds.emulator import answers, cache, kernels, needs, releases, snapshot
from vsprof.testbeds.emulator import image as images
from vsprof.testbeds.emulator.likeness import ITSELF, Likeness
from vsprof.testbeds.emulator.machine import ACCELERATORS, Instance, Machine, Shape
from vsprof.testbeds.patience import Patience
from vsprof.testbeds.ssh import Channel, Shell
from vsprof.testbeds.systemd_host import SystemdHost
from vsprof.testbeds.wire import Wire

RESUME_SECONDS = 20
CARDS_SECONDS = 30
CARDS = "grep -l '^PCI_ID=8086:10C9' /sys/bus/pci/devices/*/uevent | cut -d/ -f6"
"""The PCI addresses of all cards of QEMU's kind igb (Intel 82576), in the order in which they were plugged in."""
MOUNT_SECONDS = 120
CPUS = (2, 4, 6, 8, 16)
CLOCKS = (EMULATED, MODELLED)

# KVM has a folder for each virtual machine, named by the process; a process's unit can be frozen as a whole. In words of the shell's
# own: a program costs the emulated host a tenth of a second. Before Linux 6.4 a vhost worker is a kernel thread in the unit, which would
# never count as frozen: it is taken out. (A loop that read the list while it changes would miss some.)
HOLD = """
stand() {
    local units=()
    for machine in /sys/kernel/debug/kvm/*-*; do
        process=${machine##*/}
        IFS=: read -r _ _ unit < /proc/${process%-*}/cgroup || continue
        mapfile -t members < /sys/fs/cgroup$unit/cgroup.procs
        for member in "${members[@]}"; do
            [[ -e /proc/$member/exe ]] || echo $member > /sys/fs/cgroup/cgroup.procs
        done
        echo $1 > /sys/fs/cgroup$unit/cgroup.freeze && units+=("$unit")
    done
    (($1)) || return 0
    for unit in "${units[@]}"; do
        for try in {1..10000}; do
            mapfile -t events < /sys/fs/cgroup$unit/cgroup.events
            [[ ${events[*]} == *"frozen $1"* ]] && continue 2
        done
        return 1
    done
}
"""
"""A function for a shell: ``stand 1`` makes all virtual machines stand still, and waits until they do; ``stand 0`` lets them go on."""
HOLD_SECONDS, LET_GO_SECONDS = 20, 300
"""The most that either may take. When the guests go on, the model may have taken over already, and the lab is slow: beside a CPU that does
nothing but softirqs, 20 s were not enough."""


class Lab(SystemdHost):
    """An emulated host, resumed from its snapshot; nothing of it outlives ``close``."""

    name = "lab"
    thrown_away = True
    cards_emulated = True

    def __init__(
        self,
        cpus: int | None = None,
        say: Callable[[str], None] = lambda text: None,
        plugins: Sequence[Path] = (),
        nodes: int = 1,
        accel: str = "tcg",
        clock: str = EMULATED,
        like: Likeness = ITSELF,
    ) -> None:
        """``cpus``: one of ``CPUS``; 4 where not given, and 6 on two nodes, so that each end and the switch has its own on one of them.

        ``plugins``: shared objects that QEMU loads, each with a socket of its own (see ``plugin_socket``); ``nodes``: NUMA nodes.

        ``accel``: ``tcg`` emulates; ``kvm`` runs the lab under this machine's KVM, which has no plug-ins: they are left out.
        ``clock``: whose time passes while windows last, the emulator's or the modelled processor's, which a collector then drives.
        ``like``: the machine whose mitigations the lab's kernel has.
        """
        super().__init__()
        if cpus not in (None, *CPUS):
            raise terms_messages.unknown_value("number of lab CPUs", cpus, CPUS)
        if nodes not in (1, 2):
            raise terms_messages.unknown_value("number of lab NUMA nodes", nodes, (1, 2))
        if accel not in ACCELERATORS:
            raise terms_messages.unknown_value("accel", accel, ACCELERATORS)
        if clock not in CLOCKS:
            raise terms_messages.unknown_value("clock", clock, CLOCKS)
        if clock == MODELLED and accel != "tcg":
            raise messages.clock_needs_emulation(accel)
        self.clock = clock
        self._shape, self._say = Shape(cpus or (6 if nodes == 2 else 4), nodes, accel, like), say
        self._plugins = tuple(plugins) if accel == "tcg" else ()
        self._image: images.Image | None = None
        self._instance: Instance | None = None
        self._machine: Machine | None = None
        self._shell: Shell | None = None
        self._releases: dict[str, releases.Release] = {}
        """Trees that this instance has beside its own."""

    def open(self) -> None:
        """It is resumed by whoever needs it first: see ``prepared``."""
        Instance.remove_stale()
        needs.for_running(self._shape.more_bytes).check()
        self._image = images.get(self._say)
        if self._shape.accel == "kvm":
            needs.check_kvm(self._image.kernel, self._image.emulator())

    def close(self) -> None:
        self._end()
        self._image = None

    def prepared(self, key: str, prepare: Callable[[], None]) -> Callable[[str], Process] | None:
        """Resumed from a snapshot that had ``prepare`` done, which is made where it is missing; but not where it runs already."""
        # KVM was never tried with virtual machines in a snapshot.
        if self._machine is not None or self._shape.accel == "kvm":
            return super().prepared(key, prepare)
        self._begin(lambda: self._keep(key, prepare))
        return self.process

    @property
    def cpus(self) -> int:
        return self._shape.cpus

    def idle_state_lacking(self, deepest: str) -> str | None:
        return None if self.clock == MODELLED else messages.emulated_idle_states()

    def limit_idle_states(self, deepest: str) -> None:
        """Whoever drives the clock looks there: see ``deepest_idle`` of collectors/uarch_model."""
        self.deepest_idle = deepest

    def plan(self, duties: Duties = PAIR) -> CpuPlan:
        # With two CPUs on two nodes there is no choice of either.
        return CpuPlan.of_two_nodes(self.cpus) if self._shape.nodes == 2 and self.cpus > 2 else super().plan(duties)

    @property
    def machine(self) -> Machine:
        if self._machine is None:
            self._begin(self._plain)
        assert self._machine is not None
        return self._machine

    @property
    def channel(self) -> Channel:
        assert self.machine
        # Ctrl-C can come between the start of the machine and its first answer; what is undone then must not hide it.
        if self._channel is None:
            raise messages.lab_not_up()
        return super().channel

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "image": images.name(), "accel": self._shape.accel}

    def run(self, command: str, *, timeout: float = 60, check: bool = True) -> Completed:
        self.machine.check_alive()
        return super().run(command, timeout=timeout, check=check)

    def remembered(self, question: str, ask: Callable[[], str]) -> str:
        # Under KVM a part of the answer may be this machine's own.
        if self._shape.accel == "kvm":
            return ask()
        image = self.machine.image
        return answers.get(image.folder, f"{snapshot.folder(image, self._shape).name}\n{question}", ask)

    def patience(self, seconds: float) -> Patience:
        return Patience(seconds, self.machine.held_up)

    def files(self) -> Path | None:
        return self.machine.image.tree

    def file(self, path: str) -> Path | None:
        for name, release in self._releases.items():
            if path.startswith(inside := f"{releases.PLACE}/{name}/"):
                return release.tree / path.removeprefix(inside)
        return super().file(path)

    def release_lacking(self, release: str) -> str | None:
        if release != RELEASES[0]:
            releases.get(release, self._say)
        return None

    def enter(self, release: str) -> str:
        if release == RELEASES[0]:
            return ""
        if release not in self._releases:
            tree = releases.get(release, self._say)
            self.machine.attach(tree.disk, release)
            mounted = self.run(shlex.join(["bash", "-c", releases.MOUNT, "bash", release]), timeout=MOUNT_SECONDS, check=False)
            if mounted.status != 0:
                raise messages.release_not_mounted(release, mounted.stderr)
            self._releases[release] = tree
        return f"/usr/sbin/chroot {releases.PLACE}/{release}"

    def kernel_lacking(self, kernel: str) -> str | None:
        if kernel != KERNELS[0]:
            kernels.get(kernel, self._say)
        return None

    def boot(self, kernel: str | None = None, *, iommu: bool = False, threaded_irqs: bool = False) -> None:
        assert self._machine is None, "the lab runs already"
        other = kernels.get(kernel, self._say) if kernel not in (None, KERNELS[0]) else None
        self._shape = replace(self._shape, kernel=other, iommu=iommu, threaded_irqs=threaded_irqs)

    def wire_lacking(self) -> str | None:
        return None

    def wires(self, count: int) -> list[Wire]:
        """Two cards each as QEMU emulates them (``igb``): what is sent by one is in the other's memory at once."""
        cards = range(2 * count)
        for number in cards:
            self.machine.add_card(f"card{number}", f"52:54:00:76:77:{number + 1:02x}", wire=number // 2 + 1)
        patience = self.patience(CARDS_SECONDS)
        while len(found := self.run(CARDS).stdout.split()) < len(cards):
            if patience.over():
                raise messages.cards_missing(found, len(cards), CARDS_SECONDS)
        return [Wire(*found[number : number + 2]) for number in cards[::2]]

    def plugin_socket(self, plugin: Path) -> Path | None:
        return self.machine.plugin_socket(plugin) if plugin in self._plugins else None

    @contextlib.contextmanager
    def polling_last(self, cpus: Sequence[int]) -> Iterator[None]:
        """This machine has fewer CPUs than are emulated: one that polls would take its share from those on which guests start."""
        with self.machine.behind_others(cpus):
            yield

    @contextlib.contextmanager
    def guests_held(self) -> Iterator[None]:
        """QEMU's TCG needs it when all emulated CPUs must leave their code at once: see ``safe_to_change`` of collectors/uarch_model."""
        self.machine.check_alive()
        if self._shell is None:
            self._shell = self.channel.shell()
            self._shell.ask(HOLD, HOLD_SECONDS)
        try:
            self._shell.ask("stand 1", HOLD_SECONDS)
            yield
        finally:
            self._shell.ask("stand 0", LET_GO_SECONDS)

    def _begin(self, made: Callable[[], Path], disk: Path | None = None) -> None:
        """Resume from the snapshot that ``made`` gives. ``disk``: see ``snapshot.resume``."""
        state = made()
        try:
            self._resume(state, disk)
        except errors.SnapshotUnusable as error:
            # A snapshot can pass its checksum and still not suit this machine (another kernel, another CPU), or be unsound: make it again.
            self._end()
            self._say(f"{error}; booting again")
            snapshot.discard(state)
            self._resume(made(), disk)

    def _plain(self) -> Path:
        """The snapshot of a lab on which nothing was done."""
        assert self._image is not None, "the lab is not open"
        return snapshot.get(self._image, self._shape, self._say)

    def _keep(self, key: str, prepare: Callable[[], None]) -> Path:
        """The snapshot of one that had ``prepare`` done."""
        assert self._image is not None, "the lab is not open"
        where = snapshot.folder(self._image, self._shape, key)
        if not cache.intact(where):
            self._say("booting the virtual machines (once; half a minute)")
        return cache.make(where, lambda partial: self._make(partial, prepare), snapshot.PARTS)

    def _make(self, to: Path, prepare: Callable[[], None]) -> None:
        self._begin(self._plain, to / "disk.qcow2")
        # Where that fails the lab stays as it is: its logs tell why.
        prepare()
        snapshot.save(self.machine, self.channel, to / "state.bin")
        self._end()

    def _end(self) -> None:
        if self._shell is not None:
            self._shell.close()
        if self._channel is not None:
            self._channel.close()
        if self._machine is not None:
            self._machine.stop()
        if self._instance is not None:
            self._instance.remove()
        self._shell = self._channel = self._machine = self._instance = None
        self._releases.clear()

    def _resume(self, state: Path, disk: Path | None) -> None:
        assert self._image is not None
        self._instance = Instance()
        self._machine = Machine(self._image, self._shape, self._instance.folder, self._plugins)
        try:
            snapshot.resume(self._machine, state, disk)
            self._channel = snapshot.connect(self._machine, RESUME_SECONDS)
            snapshot.check(self._channel, self._shape.cpus)
        except errors.PluginNotLoaded:
            # QEMU ended before it looked at the snapshot.
            raise
        except errors.VsprofError as error:
            raise messages.snapshot_unusable(state, error) from error


TESTBED = Lab
