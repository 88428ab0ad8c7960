# SPDX-License-Identifier: GPL-2.0-or-later
"""A virtual machine with the project's guest image, and its kernel's own network stack.

It boots without an interface, and stands still then: a testbed may keep it so for other runs. ``plug`` lets it go on, with its interface.
"""

import base64
import contextlib
import hashlib
import itertools
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from vsprof.switches.base import Port
from vsprof.terms import errors
from vsprof.terms.placement import Thread
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds import numa, pages
from vsprof.testbeds.base import Process, Testbed
from vsprof.testbeds.qmp import Monitor, agent_answers
from vsprof.testbeds.threads import threads_of
from vsprof.workloads import messages
from vsprof.workloads.endpoints import stuck, virtio_features
from vsprof.workloads.endpoints.base import RUN, STACK_OPTIONS, Counters, Endpoint, Flood, Frames, Job
from vsprof.workloads.endpoints.pktgen import Pktgen

GUEST = "/var/lib/vsprof/guest"
"""Where the role guest_image puts the guest's kernel and initramfs."""
ACCESSES = ("vhost-net", "virtio-net", "vhost-user")
"""How a virtual machine reaches a switch."""
ENDPOINTS = ("kernel", "testpmd", "probe")
"""Who serves a virtual machine's interface: its kernel, or one of two DPDK programs. Some topologies have others."""
CPUS = {"kvm": "host", "tcg": "max"}
"""By accelerator, which processor the guest sees: the host's own, or all that the emulator knows."""
TX_FRAMES = {"off": 0, "on": 1}
"""ethtool's tx-frames of a virtio interface, by ``tx_interrupts``. With 0 its driver frees frames when it sends the next ones."""
FORWARD = {
    True: "tc qdisc add dev {0} clsact && tc filter add dev {0} ingress matchall action mirred egress redirect dev {0}",
    False: "tc qdisc del dev {0} clsact",
}
"""The least work by which a kernel sends a frame back: none of its network stack but the queueing discipline sees it."""
WORKER = "vhost-"
GUEST_MEMORY_MIB = 256
LEAST_PROGRESS = 0.02
"""The part of the time that a booting guest's CPU runs at least. Four emulated CPUs on one real one leave each a fourth."""
PLUG_LOOKS = 400
"""How often a guest looks whether an interface is there, 50 ms apart by its own clock."""
SHORTEST_POLL_S, POLL_S = 0.005, 0.1
"""Between two looks whether a command in a guest ended. Most take some hundredths of a second: so each pause is twice the one before, up to
the longest."""
CONNECT_SECONDS = 60
"""To QEMU's monitor."""
LOOK_S = 60
"""How often a guest is looked at that does not answer, or whose command does not end."""
MOST_LOOKS = 15
"""The most looks: a guest whose CPU runs and that has not answered by then is in a loop."""


