# SPDX-License-Identifier: GPL-2.0-or-later
"""Open vSwitch with the DPDK datapath: a poll-mode thread (PMD) moves all frames in user space and never sleeps.

Ports are ``dpdkvhostuserclient``: the endpoint owns the socket, so that it survives a restart of the switch. With ``port_type: vhost-pmd``
they are DPDK devices (net_vhost), behind which the same vhost library does the same. With ``socket: server`` the switch owns the socket;
such a port is a ``dpdkvhostuser``, which Open vSwitch itself calls deprecated.

On a host of two NUMA nodes, ``pmd_node`` says on which the PMD runs, and ``memory_node`` on which its mbufs and what librte_vhost keeps of
each device are. ``near`` is the node of the guests and their memory. Open vSwitch and librte_vhost bring memory there by themselves: with
``far`` they may not take any there.

The way to the host's own network stack is the bridge's local port, a tap: the poll-mode thread writes to it by system calls, and what the
host sends is read by the daemon's main thread, which is no poll-mode thread. With ``local_port`` another port stands in for it, which the
poll-mode thread serves in both ways (https://docs.openvswitch.org/en/stable/howto/dpdk, https://doc.dpdk.org/guides-24.11/howto,
"Virtio_user as Exceptional Path").
"""

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from vsprof.switches import card_ports, dpdk_nodes, links, mbuf_pages, messages, openflow, tunnel
from vsprof.switches.base import MOVERS, Port
from vsprof.switches.ovs import AFXDP, BRIDGE, RUN, SETTLE_LOOK_S, Ovs, quoted
from vsprof.terms.placement import FAR, NEAR, CpuPlan, Thread
from vsprof.testbeds import numa, pages
from vsprof.testbeds.base import RELEASES, Testbed

MEMORY_MIB = 1024
"""Memory for DPDK. The shared pool of 262,144 mbufs takes most of it; with less, OVS retries smaller."""
NODE_MEMORY_MIB = 448
"""The same of each NUMA node, where there are two: the guests' 512 MiB are on one of them, and all cases shall have the same pool."""
NO_MEMORY_MIB = 1
"""A limit that no hugepage fits in; 0 would be none."""

SLEEP_UNTIL_READY_US = 2000
SLEEP_MAX, OTHER_SLEEP_MAX = "pmd-sleep-max", {"bookworm": "pmd-maxsleep"}
"""The setting's name, and by release what Open vSwitch 3.1 called it."""

POLLS = "pmd-"
"""How the names of Open vSwitch's poll-mode threads begin."""
SCHEDULED = {"nice": "renice -n -20 -p", "nice-10": "renice -n -10 -p", "fifo": "chrt --fifo --pid 1"}
"""The command that gives a thread this scheduling policy."""
FLOW_CACHES: Mapping[str, Mapping[str, str]] = {
    "emc": {},
    "smc": {"emc-insert-inv-prob": "0", "smc-enable": "true"},
    "none": {"emc-insert-inv-prob": "0"},
}
"""By ``flow_cache``, the settings: which cache is before the datapath classifier. The first is Open vSwitch's own choice."""
EMC_ENTRIES, EMC_TRIES = 8192, 300
"""Of a poll-mode thread (Open vSwitch, lib/dpif-netdev-private-dfc.h); and how many packets of a flow bring it in with 95 % probability,
for each does so with 1 % (``emc-insert-inv-prob``)."""
FILL_SECONDS = 20
"""The most that is waited for it."""
SHARING = {"rxq_assign": "cycles", "auto_lb": "off"}
"""Options that share receive queues out among several poll-mode threads, and what Open vSwitch does by itself."""
LOCAL = "vsprof0"
"""The port that stands in for the bridge's own, and the host's interface behind it."""
# Of each frame whose TCP or UDP checksum is left to a device, it asks the device for the IP header's, too, which net/virtio then clears and
# does not make: Open vSwitch, commit 99cac28f7 "netdev-dpdk: Fix IP checksum with net/virtio" (2025-09). Seen with 3.5.0.
BREAKS_CHECKSUMS = (3, 3, 0)
FIXED = {(3, 3): (3, 3, 7), (3, 4): (3, 4, 5), (3, 5): (3, 5, 3), (3, 6): (3, 6, 1)}
VHOST_WORKER = re.compile(r"vhost-\d")
"""A name of the kernel's, by process. librte_vhost has threads of its own, such as vhost-events."""
RECEIVED = re.compile(r"^ +(?:packets received|Rx packets): +(\d+)", re.MULTILINE)
VERSION = re.compile(r"Open vSwitch\) (\d+)\.(\d+)\.(\d+)")


