# SPDX-License-Identifier: GPL-2.0-or-later
"""The testbed ``remote``: a server of an Ansible inventory that `make host` has prepared, reached over SSH as root.

Everything runs in a namespace of its own for network and mounts: the server's own interfaces, bridges and hugepage files are neither
seen nor touched, and what a run made is gone when the namespace ends.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from vsprof.terms import errors
from vsprof.terms.placement import PAIR, CpuPlan, Duties
from vsprof.testbeds import cards, messages, modules, topology
from vsprof.testbeds import inventory as inventories
from vsprof.testbeds.base import Completed
from vsprof.testbeds.emulator.machine import Instance
from vsprof.testbeds.guard import Guard
from vsprof.testbeds.inventory import Server
from vsprof.testbeds.native import HUGEPAGES, needed_hugepages
from vsprof.testbeds.ssh import Channel
from vsprof.testbeds.systemd_host import SystemdHost
from vsprof.testbeds.wire import Wire

GUEST_IMAGE = "/var/lib/vsprof/guest/guest.cpio"
"""The last thing that the role guest_image makes."""
LOGIN_SECONDS = CARDS_SECONDS = 60

MODULES_BEFORE = "/run/vsprof-modules-before"
"""The kernel's modules that were there before the run."""
END = f"""
systemctl stop 'vsprof-*' 2>/dev/null
{cards.GIVE_BACK}
before=$(cat {MODULES_BEFORE} 2>/dev/null | tr '\\n' ' ')
{modules.UNLOAD}
rm -rf /run/vsprof-* /run/guest[0-9].qmp /run/guest[0-9].agent /run/guest[0-9].console
rmdir --ignore-fail-on-non-empty /run/openvswitch /run/dpdk 2>/dev/null
true
"""
"""Ends all that was started, and the namespace with it. A unit may outlive whoever started it: so this also comes first, and last of all
by the guard."""
LEFT = "systemctl list-units --all --plain --no-legend 'vsprof-*' | cut -d' ' -f1; ls -d /run/vsprof-* 2>/dev/null"
# /sys shows the interfaces of the network that it was mounted in: what shows interfaces is mounted over it again.
BEGIN = f"""{END}
mkdir -p /run/openvswitch /run/dpdk
{modules.LOADED} > {MODULES_BEFORE}
cat > /run/vsprof-namespace.sh <<'SCRIPT'
set -e
mkdir -p /run/vsprof-sys
mount -t sysfs sysfs /run/vsprof-sys
mount --bind /run/vsprof-sys/class/net /sys/class/net
mount --bind /run/vsprof-sys/devices/virtual/net /sys/devices/virtual/net
mount -t tmpfs tmpfs /run/openvswitch
mount -t tmpfs tmpfs /run/dpdk
mount -t hugetlbfs hugetlbfs /dev/hugepages
ip link set lo up
systemd-notify --ready
exec sleep infinity
SCRIPT
systemd-run --quiet --collect --unit=vsprof-namespace --service-type=notify --property=NotifyAccess=all \\
    unshare --net --mount bash /run/vsprof-namespace.sh && systemctl show --property MainPID --value vsprof-namespace
"""


@dataclass
class ServerChannel(Channel):
    """A connection as the inventory and the user's own SSH configuration describe it."""

    options: list[str] = field(default_factory=list)

    @classmethod
    def to(cls, server: Server, folder: Path) -> Self:
        return cls(server.destination, 0, Path(), "", folder, options=server.ssh_options())

    def connect(self, name: str) -> None:
        """Try once: a server may shut out whoever knocks too often. Raises ``VsprofError`` with SSH's own words."""
        if (failed := self._connect(LOGIN_SECONDS)) is not None:
            raise messages.unreachable(name, failed)

    def _options(self) -> list[str]:
        return [*self.options, "-o", "LogLevel=ERROR"]


