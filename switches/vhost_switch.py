# SPDX-License-Identifier: GPL-2.0-or-later
"""vsprof's own switch (dataplane/): DPDK's librte_vhost as control plane, and a poll-mode thread that counts the cycles of each stage.

One design choice varies at a time: each is an option here. Everything it counts is read through DPDK's telemetry.
"""

import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from vsprof.switches import card_ports, mbuf_pages, messages
from vsprof.switches.base import MOVERS, Port, PortCounters, Switch
from vsprof.terms.placement import CpuPlan, Thread
from vsprof.terms.schema import CARD
from vsprof.testbeds import dpdk_telemetry, pages
from vsprof.testbeds.base import RELEASES, Process, Testbed
from vsprof.testbeds.threads import threads_of

NEVER_S = 1_000_000
"""The most that --age-s takes."""
PROGRAM = "/usr/local/bin/vhost-switch"
"""Where the role vhost_switch installs it."""
MINE = "VSPROF_VHOST_SWITCH"
"""Names a program on this machine to be used instead, for those who work on it."""
PUSHED = "/tmp/vsprof-vhost-switch"
RUN = "/run/vsprof-vhost-switch"
CONTROL = f"{RUN}/control"
PREFIX = "vhost-switch"
"""EAL's --file-prefix, by which its telemetry is found."""
LOCAL = "vsprof0"
"""The host's interface of the local port: a tap."""
READY = "vhost-switch: ready"
WORKERS = ("dpdk-worker", "rte-worker")
"""How the names of DPDK's lcores but the first begin; the second in DPDK 22.11."""
ANY = "any"
START_SECONDS = 30
SMALL_MIB = 256
"""Memory for DPDK in pages of 4 KiB, which it can't take as it needs them: its frames are 40 MiB."""
NEIGHBOUR = "/bin/sh -c 'while :; do :; done'"
"""Computes for ever, and never sleeps."""
PMU_EVENTS = ("cycles", "instructions", "cache-misses", "branch-misses")
"""What is counted in each stage with ``stages: pmu``, by the kernel's generic names: as many as every PMU can count at once."""

# $1: the socket; the rest is one command, answered by one line.
ASK = r"""
import socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.settimeout(20)
    asked.connect(sys.argv[1])
    asked.sendall(" ".join(sys.argv[2:]).encode() + b"\n")
    print(asked.makefile().readline().strip())
"""


