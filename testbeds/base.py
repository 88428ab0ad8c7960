# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a testbed: a host on which switches and endpoints run.

Life cycle, in the order the runner uses it::

    with Lab(options) as host:            # opened: ready, empty, as after a boot
        host.facts()                      # what it is, for the manifest
        host.run("ovs-vsctl show")        # a command, to its end
        process = host.start("guest-a", "qemu-system-x86_64 …", cpus=[0])
        host.socket("/run/guest-a.qmp")   # a Unix socket of the host, as a path on this machine
        process.stop()
                                          # closed: nothing is left of it

A testbed knows nothing of switches, guests or traffic. To add one, write one file here that defines a subclass
and names it in ``TESTBED``.
"""

import abc
import contextlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from vsprof.terms.placement import PAIR, CpuPlan, Duties
from vsprof.testbeds import idle_states, messages
from vsprof.testbeds.patience import Patience
from vsprof.testbeds.wire import Wire

REAL, EMULATED, MODELLED = "real", "emulated", "modelled"
"""Whose time passes on a testbed: this or another real machine's; the emulator's; the modelled processor's, while windows last."""
RELEASES = ("trixie", "bookworm", "forky")
"""Debian's releases that programs can come from, by Debian's names; the first is the lab's own."""
KERNELS = ("trixie", "bookworm", "forky", "trixie-backports")
"""Debian's suites that the kernel of a host can come from, by Debian's names; the first is the lab's own."""
OPTIONS: Mapping[str, tuple[str, ...]] = {"kernel": KERNELS}
"""What an experiment can fix or vary of the host, and the values that each option allows; the first is the default."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended: its exit status and what it printed."""

    command: str
    status: int
    stdout: str
    stderr: str


class Process(abc.ABC):
    """A long-running process on a testbed."""

    name: str

    @property
    @abc.abstractmethod
    def pid(self) -> int:
        """Process id on the testbed."""

    @abc.abstractmethod
    def alive(self) -> bool:
        """Whether it still runs."""

    @abc.abstractmethod
    def log(self) -> str:
        """What it printed so far."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End it, by force if it must be, and wait for the end. Does nothing if it ended before."""


