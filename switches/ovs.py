# SPDX-License-Identifier: GPL-2.0-or-later
"""What kernel OVS and OVS-DPDK share: the database, the daemon, one bridge with its NORMAL action, and its counters."""

import re
import shlex
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from vsprof.switches import links, messages, openflow, tunnel
from vsprof.switches.base import Port, PortCounters, Switch
from vsprof.terms.placement import CpuPlan, Thread
from vsprof.testbeds.base import Process, Testbed
from vsprof.testbeds.threads import threads_of

RUN = "/run/openvswitch"
"""OVS's own run-time folder, where ovs-appctl and the collectors look for the daemon."""
DATABASE = "/run/openvswitch/vsprof.db"
BRIDGE = "br0"
AFXDP = "type=afxdp options:xdp-mode=generic"
"""An interface over AF_XDP: without a network card's driver the kernel copies."""
START_SECONDS = 60

TABLES = f"{RUN}/tables"
SETTLE_SECONDS, SETTLE_LOOK_S = 120, 1
"""How long packets may miss the datapath's flows once traffic has begun, and how far apart two looks are between which they find them."""
SETTLED_SHARE = 0.01
"""The most of packets that may miss still: those of neighbour discovery, and of flows that have just run out."""
_LOOKUPS = re.compile(r"lookups: hit:(\d+) missed:(\d+).*\n  flows: (\d+)")

_PORT = re.compile(r"^\s*port\s+(?:\"(?P<quoted>[^\"]+)\"|(?P<plain>\S+)):\s*rx\s+(?P<rx>.*)$")
_COUNT = re.compile(r"(pkts|bytes)=(\d+)")