class VhostSwitch(Switch):
    words, rank, colour = "vhost-switch", 60, 3
    accesses = ("vhost-user", "virtio-user", CARD)
    takes_devices = takes_cards = True
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "forward": ("switch", "wire"),
        "rings": ("own", "librte"),
        "dequeue": ("copy", "zero-copy"),
        "rx": ("poll", "interrupt", "adaptive"),
        "stages": ("on", "off", "pmu"),
        "socket": ("client", "server"),
        "cpu_sharing": ("none", "shared"),
        "sched": ("other", "fifo"),
        "deepest_idle": (ANY, "C0", "C1", "C3", "C6"),
        "release": RELEASES,
        **mbuf_pages.OPTIONS,
        **MOVERS,
        **card_ports.OPTIONS,
    }
    """``switch_cpus``: so many workers, each on its CPU. ``cpu_sharing``: whether another process keeps the worker's CPU busy all the time;
    of several, the first one's. ``deepest_idle``: which idle state the CPUs of its host take at most."""
    card_options = frozenset(card_ports.OPTIONS)

    def __init__(self, host: Testbed, plan: CpuPlan, options: Mapping[str, str] = {}) -> None:
        super().__init__(host, plan, options)
        if self.chosen["dequeue"] == "zero-copy":
            self.chosen["rings"] = "own"
        self._process: Process | None = None
        self._neighbour: Process | None = None
        self._latency_us: int | None = None
        """That it asks its kernel for, so that CPUs take no deeper idle states."""
        self._started = 0
        self._queues = options.get("queues", "1")
        """Pairs of a port: a queue that it does not have stays full, and its endpoint's frames are lost there."""
        self._ports: dict[str, str] = {}
        """What each port is, as vhost-switch is told, by name."""

    @classmethod
    def check_options(cls, given: Mapping[str, str]) -> None:
        if given.get("dequeue") == "zero-copy" and given.get("rings") == "librte":
            raise messages.zero_copy_needs_own_rings()
        if given.get("card_driver") == card_ports.AF_XDP and given.get("rx", "poll") != "poll":
            raise messages.af_xdp_is_polled(given["rx"])

    def unavailable(self) -> str | None:
        if mine := os.environ.get(MINE):
            return None if Path(mine).is_file() else messages.no_such_file(MINE, mine)
        if why := self.release_lacking():
            return why
        if self.host.run(f"[ -x {PROGRAM} ]", check=False).status != 0:
            return messages.not_installed(PROGRAM)
        deepest = self.chosen["deepest_idle"]
        idle = None if deepest == ANY else self.host.idle_state_lacking(deepest)
        return self.host.hugepages_lacking() or idle or card_ports.lacking(self)

    def start(self) -> None:
        self.host.run(f"rm -rf {RUN} && mkdir -p {RUN}")
        card_ports.bind(self)
        if (deepest := self.chosen["deepest_idle"]) != ANY:
            self._latency_us = self.host.limit_idle_states(deepest)
            # The kernel heeds the wish of a file that is open, for all of its CPUs, whatever became of who opened it.
            self.stands_still = self._latency_us is None
        self._start()

    def _start(self) -> None:
        # A name, and so a log, for each: what the one before it had said would be taken for its own.
        self._started += 1
        self._process = self.host.start(
            f"vhost-switch{self._started}", self.of_release(self.command()), cpus=[self.plan.housekeeping, *self.plan.movers]
        )
        patience = self.host.patience(START_SECONDS)
        while READY not in (log := self._process.log()):
            if not self._process.alive() or patience.over():
                raise messages.switch_failed(f"waited for {READY!r}", log[-1500:])
            time.sleep(0.02)
        # Before it has ports, whose guests' memory it shares.
        if mbuf_pages.small(self.chosen) and not self._ports:
            pages.check_small(self.host, self._process.pid, self.words)

    def ready(self) -> None:
        if self.chosen["cpu_sharing"] == "shared":
            self._neighbour = self.host.start("neighbour", NEIGHBOUR, cpus=[self.plan.switch])

    def can_not_restart(self) -> str | None:
        return None

    def kill(self) -> None:
        assert self._process is not None
        self.host.run(f"kill -KILL {self._process.pid}")
        self._process.stop()

    def restart(self) -> None:
        self._start()

    def command(self) -> str:
        """The command line: EAL's options, then its own. The first lcore only controls; the others move frames."""
        lcores = ",".join(f"{number}@{cpu}" for number, cpu in enumerate((self.plan.housekeeping, *self.plan.movers)))
        # Without files that outlive it; EAL's `--in-memory` is for hugepages alone.
        memory = [*mbuf_pages.eal(SMALL_MIB), "--no-shconf"] if mbuf_pages.small(self.chosen) else ["--in-memory"]
        eal = ["--lcores", lcores, f"--file-prefix={PREFIX}", *memory]
        eal += [word for card in card_ports.by_dpdk(self) for word in ("-a", card)] or ["--no-pci"]
        own = [f"--{name}={self.chosen[name]}" for name in ("forward", "rings", "dequeue", "rx", "stages")]
        # Any that there are: it is started again.
        ports = [f"--port={name},{what}" for name, what in self._ports.items()]
        # The lowest of the real-time priorities is above all that have none.
        own.append("--sched=fifo:1" if self.chosen["sched"] == "fifo" else "--sched=other")
        # A receiver that never sends is told once. While others have their turn, time passes for its address, too.
        own.append(f"--age-s={NEVER_S}")
        own += [] if self._latency_us is None else [f"--cpu-latency-us={self._latency_us}"]
        own += [f"--pmu-events={','.join(PMU_EVENTS)}"] if self.chosen["stages"] == "pmu" else []
        return shlex.join([self._program(), *eal, "--", *own, *ports, f"--control={CONTROL}"])

    def add_port(self, name: str, access: str) -> Port:
        socket = f"{RUN}/{name}.sock"
        server = self.chosen["socket"] == "server"
        self._add(name, f"path={socket},queues={self._queues}{',server=1' if server else ''}")
        return Port(name, access, socket, listener="switch" if server else "endpoint")

    def add_device(self, name: str, device: str, queues: int = 1) -> Port:
        """Make a port of one of DPDK's own devices, such as ``net_null0,size=64``."""
        self._add(name, f"{f'queues={queues},' if queues > 1 else ''}dev={device}")
        return Port(name, "device", device)

    def add_card(self, name: str, number: int = 0) -> Port:
        return card_ports.add(self, name, number)

    def join(self, one: Port, other: Port) -> None:
        # Wired ports are paired as they are added.
        if self.chosen["forward"] != "wire":
            raise messages.joins_by_wire()

    def local_port(self) -> Port:
        self.add_device(LOCAL, f"net_tap0,iface={LOCAL}")
        return Port(LOCAL, "internal", LOCAL)

    def _add(self, name: str, what: str) -> None:
        self.tell(f"add-port {name},{what}")
        self._ports[name] = what

    def learn(self, port: Port, mac: str) -> None:
        # A wire knows no addresses.
        if self.chosen["forward"] == "switch":
            self.tell(f"learn {port.name} {mac}")

    def tell(self, command: str) -> str:
        """Give it a command and return its answer. Raises ``RunFailed`` with its own words when it refuses."""
        answer = self.host.run(shlex.join(["python3", "-S", "-c", ASK, CONTROL, *command.split()])).stdout.strip()
        if answer.split(maxsplit=1)[:1] != ["ok"]:
            assert self._process is not None
            raise messages.switch_failed(f"{command}: {answer or 'no answer'}", self._process.log()[-1500:])
        return answer

    def port_counters(self) -> str:
        return dpdk_telemetry.command(PREFIX, [f"/vhost_switch/port,{name}" for name in self._ports])

    @classmethod
    def parse_port_counters(cls, text: str) -> dict[str, PortCounters]:
        """Read telemetry's answers: rx is what came from the endpoint. Raises ``ValueError`` on anything else."""
        try:
            return {
                found["name"]: PortCounters(*(int(found[f"{way}_{what}"]) for way in ("rx", "tx") for what in ("packets", "bytes")))
                for _, question, _, found in dpdk_telemetry.answers(text)
                if question == "/vhost_switch/port" and found
            }
        except (KeyError, TypeError) as error:
            raise ValueError(f"not vhost-switch's telemetry: {error!r}") from error

    def threads(self) -> list[Thread]:
        assert self._process is not None
        return [Thread(name, tid, _role(name), cpus) for tid, name, cpus in threads_of(self.host, self._process.pid)]

    def processes(self) -> list[Process]:
        return [process for process in (self._process, self._neighbour) if process is not None]

    def facts(self) -> dict[str, Any]:
        """DPDK's version, the settings as vhost-switch itself tells them, and each port as it was negotiated."""
        asked = ["/info", "/vhost_switch/settings", *(f"/vhost_switch/port,{name}" for name in self._ports)]
        said = [
            (question, found)
            for _, question, _, found in dpdk_telemetry.answers(self.host.run(dpdk_telemetry.command(PREFIX, asked)).stdout)
        ]
        by_question = dict(said)
        ports = {
            found["name"]: {key: found.get(key) for key in ("kind", "features", "rx_path", "numa_node")}
            for question, found in said
            if question == "/vhost_switch/port"
        }
        own = {"version": [by_question["/info"]["version"]], "settings": by_question["/vhost_switch/settings"], "ports": ports}
        return {**own, **card_ports.facts(self)}

    def stop(self) -> None:
        for process in self.processes():
            process.stop()
        self._process = self._neighbour = None
        self._ports.clear()
        self.host.run(f"rm -rf {RUN}", check=False)

    def _program(self) -> str:
        if not (mine := os.environ.get(MINE)):
            return PROGRAM
        self.host.push(Path(mine).read_bytes(), PUSHED)
        self.host.run(f"chmod 755 {PUSHED}")
        return PUSHED


def _role(thread: str) -> str:
    """Its workers move frames; the main thread and DPDK's own threads control, and answer questions."""
    return "switch" if thread.startswith(WORKERS) else "host-other"


SWITCH = VhostSwitch