class Testbed(abc.ABC):
    """A host to measure on. See the module's text for the life cycle."""

    name: str
    cards_emulated: ClassVar[bool] = False
    """Whether the cards of its ``wires`` are QEMU's igb, which needs to be told what real ones do by themselves."""
    # pytest would collect a class of this name when a test imports it.
    __test__ = False

    def __enter__(self) -> Self:
        try:
            self.open()
        except BaseException:
            # Nobody closes what was never entered.
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @abc.abstractmethod
    def open(self) -> None:
        """Bring the host up. Raises ``VsprofError`` with the reason when it can't."""

    @abc.abstractmethod
    def close(self) -> None:
        """Leave nothing behind. Safe to call at any time, and twice."""

    @property
    @abc.abstractmethod
    def cpus(self) -> int:
        """Number of CPUs of the host."""

    def plan(self, duties: Duties = PAIR) -> CpuPlan:
        """Which CPU does what. Raises ``BadInput`` where it has too few for these ``duties``."""
        return CpuPlan.of(self.cpus, duties)

    @property
    def housekeeping(self) -> str:
        """The start of a command line that keeps a program on the housekeeping CPU, out of what is measured."""
        return f"taskset -c {self.plan().housekeeping}"

    clock: str = REAL
    """Whose time its rates are measured in."""
    thrown_away: bool = False
    """Whether nothing that runs on the host outlives ``close``, so that nothing need be stopped before."""

    @classmethod
    def machines(cls, options: Mapping[str, Any]) -> list[str]:
        """Those that the runs of a sweep can be shared among, by name; one run at a time uses each. ``options``: what it is made with.
        Empty: emulated hosts, as many as this machine bears. Raises ``BadInput``."""
        return []

    takes_turns: ClassVar[bool] = False
    """Whether several of it can be open at once, each ``beside`` a first one, and each be frozen while it is another's turn."""

    def freeze(self) -> None:
        """Let none of its processes go on until ``thaw``; they stand still when this returns. Only where it ``takes_turns``."""
        raise NotImplementedError

    def thaw(self) -> None:
        raise NotImplementedError

    def findings(self) -> list[str]:
        """What a reader must know of this host beside its facts, a sentence each: CPUs that had to be shared, settings that disturb."""
        return []

    def guests_boot(self) -> str | None:
        """Why no virtual machine boots on this host, or None. Where it isn't known beforehand, one is booted."""
        return None

    def room_lacking(self, endpoints: int, *, dpdk: bool = True) -> str | None:
        """Why so many endpoints have no room in its hugepages, beside a switch that uses ``dpdk`` or does not; or None. A host that can
        take more takes them."""
        return None

    def hugepages_lacking(self) -> str | None:
        """Why there are too few hugepages for a DPDK switch and its endpoints, or None."""
        return None

    deepest_idle: str | None = None
    """The deepest idle state that its CPUs take in modelled time, where one was asked for."""

    def idle_state_lacking(self, deepest: str) -> str | None:
        """Why its CPUs can't be kept from idle states deeper than ``deepest`` (``C0``: from all), or None."""
        return idle_states.lacking(self, deepest)

    def limit_idle_states(self, deepest: str) -> int | None:
        """Keep its CPUs from deeper ones. Returns the latency [us] that a process there must ask its kernel for, if that is how."""
        return idle_states.latency_us(self, deepest)

    @abc.abstractmethod
    def facts(self) -> dict[str, Any]:
        """Kernel, command line, CPU, memory, hugepages and versions, for the manifest."""

    @abc.abstractmethod
    def run(self, command: str, *, timeout: float = 60, check: bool = True) -> Completed:
        """Run a shell command to its end.

        Raises ``RunFailed`` when it takes longer than ``timeout`` seconds, or, with ``check``, when it fails.
        """

    @abc.abstractmethod
    def start(self, name: str, command: str, *, cpus: Sequence[int], environment: Mapping[str, str] = {}) -> Process:
        """Start ``command`` in the background as process ``name``, allowed on ``cpus`` only."""

    def prepared(self, key: str, prepare: Callable[[], None]) -> Callable[[str], Process] | None:
        """Bring it to the state that ``prepare`` leaves it in, before anything else runs on it. ``key``: what that state depends on.

        A testbed that is thrown away may have kept the state from before. Then it says how a process of it is found by its name;
        ``prepare`` was called for another one of its kind, or not at all. None where ``prepare`` was called here.
        """
        prepare()
        return None

    def remembered(self, question: str, ask: Callable[[], str]) -> str:
        """What ``ask`` finds out of this host. ``question`` names it, and all that it depends on beside the programs that are installed:
        a host that is made of the same ones again and again may have kept the answer."""
        return ask()

    def patience(self, seconds: float) -> Patience:
        """A time-out for something of this host."""
        return Patience(seconds)

    def died(self, processes: Sequence[Process]) -> Process | None:
        """The first of ``processes`` that ended, or None."""
        return next((process for process in processes if not process.alive()), None)

    @abc.abstractmethod
    def push(self, content: str | bytes, path: str) -> None:
        """Write ``content`` to ``path`` on the host."""

    @abc.abstractmethod
    def pull(self, path: str, to: Path) -> None:
        """Copy a file or folder ``path`` of the host into the local folder ``to``.

        Raises ``RunFailed`` when the host does not give it, ``OSError`` when it can't be written here.
        """

    @abc.abstractmethod
    def socket(self, path: str) -> Path:
        """A local path that leads to the host's Unix socket ``path``."""

    def files(self) -> Path | None:
        """A local folder in which the host's programs can be read by their paths; None where they are not at hand."""
        return None

    def file(self, path: str) -> Path | None:
        """Where the host's file ``path`` can be read here, as far as it is one of ``files``; None where it is not at hand."""
        root = self.files()
        return None if root is None else root / path.removeprefix("/")

    def release_lacking(self, release: str) -> str | None:
        """Why no programs of this Debian release can be run here, or None. What can be had by building it is built now; raises ``BadInput``
        where this machine can't, ``VsprofError`` where that fails."""
        own = self.run('. /etc/os-release; echo "$VERSION_CODENAME"').stdout.strip()
        return None if own == release else messages.other_release(self.name, own, release)

    def enter(self, release: str) -> str:
        """The start of a command line that runs a program of this Debian release; empty for the host's own."""
        return ""

    def kernel_lacking(self, kernel: str) -> str | None:
        """Why it can't run under the kernel of this Debian suite, one of ``KERNELS``, or None. A testbed that boots others fetches it now;
        raises as ``release_lacking`` does."""
        return messages.other_kernel(self.name, self.run("uname -r").stdout.strip(), kernel)

    def boot_lacking(self, *, iommu: bool = False, threaded_irqs: bool = False) -> str | None:
        """Why it can't run as ``boot`` is asked to, or None."""
        return None

    def boot(self, kernel: str | None = None, *, iommu: bool = False, threaded_irqs: bool = False) -> None:
        """Run so from the next command on: under the kernel of this suite, which is not ``kernel_lacking`` (None: its own); with an IOMMU,
        and with interrupts handled in threads, which only a host with a wire is asked for, and are not ``boot_lacking``. Told before the
        first command."""

    def plugin_socket(self, plugin: Path) -> Path | None:
        """The local Unix socket on which a plug-in of the emulator may listen; None where the host has no such plug-in.

        Only an emulated host has them, and only those that it was started with.
        """
        return None

    def wire_lacking(self) -> str | None:
        """Why it has no wire between two network cards, or None."""
        return messages.no_wire(self.name)

    def wires(self, count: int) -> list[Wire]:
        """So many such wires, for this run alone. Once a run. Raises ``RunFailed``."""
        raise NotImplementedError

    def adopt_interface(self, interface: str) -> None:
        """Let a run have the kernel's interface of a card of its ``wires``. Raises ``RunFailed``."""

    def polling_last(self, cpus: Sequence[int]) -> AbstractContextManager[None]:
        """While it lasts, what polls on ``cpus`` of this host, and has nothing to do, keeps nothing else from its work. A host that has its
        CPUs for itself needs nothing for that."""
        return contextlib.nullcontext()

    def guests_held(self) -> AbstractContextManager[None]:
        """While it lasts the virtual machines of this host stand still, where its emulator needs that at times.

        Raises ``RunFailed`` when they do not stop.
        """
        return contextlib.nullcontext()