class OvsDpdk(Ovs):
    words, rank, colour = "OVS-DPDK", 50, 2
    accesses = ("vhost-user", "virtio-user")
    takes_devices = takes_cards = True
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "port_type": ("direct", "vhost-pmd"),
        "socket": ("client", "server"),
        "pmd_node": (NEAR, FAR),
        "memory_node": (NEAR, FAR),
        "local_port": ("tap", "virtio-user", "afxdp"),
        "main_thread": ("own-cpu", "pmd-cpu"),
        "sched": ("other", "nice", "nice-10", "fifo"),
        "tso": ("off", "on"),
        "pmd_sleep_max": ("0", "10", "50", "100", "500"),
        "release": RELEASES,
        "rxq_assign": ("cycles", "roundrobin", "group", "pinned"),
        "auto_lb": ("off", "on"),
        "flow_cache": tuple(FLOW_CACHES),
        **mbuf_pages.OPTIONS,
        **MOVERS,
        **openflow.OPTIONS,
        **card_ports.OPTIONS,
    }
    """``switch_cpus``: so many poll-mode threads, each on its CPU; ``rxq_assign``: how Open vSwitch shares receive queues out among them
    (``pmd-rxq-assign``); ``pinned``: we do (``pmd-rxq-affinity``), so that they take turns. ``auto_lb``: whether it moves them when loads
    differ (``pmd-auto-lb``). ``flow_cache``: see ``FLOW_CACHES``. ``pmd_sleep_max``: how long its poll-mode thread may sleep at a time when
    little comes [us]. ``main_thread``: whether the daemon's threads that do not poll run on the CPU of the one that does. ``sched``: the
    scheduling policy of the one that does."""
    reads = ("offloads", "queues")
    node_options = frozenset({"pmd_node", "memory_node"})
    host_options = frozenset({"local_port"})
    card_options = frozenset(card_ports.OPTIONS)
    table_options = frozenset(openflow.OPTIONS)
    daemon = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
    datapath = "netdev"

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        if plan.slots:
            self.plan = plan.on_slot(self.chosen["pmd_node"])
        self._sleep_max = OTHER_SLEEP_MAX.get(self.release or "", SLEEP_MAX)
        self._offloads, self._queues = options.get("offloads", "on"), options.get("queues", "1")
        self._nodes: dict[str, Any] = {}
        """What was found on which NUMA node, where there are two."""
        self._several: dict[str, int] = {}
        """How many queues devices are to receive by, by port; those that have more than one."""
        self._pairs: list[str] = []
        """Interfaces that we made, to be taken away again."""

    def unavailable(self) -> str | None:
        return self.host.hugepages_lacking() or self.release_lacking() or self._local_port_lacks() or card_ports.lacking(self)

    def _local_port_lacks(self) -> str | None:
        if self.chosen["local_port"] == "virtio-user":
            return links.vhost_net_lacking(self.host) or self._breaks_checksums()
        return card_ports.af_xdp_lacking(self) if self.chosen["local_port"] == "afxdp" else None

    def _breaks_checksums(self) -> str | None:
        """Why no TCP gets from an endpoint that leaves checksums to others to a device net_virtio_user; None where it does."""
        found = VERSION.search(self.host.run(self.of_release(f"{self.daemon} --version"), check=False).stdout)
        version = tuple(map(int, found.groups())) if found and self._offloads == "on" else ()
        if version < BREAKS_CHECKSUMS or version >= FIXED.get(version[:2], version):
            return None
        return messages.checksums_broken(".".join(map(str, version)), [".".join(map(str, one)) for one in FIXED.values()])

    def start(self) -> None:
        card_ports.bind(self)
        super().start()
        # Before it has ports, whose guests' memory it shares.
        if mbuf_pages.small(self.chosen):
            assert self._daemon is not None
            pages.check_small(self.host, self._daemon.pid, self.words)

    def settings(self) -> dict[str, str]:
        eal = [word for card in card_ports.by_dpdk(self) for word in ("-a", card)] or ["--no-pci"]
        eal += mbuf_pages.eal(MEMORY_MIB) if mbuf_pages.small(self.chosen) else []
        return {
            "dpdk-init": "true",
            "dpdk-extra": quoted(" ".join(eal)),
            # Until the endpoints are up, see ``ready``: a poll-mode thread that spins for nobody slows them.
            self._sleep_max: str(SLEEP_UNTIL_READY_US),
            **self._memory(),
            # Of the daemon's main thread, and of all that it starts.
            "dpdk-lcore-mask": hex(1 << (self.plan.switch if self.chosen["main_thread"] == "pmd-cpu" else self.plan.housekeeping)),
            "pmd-cpu-mask": hex(sum(1 << cpu for cpu in self.plan.movers)),
            # Histograms and per-iteration counters for pmd-perf-show.
            "pmd-perf-metrics": "true",
            **FLOW_CACHES[self.chosen["flow_cache"]],
            **({"pmd-rxq-assign": assign} if (assign := self.chosen["rxq_assign"]) in ("roundrobin", "group") else {}),
            **({"pmd-auto-lb": "true"} if self.chosen["auto_lb"] == "on" else {}),
            **({"userspace-tso-enable": "true"} if self.chosen["tso"] == "on" else {}),
        }

    def _memory(self) -> dict[str, str]:
        """How much in hugepages, and on which NUMA nodes where there are two: lists by node."""
        if mbuf_pages.small(self.chosen):
            return {}
        if not (slots := self.plan.slots):
            return {"dpdk-socket-mem": quoted(str(MEMORY_MIB))}
        chosen = slots[self.chosen["memory_node"]].node
        # The far node is also that of DPDK's main thread, which makes the first pool there, before it knows of any guest.
        allowed = {chosen, slots[FAR].node}
        nodes = range(max(slot.node for slot in slots.values()) + 1)
        taken = [NODE_MEMORY_MIB if node == chosen else 0 for node in nodes]
        limits = [NODE_MEMORY_MIB if node in allowed else NO_MEMORY_MIB for node in nodes]
        return {f"dpdk-socket-{what}": quoted(",".join(map(str, mib))) for what, mib in (("mem", taken), ("limit", limits))}

    def add_port(self, name: str, access: str) -> Port:
        server = self.chosen["socket"] == "server"
        socket = f"{RUN}/{name}.sock"
        if self.chosen["port_type"] == "vhost-pmd":
            queues = int(self._queues)
            self.add_device(name, f"net_vhost{len(self._ports)},iface={socket},client={int(not server)},queues={queues}", queues)
        elif server:
            # It chooses the path by itself, out of the port's name.
            socket = f"{RUN}/{name}"
            self._add(name, "type=dpdkvhostuser")
        else:
            self._add(name, f"type=dpdkvhostuserclient options:vhost-server-path={quoted(socket)}")
        return Port(name, access, socket, listener="switch" if server else "endpoint")

    def add_device(self, name: str, device: str, queues: int = 1) -> Port:
        several = ""
        if queues > 1:
            several, self._several[name] = f" options:n_rxq={queues}", queues
        self._add(name, f"type=dpdk options:dpdk-devargs={quoted(device)}{several}", queues)
        return Port(name, "device", device)

    def add_card(self, name: str, number: int = 0) -> Port:
        return card_ports.add(self, name, number)

    def local_port(self) -> Port:
        if self.chosen["local_port"] == "virtio-user":
            # DPDK makes the tap, and the kernel's vhost-net serves it: for it, the switch is a guest.
            self.add_device(LOCAL, f"net_virtio_user0,path={links.VHOST_NET},iface={LOCAL},queues=1,queue_size=1024")
            links.silence(self.host, LOCAL)
            return Port(LOCAL, "internal", LOCAL)
        if self.chosen["local_port"] == "afxdp":
            # Received on the host's own CPU, as it is by default: an isolated one, such as the poll-mode thread's, may receive nothing.
            port = links.add(self.host, LOCAL, "veth", None)
            self._pairs.append(LOCAL)
            links.silence(self.host, port.where)
            # As in OvsUserspace: AF_XDP hands on neither a checksum that is still to be made nor a segment that is still to be cut.
            self.host.run(f"ethtool -K {port.where} tx off")
            self._add(LOCAL, AFXDP)
            return Port(LOCAL, "internal", port.where)
        return super().local_port()

    def _add(self, name: str, settings: str, queues: int | None = None) -> None:
        """``queues``: that it receives by; None: as many as the endpoint's interface has."""
        pinned = f" {self._affinity(len(self._ports), queues or int(self._queues))}" if self.chosen["rxq_assign"] == "pinned" else ""
        self.vsctl(f"add-port {BRIDGE} {name} -- set Interface {name} {settings}{pinned}")
        self._ports.append(name)

    def _affinity(self, port: int, count: int) -> str:
        """The setting by which this port's receive queues are on the poll-mode threads' CPUs in turn, from a CPU on that each port has
        another of."""
        cpus = self.plan.movers
        queues = ",".join(f"{queue}:{cpus[(port + queue) % len(cpus)]}" for queue in range(count))
        return f"other_config:pmd-rxq-affinity={quoted(queues)}"

    def restart(self) -> None:
        super().restart()
        self._schedule()

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        openflow.check(given)
        by_linux = given.get("access") == "vhost-user" and given.get("endpoint", "kernel") == "kernel"
        if given.get("tunnel", tunnel.NONE) != tunnel.NONE and (
            given.get("tso") == "on" or (by_linux and given.get("offloads", "on") == "on")
        ):
            raise messages.tunnel_loses_checksums()
        shares_out = [f"{name}: {given[name]}" for name, usual in SHARING.items() if given.get(name, usual) != usual]
        if shares_out and cls.movers(given) == 1:
            raise messages.nothing_to_share_out(shares_out)

    def ready(self) -> None:
        super().ready()
        self.vsctl(f"set Open_vSwitch . other_config:{self._sleep_max}={self.chosen['pmd_sleep_max']}")
        self._schedule()
        self._check_queues()
        if self.plan.slots:
            self._nodes = self._look_at_nodes()
            dpdk_nodes.check(self._nodes, *(self.plan.slots[self.chosen[option]].node for option in ("pmd_node", "memory_node")))

    def _check_queues(self) -> None:
        """Open vSwitch makes do with fewer where a driver has no more. Raises ``RunFailed``."""
        polled = self.appctl("dpif-netdev/pmd-rxq-show") if self._several else ""
        for name, wanted in self._several.items():
            if (found := len(re.findall(rf"^ *port: {name} +queue-id:", polled, re.MULTILINE))) != wanted:
                raise messages.other_queues(name, found, wanted)

    def settle(self, flows: int) -> None:
        super().settle(flows)
        if flows > 1 and self.chosen["flow_cache"] == "emc":
            self._fill_cache(min(flows, EMC_ENTRIES) * EMC_TRIES)

    def _fill_cache(self, packets: int) -> None:
        """Wait until so many packets more have come, but not for ever: at a low rate that takes as long as it would anywhere."""
        done, patience = self._received() + packets, self.host.patience(FILL_SECONDS)
        while self._received() < done and not patience.over():
            time.sleep(SETTLE_LOOK_S)

    def _received(self) -> int:
        """Packets that its poll-mode threads have received so far."""
        return sum(map(int, RECEIVED.findall(self.appctl("dpif-netdev/pmd-stats-show"))))

    def _schedule(self) -> None:
        """Open vSwitch has no setting for the policy of its poll-mode threads, so they are given it from outside, as an operator would."""
        if (chosen := self.chosen["sched"]) in SCHEDULED:
            if not (polling := self._polling()):
                raise messages.switch_failed(f"sched: {chosen}: it has no poll-mode thread to be given that policy", "")
            self.host.run("set -e; " + "; ".join(f"{SCHEDULED[chosen]} {thread.tid}" for thread in polling))

    def _polling(self) -> list[Thread]:
        return [thread for thread in self.threads() if thread.name.startswith(POLLS)]

    def facts(self) -> dict[str, Any]:
        dpdk = self.vsctl("get Open_vSwitch . dpdk_version").strip('"')
        known = {**super().facts(), "dpdk": dpdk, "sched": self._policies(), **card_ports.facts(self)}
        if self.plan.others:
            known["queues"] = self.appctl("dpif-netdev/pmd-rxq-show").splitlines()
        return {**known, "nodes": self._nodes} if self._nodes else known

    def _policies(self) -> list[str]:
        """Of each poll-mode thread: its name, scheduling policy, real-time priority and niceness."""
        assert self._daemon is not None
        listed = self.host.run(f"ps -L -o comm=,cls=,rtprio=,ni= -p {self._daemon.pid}").stdout
        return [" ".join(line.split()) for line in listed.splitlines() if line.startswith(POLLS)]

    def _look_at_nodes(self) -> dict[str, Any]:
        assert self._daemon is not None
        polls = self.appctl("dpif-netdev/pmd-rxq-show")
        pools = {name: self.appctl(f"netdev-dpdk/get-mempool-info {name}") for name in self._ports}
        devices = {name: self.vsctl(f"--if-exists get Interface {name} status:numa") for name in self._ports}
        return dpdk_nodes.found(polls, pools, devices, numa.mappings(self.host, self._daemon.pid))

    def threads(self) -> list[Thread]:
        # Since Linux 6.4 the worker of vhost-net is a thread of the process that it serves.
        return [replace(one, role="vhost") if VHOST_WORKER.match(one.name) else one for one in super().threads()]

    def stop(self) -> None:
        super().stop()
        links.remove(self.host, self._pairs)


SWITCH = OvsDpdk