class Vm(Endpoint):
    """A guest with one interface on a switch's port, which its kernel serves."""

    interface = "eth0"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "endpoint": ENDPOINTS,
        "accel": tuple(CPUS),
        "tx_interrupts": tuple(TX_FRAMES),
        "guest_cpu": ("own", "switch"),
        pages.GUEST: pages.SIZES,
        **virtio_features.options("mrg_rxbuf", "in_order", "packed", "indirect_desc", "event_idx"),
        **STACK_OPTIONS,
    }
    """``endpoint``: see ``ENDPOINTS``. ``accel``: who runs the guest's code. ``tcg``: QEMU emulates it, so that it runs anywhere, slowly;
    its virtio device is the same.
    ``tx_interrupts``: whether its driver wants to be interrupted when frames that it sent were taken, as Linux's does from 5.4 on. Where
    interrupts are not posted, each is an exit of the guest that sends: docs/experiments.md has what that costs.
    ``guest_cpu``: whether its vCPU has a CPU of its own, or is on the one of whatever moves its frames.
    ``guest_pages``: how large the pages are that the host gives it as memory.
    The others are its device's features, see ``workloads.endpoints.virtio_features``."""
    vcpus: ClassVar[int] = 1
    """Of several, the last serves the interface."""
    slots: ClassVar[Sequence[str]] = ("slot1",)
    """Where its interfaces are plugged in, in the order of their names."""

    def __init__(
        self,
        host: Testbed,
        number: int,
        *,
        vcpu: int,
        backend_cpus: Sequence[int],
        housekeeping_cpu: int,
        options: Mapping[str, str] = {},
        node: int | None = None,
    ) -> None:
        """``vcpu``: the CPU of the thread of the vCPU that serves the interface. ``backend_cpus``: of whatever moves frames for it on the
        host's side (vhost worker, or QEMU's main loop with access ``virtio-net``); of several vhost workers each has the next.
        ``housekeeping_cpu``: of QEMU's other threads. ``options``: of a case. ``node``: the NUMA node that its memory must be on, where the
        host has several."""
        self.name = f"guest{number}"
        self.address = f"10.77.0.{number}"
        self.mac = f"52:54:00:76:67:{number:02x}"
        self._host = host
        self._vcpu, self._backend_cpus, self._housekeeping_cpu, self._node = vcpu, tuple(backend_cpus), housekeeping_cpu, node
        self.chosen = {name: options.get(name, values[0]) for name, values in self.options.items()}
        """The value of each of its options."""
        self._moved_by_qemu = self._has_vhost_worker = False
        self._pages: dict[int, int] = {}
        self._process: Process | None = None
        self._agent: Monitor | None = None
        self._vcpu_tids: list[int] = []
        self._negotiated: frozenset[str] = frozenset()

    def command(self) -> str:
        """The command line of its QEMU, on which all depends that it is before ``plug``."""
        return shlex.join(self._command())

    def start(self) -> None:
        """Start QEMU; the guest boots on its own, on its own CPU from the start."""
        self._process = self._host.start(self.name, self.command(), cpus=[self._housekeeping_cpu])
        self._await_socket("qmp")
        with self._monitor() as monitor:
            self._vcpu_tids = vcpus_of(monitor)
        self._pin()

    def stand_still(self) -> None:
        """Wait until the guest agent answers, and stop it there.

        Raises ``RunFailed`` with QEMU's and the guest's last words if it does not.
        """
        self._await_agent()
        self.close()
        with self._monitor() as monitor:
            monitor.execute("stop")

    def find(self, process: Callable[[str], Process]) -> None:
        """It was booted before, by another run: see ``Testbed.prepared``."""
        self._process = process(self.name)

    def plug(self, *ports: Port) -> None:
        """Let it go on, with an interface on each port. See ``wait`` for when it is ready. Raises ``RunFailed`` where QEMU refuses."""
        self.port = ports[0]
        self._moved_by_qemu, self._has_vhost_worker = self.port.access == "virtio-net", self.port.access == "vhost-net"
        with self._monitor() as monitor:
            self._vcpu_tids = vcpus_of(monitor)
            monitor.execute("cont")
            for command in self._plugs(ports):
                # It also says that it waits for the switch.
                if "Error:" in (said := monitor.execute("human-monitor-command", **{"command-line": command})):
                    raise messages.endpoint_failed(self.name, f"its QEMU refused {command}", said)

    def settle(self) -> None:
        """Wait until it has its interfaces, and pin every thread.

        Raises ``RunFailed`` with QEMU's and the guest's last words where that fails.
        """
        self._await_agent()
        self._await_interfaces()
        # The vhost worker came with the guest's driver. What booted it before may have had other CPUs.
        self._pin()
        self._check_node()
        if self.chosen[pages.GUEST] == pages.SMALL:
            assert self._process is not None
            pages.check_small(self._host, self._process.pid, self.name)

    def begin(self) -> None:
        """Start what serves the interfaces, where that is a program, and do not wait for it."""

    def features(self) -> dict[str, str]:
        """What is asked of its device, by feature: ``on`` or ``off``."""
        return {name: self.chosen[name] for name in virtio_features.FEATURES if name in self.chosen}

    def finish(self) -> None:
        """Set the interfaces up. Raises ``RunFailed`` where that fails, or it has not what was asked for."""
        wanted = self.chosen["tx_interrupts"]
        # The driver changes it only while the interface is down.
        self.run(f"ethtool -C {self.interface} tx-frames {TX_FRAMES[wanted]}", may_fail=True)
        if f"tx-frames:\t{TX_FRAMES[wanted]}\n" not in self.run(f"ethtool -c {self.interface}"):
            raise messages.tx_interrupts_stay(self.name, wanted)
        self._check_features(virtio_features.of_kernel(self.run(f"cat /sys/class/net/{self.interface}/device/features")))
        self.run(f"ip addr add {self.address}/24 dev {self.interface}; ip link set {self.interface} up")

    def forward(self, on: bool) -> str:
        """Let its kernel send everything back that comes, as it came; or let it stop. What was said."""
        return self.run(FORWARD[on].format(self.interface))

    def _check_features(self, negotiated: frozenset[str]) -> None:
        """Raise ``RunFailed`` where switch, device and driver did not agree to what was asked for."""
        self._negotiated = negotiated
        if refused := virtio_features.refused(self.features(), negotiated):
            raise messages.not_negotiated(self.name, {name: self.features()[name] for name in refused})

    def goes_on(self, least: float = stuck.LEAST_RUN_S) -> stuck.Progress:
        """However slow the host is, a guest is waited for as long as its CPU runs. That of one whose timer is dead does not."""
        return stuck.Progress(self._ran_seconds, MOST_LOOKS, least)

    def _await_agent(self) -> None:
        goes_on, waited = self.goes_on(LEAST_PROGRESS * LOOK_S), 0
        while True:
            self._agent = Monitor(self._host.socket(self._socket("agent")), agent=True, who=f"{self.name}'s guest agent")
            if agent_answers(self._agent, LOOK_S):
                return
            self._agent.close()
            waited += LOOK_S
            if not goes_on():
                break
        console = self._host.run(f"tail -n 10 {RUN}/{self.name}.console", check=False).stdout
        why = f"its guest agent did not answer in {waited} s: {self.waits_for()}"
        raise messages.endpoint_failed(self.name, why, self._last_words() + console)

    def _ran_seconds(self) -> float:
        """Of the first, on which a guest boots and its agent runs."""
        return 0.0 if self._process is None else stuck.ran_seconds(self._host, self._process.pid, self._vcpu_tids[0])

    def waits_for(self) -> str:
        """What it does now, as far as its host can see."""
        assert self._process is not None
        try:
            return stuck.processor(self._host, self._process.pid, self._vcpu_tids[0], self._host.socket(self._socket("qmp")))
        except errors.RunFailed as error:
            # It is asked to explain another error, which must not be lost.
            return f"its host does not say why ({error})"

    def spawn(self, command: str, *, may_fail: bool = False) -> Job:
        pid = self.ask("guest-exec", path="/bin/sh", arg=["-c", command], **{"capture-output": True})["pid"]
        return GuestJob(self, pid, command, may_fail)

    def ask(self, command: str, **arguments: Any) -> Any:
        """Ask its agent. Raises ``RunFailed`` when it refuses, or does not answer and the guest does not go on."""
        return self._connected().execute(command, seconds=LOOK_S, goes_on=self.goes_on(), **arguments)

    def programs(self) -> str:
        """See ``stuck.programs``."""
        return stuck.programs(self._connected())

    def flood(self, frames: Frames) -> Flood:
        return Pktgen(self, frames)

    def can_not_burst(self) -> str | None:
        return None

    def counters(self) -> Counters:
        interfaces, clock = self.ask("guest-network-get-interfaces"), self.ask("guest-get-time")
        found = next((i["statistics"] for i in interfaces if i["name"] == self.interface), None)
        if found is None:
            raise messages.endpoint_failed(self.name, f"it has no {self.interface}", self._last_words())
        return Counters(clock / 1e9, found["rx-packets"], found["rx-bytes"], found["tx-packets"], found["tx-bytes"])

    def facts(self) -> dict[str, Any]:
        """Which of ``virtio_features.FEATURES`` its driver has; whether it is interrupted for frames that it sent; and where its memory is,
        on a host of several NUMA nodes: pages of 2 MiB that it has touched, by node."""
        memory = {} if self._node is None else {"node": self._node, "hugepages": self._pages}
        interrupts = {name: self.chosen[name] for name in ("tx_interrupts",) if name in self.chosen}
        return {**interrupts, "features": sorted(self._negotiated), **memory}

    def threads(self) -> list[Thread]:
        assert self._process is not None
        return [Thread(f"{self.name}:{name}", tid, self._role(name, tid), cpus) for tid, name, cpus in self._list_threads()]

    def processes(self) -> list[Process]:
        return [self._process] if self._process is not None else []

    def close(self) -> None:
        if self._agent is not None:
            self._agent.close()
        self._agent = None

    def stop(self) -> None:
        self.close()
        if self._process is not None:
            self._process.stop()
        self._process = None

    def _kernel_arguments(self) -> str:
        return "console=ttyS0 quiet mitigations=off nokaslr audit=0 net.ifnames=0 ipv6.disable=1 tsc=reliable no_timer_check nowatchdog"

    def _command(self) -> list[str]:
        accel = self.chosen["accel"]
        return [
            "/usr/bin/qemu-system-x86_64", "-name", f"{self.name},debug-threads=on", "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot",
            # Without an HPET: QEMU's would go on after the guest's kernel has taken another timer, and wake QEMU 250 times a second.
            "-machine", "q35,hpet=off,memory-backend=memory", "-accel", accel, "-cpu", CPUS[accel],
            "-smp", str(self.vcpus), "-m", f"{GUEST_MEMORY_MIB}M",
            "-object", f"{self._memory()},id=memory,size={GUEST_MEMORY_MIB}M",
            "-kernel", f"{GUEST}/vmlinux", "-initrd", f"{GUEST}/guest.cpio", "-append", self._kernel_arguments(),
            "-serial", f"file:{RUN}/{self.name}.console",
            "-qmp", f"unix:{self._socket('qmp')},server=on,wait=off",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self._socket('agent')},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=agent",
            *self._slots(),
        ]  # fmt: skip

    def _memory(self) -> str:
        # Shared, because a vhost-user switch reads and writes it; by default in hugepages for every access, so that TLB reach is the same.
        small = self.chosen[pages.GUEST] == pages.SMALL
        return f"memory-backend-{'memfd' if small else 'file,mem-path=/dev/hugepages'},share=on{self._binding()}"

    def _slots(self) -> list[str]:
        ports = [f"pcie-root-port,id={slot},chassis={number},slot={number}" for number, slot in enumerate(self.slots, start=1)]
        return [word for port in ports for word in ("-device", port)]

    def _binding(self) -> str:
        # Without it a page is on the node of whoever touches it first: of the kernel and the initramfs that is QEMU's main thread.
        return "" if self._node is None else f",host-nodes={self._node},policy=bind"

    def _check_node(self) -> None:
        """Raise ``RunFailed`` where its memory is not, or not only, on its node."""
        if self._node is not None:
            assert self._process is not None
            self._pages = numa.by_node(numa.mappings(self._host, self._process.pid))
            if self._pages.keys() != {self._node}:
                raise testbeds_messages.elsewhere(f"{self.name}'s memory", self._node, testbeds_messages.pages(self._pages))

    def interfaces(self) -> Sequence[tuple[str, str]]:
        """Name and MAC address of each."""
        return ((self.interface, self.mac),)

    def _await_interfaces(self) -> None:
        """Wait until all are there, by their addresses: where two are plugged in, the kernel may find, and name, the second one first."""
        seen = {name: self._interface_of(mac) for name, mac in self.interfaces()}
        if other := {now: name for name, now in seen.items() if now != name}:
            away = [f"ip link set {now} name to-{name}" for now, name in other.items()]
            self.run("; ".join(["set -e", *away, *(f"ip link set to-{name} name {name}" for name in other.values())]))

    def _interface_of(self, mac: str) -> str:
        looks = f"for i in $(seq {PLUG_LOOKS}); do grep -lx {mac} /sys/class/net/*/address && exit; sleep 0.05; done; true"
        if not (path := self.run(looks, seconds=LOOK_S).strip()):
            raise messages.endpoint_failed(self.name, f"no interface of it has the address {mac}", "")
        return path.split("/")[4]

    def _plugs(self, ports: Sequence[Port]) -> Iterator[str]:
        """The commands for QEMU's monitor that give it an interface on each port."""
        for slot, port, (_, mac) in zip(self.slots, ports, self.interfaces(), strict=True):
            yield from self._plug(slot, port, mac)

    def _plug(self, slot: str, port: Port, mac: str) -> Iterator[str]:
        name, queues = f"net-{slot}", int(self.chosen.get("queues", "1"))
        if port.access == "vhost-user":
            way = "server=on,wait=off" if port.listener == "endpoint" else "reconnect-ms=500"
            yield f"chardev-add socket,id={name}-switch,path={port.where},{way}"
            yield f"netdev_add vhost-user,id={name},chardev={name}-switch,queues={queues}"
        else:
            vhost = "on" if port.access == "vhost-net" else "off"
            several = f",queues={queues}" if queues > 1 else ""
            yield f"netdev_add tap,id={name},ifname={port.where},script=no,downscript=no,vhost={vhost}{several}"
        # An interrupt for each ring, one for changed settings, and one for the control queue.
        many = ["mq=on", f"vectors={2 * queues + 2}"] if queues > 1 else []
        # No boot ROM: nobody boots from it.
        properties = [f"virtio-net-pci,bus={slot},netdev={name},mac={mac},romfile="]
        yield "device_add " + ",".join([*properties, *virtio_features.device(self.features()), *many])

    def _await_socket(self, kind: str) -> None:
        waited = self._host.run(f"for i in $(seq 200); do [ -S {self._socket(kind)} ] && exit 0; sleep 0.05; done; exit 1", check=False)
        if waited.status != 0:
            raise messages.endpoint_failed(self.name, "its QEMU did not start", self._last_words())

    @contextlib.contextmanager
    def _monitor(self) -> Iterator[Monitor]:
        monitor = Monitor(self._host.socket(self._socket("qmp")), patience=self._host.patience)
        try:
            patience = self._host.patience(CONNECT_SECONDS)
            # On a loaded machine one try may not be enough. A QEMU that ended is not asked again.
            while not monitor.connect():
                if patience.over() or self._process is None or not self._process.alive():
                    raise messages.endpoint_failed(self.name, "its QEMU's monitor does not answer", self._last_words())
            yield monitor
        finally:
            monitor.close()

    def _pin(self) -> None:
        listed = self._list_threads()
        wanted = self._cpus({tid: name for tid, name, _ in listed})
        misplaced = [(tid, wanted[tid]) for tid, _, cpus in listed if cpus != (wanted[tid],)]
        # A thread of QEMU's that ended meanwhile needs no place.
        self._host.run("; ".join(f"taskset -cp {cpu} {tid} >/dev/null" for tid, cpu in misplaced) or "true", check=False)

    def _list_threads(self) -> list[tuple[int, str, tuple[int, ...]]]:
        assert self._process is not None
        found = threads_of(self._host, pid := self._process.pid)
        if self._has_vhost_worker and not any(name.startswith(WORKER) for _, name, _ in found):
            # Before Linux 6.4 it is a process of the kernel's.
            for worker in self._host.run(f"pgrep -x {WORKER}{pid}", check=False).stdout.split():
                found += threads_of(self._host, int(worker))
        return found

    def _role(self, name: str, tid: int) -> str:
        if tid == self._vcpu_tids[-1]:
            return "guest"
        return "vhost" if self._moves_frames(name, tid) else "host-other"

    def _cpus(self, threads: Mapping[int, str]) -> dict[int, int]:
        """Where each of its threads belongs; ``threads``: their names."""
        found = dict.fromkeys(threads, self._housekeeping_cpu)
        moving = sorted(tid for tid, name in threads.items() if self._moves_frames(name, tid))
        found.update(zip(moving, itertools.cycle(self._backend_cpus), strict=False))
        return {**found, self._vcpu_tids[-1]: self._vcpu}

    def _moves_frames(self, name: str, tid: int) -> bool:
        """A vhost worker is named vhost-<pid of its QEMU>; virtio-net is served by QEMU's main loop."""
        assert self._process is not None
        return name.startswith(WORKER) or (self._moved_by_qemu and tid == self._process.pid)

    def _socket(self, kind: str) -> str:
        return f"{RUN}/{self.name}.{kind}"

    def _connected(self) -> Monitor:
        if self._agent is None:
            raise messages.endpoint_failed(self.name, "it is not running", "")
        return self._agent

    def _last_words(self) -> str:
        return self._process.log() if self._process is not None else ""