class Ovs(Switch):
    """Open vSwitch with a datapath to be named by the subclass."""

    daemon: ClassVar[str]
    datapath: ClassVar[str]
    program = "ovs-vswitchd"

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        self._database: Process | None = None
        self._daemon: Process | None = None
        self._ports: list[str] = []
        self.daemon_cpu = plan.housekeeping
        """Where the daemon's threads run; poll-mode threads have a CPU of their own."""
        self._behind: dict[str, str] = {}
        """The port of each Ethernet address that it was told of."""

    def start(self) -> None:
        create = self.of_release(f"ovsdb-tool create {DATABASE} /usr/share/openvswitch/vswitch.ovsschema")
        self.host.run(f"mkdir -p {RUN} && rm -f {DATABASE} && {create}")
        housekeeping = [self.plan.housekeeping]
        self._database = self.host.start(
            "ovsdb",
            self.of_release(f"/usr/sbin/ovsdb-server {DATABASE} --remote=punix:{RUN}/db.sock --unixctl={RUN}/ovsdb-server.ctl"),
            cpus=housekeeping,
        )
        self._until(f"[ -S {RUN}/db.sock ]", self._database, "ovsdb-server to listen")
        settings = " ".join(f"other_config:{key}={value}" for key, value in self.settings().items())
        self.host.run(f"ovs-vsctl --no-wait init{f' -- set Open_vSwitch . {settings}' if settings else ''}")
        self._start_daemon()
        self.vsctl(f"add-br {BRIDGE} -- set bridge {BRIDGE} datapath_type={self.datapath}")
        links.silence(self.host, BRIDGE)

    def _start_daemon(self) -> None:
        command = self.of_release(f"{self.daemon} unix:{RUN}/db.sock --unixctl={RUN}/ovs-vswitchd.ctl -vconsole:info")
        self._daemon = self.host.start("ovs-vswitchd", command, cpus=[self.daemon_cpu])
        self._until(
            f"[ -S {RUN}/ovs-vswitchd.ctl ] && ovs-appctl -t {RUN}/ovs-vswitchd.ctl version", self._daemon, "ovs-vswitchd to listen"
        )

    def can_not_restart(self) -> str | None:
        return None

    def kill(self) -> None:
        assert self._daemon is not None
        self.host.run(f"kill -KILL {self._daemon.pid}")
        self._daemon.stop()

    def restart(self) -> None:
        # The database lives on, and has the bridge with its ports.
        self._start_daemon()
        # The daemon answers before it has made them, and before DPDK is up; a change of the database is waited for.
        self.vsctl(f"set Open_vSwitch . external_ids:vsprof-restarted={time.time():.0f}")
        self._make_tables()

    def settings(self) -> dict[str, str]:
        """``other_config`` of the Open_vSwitch table, set before the daemon starts."""
        return {}

    def local_port(self) -> Port:
        return Port(BRIDGE, "internal", BRIDGE)

    def vsctl(self, command: str) -> str:
        """Run ovs-vsctl and wait until the daemon has done it. Raises ``RunFailed`` with the daemon's log when it can't."""
        done = self.host.run(f"ovs-vsctl --timeout=30 {command}", check=False)
        if done.status != 0 or "ovs-vsctl:" in done.stderr:
            assert self._daemon is not None
            raise messages.switch_failed(f"ovs-vsctl {command}: {done.stderr.strip()}", _tail(self._daemon.log()))
        return done.stdout.strip()

    def appctl(self, command: str) -> str:
        """Ask the daemon itself; what it prints."""
        return self.host.run(f"ovs-appctl -t {RUN}/ovs-vswitchd.ctl {command}").stdout

    @property
    def _has_tables(self) -> bool:
        return openflow.wanted({**openflow.SETTINGS, **self.chosen})

    @property
    def wants_addresses(self) -> bool:
        return self._has_tables

    def learn(self, port: Port, mac: str) -> None:
        # OpenFlow has another name for the bridge's own port.
        self._behind[mac] = "LOCAL" if port.name == BRIDGE else port.name
        if port.name != BRIDGE:
            self.appctl(f"fdb/add {BRIDGE} {port.name} 0 {mac}")

    def ready(self) -> None:
        if self._has_tables:
            if self.chosen["tunnel"] != tunnel.NONE and self.datapath != "netdev":
                # It outlives the daemon.
                self.host.run(tunnel.KERNEL)
            self._make_tables()

    def _make_tables(self) -> None:
        """Of a daemon that has none: they end with it."""
        if self._has_tables and self._behind:
            self._join_ends()
            # Without its tables it must not forward by itself: between two tunnel ports a frame for everybody would go round for ever.
            self.vsctl(f"set-fail-mode {BRIDGE} secure")
            self.host.push("\n".join([*openflow.tables(self.chosen, self._behind), ""]), TABLES)
            # All at once: a frame that met half of them would leave a flow of its own in the datapath.
            self.host.run(f"ovs-ofctl --bundle replace-flows {BRIDGE} {TABLES}", timeout=START_SECONDS)

    def _join_ends(self) -> None:
        """Make the tunnels between them, where the case has any."""
        if (kind := self.chosen["tunnel"]) == tunnel.NONE:
            return
        if self.datapath == "netdev":
            self.host.run(tunnel.user_space("ovs-vsctl --timeout=30", f"ovs-appctl -t {RUN}/ovs-vswitchd.ctl"), timeout=START_SECONDS)
        for name, settings in zip(tunnel.PORTS, tunnel.ports(kind, kernel=self.datapath == "system"), strict=True):
            self.vsctl(f"--may-exist add-port {BRIDGE} {name} -- set Interface {name} {settings}")
            self.host.run(f"ovs-ofctl mod-port {BRIDGE} {name} no-flood")
        for name in tunnel.UNDERLAY:
            links.silence(self.host, name)

    def settle(self, flows: int) -> None:
        """Wait until packets find their flows in the datapath, and each flow that has a rule of its own is there. Without tables there is
        one for all.

        Each alone is not enough: as many flows may run out as come in; and a switch that is slow in the emulator's time gets packets of the
        same flows again and again, while its sender drops the others.
        """
        if not self._has_tables:
            return
        wanted = min(flows, int(self.chosen["rules"]))
        patience, (hits, misses, _) = self.host.patience(SETTLE_SECONDS), self._lookups()
        while True:
            time.sleep(SETTLE_LOOK_S)
            now_hits, now_misses, installed = self._lookups()
            missed, packets = now_misses - misses, now_hits - hits + now_misses - misses
            if missed <= SETTLED_SHARE * packets and installed >= wanted:
                return
            if patience.over():
                raise messages.datapath_misses(SETTLE_SECONDS, missed, packets, installed, wanted)
            hits, misses = now_hits, now_misses

    def _lookups(self) -> tuple[int, int, int]:
        """How many packets have found their flow in the datapath so far, how many have not, and how many flows are there."""
        hits, misses, flows = _LOOKUPS.findall(self.appctl("dpctl/show"))[-1]
        return int(hits), int(misses), int(flows)

    def join(self, one: Port, other: Port) -> None:
        ways = (f"in_port={a.name},actions=output:{b.name}" for a, b in ((one, other), (other, one)))
        self.host.run("; ".join(["set -e", f"ovs-ofctl del-flows {BRIDGE}", *(f"ovs-ofctl add-flow {BRIDGE} {way}" for way in ways)]))

    def port_counters(self) -> str:
        return f"ovs-ofctl --names dump-ports {BRIDGE}"

    @classmethod
    def parse_port_counters(cls, text: str) -> dict[str, PortCounters]:
        """Read ``ovs-ofctl dump-ports``: per port one line of rx and one of tx counters.

        A port whose counts are ``?`` (a vhost-user port without its guest) is left out.
        """
        found, rx = {}, None
        for line in text.splitlines():
            if match := _PORT.match(line):
                rx = (match["quoted"] or match["plain"], dict(_COUNT.findall(match["rx"])))
            elif rx and line.lstrip().startswith("tx "):
                name, received = rx
                sent = dict(_COUNT.findall(line))
                # LOCAL is the bridge's own port, which we name as the host does.
                if len(received) == len(sent) == 2:
                    found[BRIDGE if name == "LOCAL" else name] = PortCounters(
                        int(received["pkts"]), int(received["bytes"]), int(sent["pkts"]), int(sent["bytes"])
                    )
                rx = None
        return found

    def threads(self) -> list[Thread]:
        assert self._daemon is not None
        return [Thread(name, tid, "switch", cpus) for tid, name, cpus in threads_of(self.host, self._daemon.pid)]

    def processes(self) -> list[Process]:
        return [process for process in (self._database, self._daemon) if process is not None]

    def facts(self) -> dict[str, Any]:
        version = self.appctl("version").splitlines()
        settings = self.vsctl("get Open_vSwitch . other_config")
        known = {"version": version, "datapath": self.datapath, "other_config": settings}
        return {**known, "openflow": self._rules()} if self._has_tables else known

    def _rules(self) -> dict[str, str]:
        """By table, how many rules it has."""
        asked = {table: self.host.run(f"ovs-ofctl dump-aggregate {BRIDGE} table={table}").stdout for table in openflow.NAMES.values()}
        return {name: asked[table].rpartition("flow_count=")[2].strip() for name, table in openflow.NAMES.items()}

    def stop(self) -> None:
        if self._daemon is not None and self._daemon.alive():
            # --cleanup takes the datapath and its interfaces away, which would outlive the daemon.
            self.host.run(f"ovs-appctl -t {RUN}/ovs-vswitchd.ctl exit --cleanup", check=False)
        for process in (self._daemon, self._database):
            if process is not None:
                process.stop()
        self._daemon = self._database = None
        self.host.run(f"rm -f {DATABASE}", check=False)

    def _until(self, condition: str, process: Process, waiting_for: str) -> None:
        patience = self.host.patience(START_SECONDS)
        # One command that polls on the host: each further round trip would disturb a starting daemon.
        waited = self.host.run(
            f"for i in $(seq 100); do {{ {condition}; }} >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1", check=False
        )
        while waited.status != 0:
            if not process.alive() or patience.over():
                raise messages.switch_failed(f"waited for {waiting_for}", _tail(process.log()))
            waited = self.host.run(f"{condition}", check=False)


def _tail(log: str, lines: int = 12) -> str:
    return "\n".join(log.splitlines()[-lines:])


def quoted(path: str) -> str:
    """A value for the database, quoted for ovs-vsctl and the shell."""
    return shlex.quote(f'"{path}"')