class Remote(SystemdHost):
    """A prepared server; each opening finds it without anything of an earlier run."""

    name = "remote"

    def __init__(
        self,
        cpus: int = 0,
        say: Callable[[str], None] = lambda text: None,
        plugins: Sequence[Path] = (),
        *,
        inventory: Path | str | None = None,
        server: str | None = None,
    ) -> None:
        """``server``: its name in the inventory, which may be left out where there is only one.

        A server has the CPUs that it has, and no emulator for plug-ins: ``cpus`` and ``plugins`` mean nothing here.
        Raises ``BadInput`` where the inventory has no such server.
        """
        super().__init__()
        if inventory is None:
            raise messages.no_inventory()
        self.server = inventories.choose(Path(inventory), server)
        self._named_wires = cards.of(self.server)
        self._namespace = ""
        self._cpus = 0
        self._instance: Instance | None = None
        self._guard: Guard | None = None

    @classmethod
    def machines(cls, options: Mapping[str, Any]) -> list[str]:
        if not options.get("inventory"):
            raise messages.no_inventory()
        path = Path(options["inventory"])
        return [inventories.choose(path, options["server"]).name] if options.get("server") else [*inventories.read(path)]

    def open(self) -> None:
        self._reach()
        self._check()
        self._take()
        begun = self.run(BEGIN, check=False)
        if begun.status != 0 or not begun.stdout.strip().isdigit():
            raise messages.not_opened(self.server.name, begun.stderr or begun.stdout)
        self._namespace = begun.stdout.strip()
        self._enter = ["nsenter", "--target", self._namespace, "--net", "--mount"]

    def close(self) -> None:
        self._enter = []
        if self._channel is not None:
            # Only who holds the lock may end what runs there. On a server that is gone there is nothing left to end.
            if self._guard is not None:
                with contextlib.suppress(errors.VsprofError):
                    self._channel.run(END, timeout=60, check=False)
                self._guard.close()
            self._channel.close()
        if self._instance is not None:
            self._instance.remove()
        self._guard = self._channel = self._instance = None

    def clear(self) -> list[str]:
        """End what a killed run left on the server; return what that was: units, and files in /run.

        Raises ``VsprofError`` where the server can't be reached, or somebody measures there.
        """
        try:
            self._reach()
            self._take()
            return self.run(LEFT, check=False).stdout.split()
        finally:
            self.close()

    @property
    def cpus(self) -> int:
        return self._cpus

    def plan(self, duties: Duties = PAIR) -> CpuPlan:
        return self._plan if duties == PAIR else topology.plan(self._available, duties)[0]

    def room_lacking(self, endpoints: int, *, dpdk: bool = True) -> str | None:
        free, needed = int(self.run(f"cat {HUGEPAGES.with_name('free_hugepages')}").stdout), needed_hugepages(endpoints, dpdk=dpdk)
        return None if free >= needed else messages.server_hugepages_lacking(free, needed)

    def findings(self) -> list[str]:
        return [messages.cpu_shared(cpu, duties) for cpu, duties in self._shared.items()]

    def guests_boot(self) -> str | None:
        # That one really boots is seen when the first run boots it.
        return None if self.run("test -w /dev/kvm", check=False).status == 0 else "it has no /dev/kvm"

    def boot_lacking(self, *, iommu: bool = False, threaded_irqs: bool = False) -> str | None:
        # Without an IOMMU its cards have another driver: see ``wire.give_dpdk``.
        there = not threaded_irqs or self.run("grep -qw threadirqs /proc/cmdline", check=False).status == 0
        return None if there else messages.no_threaded_irqs(self.server.name)

    def wire_lacking(self) -> str | None:
        if not self._named_wires:
            return messages.no_wire_named(self.server.name, cards.VARIABLE)
        # Not in the namespace, which sees none of their interfaces.
        asked = self._outside(cards.command(cards.CHECK, self._named_wires))
        return messages.cards_not_free(self.server.name, asked.stdout or asked.stderr) if asked.status != 0 else None

    def wires(self, count: int) -> list[Wire]:
        """Those that the inventory names first. END gives them back."""
        if count > len(self._named_wires):
            raise messages.too_few_wires(self.server.name, cards.VARIABLE, len(self._named_wires), count)
        taken = self._named_wires[:count]
        known = self._outside(cards.command(cards.REMEMBER, taken))
        if known.status != 0:
            raise messages.card_not_bound([taken[0].switch, taken[0].load], known.stderr)
        return taken

    def adopt_interface(self, interface: str) -> None:
        moved = self._outside(f"ip link set {interface} netns {self._namespace}")
        if moved.status != 0:
            raise messages.card_not_moved(interface, moved.stderr)

    def _outside(self, command: str) -> Completed:
        """Run it on the server itself, not in the run's namespace."""
        return self.channel.run(command, timeout=CARDS_SECONDS, check=False)

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "server": self.server.name, "cpus_shared_by": self._shared}

    def _reach(self) -> None:
        Instance.remove_stale()
        self._instance = Instance()
        channel = ServerChannel.to(self.server, self._instance.folder)
        channel.connect(self.server.name)
        self._channel = channel
        self._check_root()

    def _check_root(self) -> None:
        if (user := self.run("id -un").stdout.strip()) != "root":
            raise messages.not_root(self.server.name, user)

    def _check(self) -> None:
        cpus, prepared = self.run(f"nproc --all; test -s {GUEST_IMAGE} && echo prepared || echo bare").stdout.split()
        if prepared != "prepared":
            raise messages.not_prepared(self.server.name)
        self._cpus = int(cpus)
        self._available = topology.cpus(self.run(topology.COMMAND).stdout)
        self._plan, self._shared = topology.plan(self._available)

    def _take(self) -> None:
        shell = self.channel.shell()
        try:
            self._guard = Guard(shell, END)
        except errors.RunFailed as error:
            shell.close()
            raise messages.server_in_use(self.server.name) from error


TESTBED = Remote