class GuestJob(Job):
    """A command in a guest, followed through its agent."""

    def __init__(self, vm: Vm, pid: int, command: str, may_fail: bool) -> None:
        self._vm, self._pid, self._command, self._may_fail = vm, pid, command, may_fail
        self._status: dict[str, object] | None = None

    def finished(self) -> bool:
        if self._status is None:
            # The agent forgets a process once it has told its end, so that answer is kept.
            status = self._vm.ask("guest-exec-status", pid=self._pid)
            self._status = status if status["exited"] else None
        return self._status is not None

    def result(self, seconds: float) -> str:
        began, goes_on, patience = time.monotonic(), self._vm.goes_on(), min(seconds, LOOK_S)
        look, pause = began + patience, SHORTEST_POLL_S
        while not self.finished():
            if (now := time.monotonic()) > look:
                if not goes_on():
                    why = f"{self._vm.waits_for()}; {self._vm.programs()}"
                    raise messages.endpoint_failed(self._vm.name, f"no end after {now - began:.0f} s: {self._command}: {why}", "")
                look = now + patience
            time.sleep(pause)
            pause = min(2 * pause, POLL_S)
        assert self._status is not None
        output, words = (_decoded(self._status.get(key)) for key in ("out-data", "err-data"))
        if self._status.get("exitcode", 0) != 0 and not self._may_fail:
            raise messages.endpoint_failed(self._vm.name, f"exit status {self._status.get('exitcode')}: {self._command}", words or output)
        return output


def _decoded(data: object) -> str:
    return base64.b64decode(data).decode(errors="replace") if isinstance(data, str) else ""


def vcpus_of(monitor: Monitor) -> list[int]:
    """The threads that run a guest's CPUs, in their order. Only QEMU knows them for sure."""
    return [int(cpu["thread-id"]) for cpu in sorted(monitor.execute("query-cpus-fast"), key=lambda cpu: cpu["cpu-index"])]


def boot_all(host: Testbed, vms: Sequence[Vm]) -> None:
    """Boot them, or find them where ``host`` kept them from before. They stand still then."""

    def boot() -> None:
        for vm in vms:
            vm.start()
        for vm in vms:
            vm.stand_still()

    # What they are then depends on how they were booted, too.
    how = "\n".join([Path(__file__).read_text(), *(vm.command() for vm in vms)])
    if process := host.prepared(f"vms-{hashlib.sha256(how.encode()).hexdigest()[:8]}", boot):
        for vm in vms:
            vm.find(process)


def plug_all(vms: Sequence[Vm], ports: Sequence[Port]) -> None:
    """Let them go on, each with its share of ``ports``. Each step for all, so that what one waits for the others do meanwhile."""
    each = len(ports) // len(vms)
    for number, vm in enumerate(vms):
        vm.plug(*ports[number * each : (number + 1) * each])
    for vm in vms:
        vm.settle()
    for vm in vms:
        vm.begin()
    for vm in vms:
        vm.finish()
