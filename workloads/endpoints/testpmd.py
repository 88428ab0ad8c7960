# SPDX-License-Identifier: GPL-2.0-or-later
"""DPDK's testpmd as a sender: it plays prepared frames over and over, as fast as its port takes them.

The frames come from a file (net_pcap, read once into memory), so that a flood is one way only, has as many flows as asked,
and is sent by the loop of testpmd that is known from everywhere.
"""

import shlex
import struct
import time
from collections.abc import Sequence
from ipaddress import IPv4Address

from vsprof.terms.placement import Thread
from vsprof.testbeds.base import Process, Testbed
from vsprof.testbeds.threads import threads_of
from vsprof.workloads import messages
from vsprof.workloads.endpoints import stuck
from vsprof.workloads.endpoints.base import RUN, Flood, Frames

PROGRAM = "/var/lib/vsprof/guest/dpdk-testpmd"
"""Where the role guest_image puts it."""
MEMORY_MIB = 256
START_SECONDS = 30
"""To what it is waited for, or to the next look whether it goes on."""
MOST_LOOKS = 10
"""The most looks: one that runs on for so long is in a loop."""
MOST_FLOWS = 60_000
"""In a file: all its frames are in the program's memory."""
SMALLEST_FILE = 64
"""Frames in a file at least: a burst is 32, and a ring of one frame would hand out the same one 32 times."""


class Testpmd:
    """A testpmd with ``devices`` as its ports, in their order; ``cpus``: one forwarding thread for each, a share of the streams for each.

    It is told what to do through its standard input, a FIFO that stays open.
    """

    __test__ = False

    def __init__(
        self,
        host: Testbed,
        name: str,
        devices: Sequence[str],
        cpus: Sequence[int],
        *,
        within: str = "",
        hugepages: bool = True,
        forward: str = "io",
        topology: str = "paired",
        more: Sequence[str] = (),
        cards: Sequence[str] = (),
        own: Sequence[str] = (),
    ) -> None:
        """``forward`` and ``topology``: testpmd's own words for what it does with a frame, and which port it goes out of; ``more``:
        options of EAL, ``own``: of testpmd. ``cards``: network cards that are ports, too, by their PCI addresses."""
        self._host, self.name = host, name
        self._input = f"{RUN}/{name}.in"
        # The first lcore only waits. It needs a number of its own even on a CPU that others forward on.
        lcores = ",".join(f"{number}@{cpu}" for number, cpu in enumerate((cpus[0], *cpus)))
        memory = ["--in-memory", "--single-file-segments"] if hugepages else ["--no-huge", "--no-shconf"]
        allowed = [word for card in cards for word in ("-a", card)] or ["--no-pci"]
        words = [
            PROGRAM, *memory, "-m", str(MEMORY_MIB), *allowed, f"--file-prefix={name}", "--lcores", lcores,
            *(f"--vdev={device}" for device in devices), *more,
            "--", "--interactive", f"--forward-mode={forward}", f"--port-topology={topology}", f"--nb-cores={len(cpus)}", "--no-mlockall",
            "--total-num-mbufs=32768", "--txd=1024", "--rxd=1024", *own,
        ]  # fmt: skip
        host.run(f"rm -f {self._input} && mkfifo {self._input}")
        # Opened to be written as well: else testpmd would see the end of its input after the first command.
        shell = f"exec {within} {shlex.join(words)} <> {self._input}"
        self._process: Process = host.start(name, shlex.join(["/bin/sh", "-c", shell]), cpus=sorted(set(cpus)))
        try:
            self._await("testpmd> ")
        except BaseException:
            # Nobody stops what was never made.
            self.stop()
            raise

    def tell(self, *commands: str) -> str:
        """Give it commands, wait until it is through with them, and return what it said. Raises ``RunFailed`` if it ends instead."""
        # It knows neither mark, and says so: what lies between is the commands', and the second shows that all before it were done.
        begin, end = (f"{mark}{time.monotonic_ns()}" for mark in ("begin", "end"))
        self._host.run(f"printf '%s\\n' {shlex.join([begin, *commands, end])} > {self._input}")
        self._await(end)
        return self._process.log().rpartition(begin)[2]

    def log(self) -> str:
        return self._process.log()

    def threads(self) -> list[Thread]:
        found = threads_of(self._host, self._process.pid)
        return [Thread(f"{self.name}:{name}", tid, role_of(name), cpus) for tid, name, cpus in found]

    def processes(self) -> list[Process]:
        return [self._process]

    def stop(self) -> None:
        self._process.stop()
        self._host.run(f"rm -f {self._input}", check=False)

    def _await(self, text: str) -> None:
        pid = self._process.pid
        patience, goes_on = self._host.patience(START_SECONDS), stuck.Progress(lambda: stuck.ran_seconds(self._host, pid, pid), MOST_LOOKS)
        while text not in (log := self._process.log()):
            ended = not self._process.alive()
            if patience.over() and not ended:
                # Its first thread does all but forwarding. While that runs, a slow server or emulator is at work.
                ended, patience = not goes_on(), self._host.patience(START_SECONDS)
            if ended:
                raise messages.endpoint_failed(self.name, f"testpmd did not get to {text.strip()!r}", log[-1500:])
            time.sleep(0.02)


class PortFlood(Flood):
    """A flood out of port ``port`` of a testpmd with ``ports`` ports, beside which it serves all others."""

    def __init__(self, host: Testbed, testpmd: Testpmd, port: int, ports: int, frames: Frames) -> None:
        self._host, self._testpmd, self._port, self._ports, self._frames = host, testpmd, port, ports, frames
        self._running = False

    def prepare(self) -> None:
        path = f"{RUN}/{self._testpmd.name}.pcap"
        self._host.push(pcap(self._frames), path)
        source = self._ports
        others = [str(port) for port in range(self._ports) if port != self._port]
        said = self._testpmd.tell(
            f"port attach net_pcap0,rx_pcap={path},infinite_rx=1",
            f"port start {source}",
            # Neighbours in this list are a pair: what comes from the file goes out of our port.
            f"set portlist {','.join([str(source), str(self._port), *others])}",
        )
        if f"Port {source} is attached" not in said:
            raise messages.endpoint_failed(self._testpmd.name, "testpmd did not take the file of frames", said)

    def start(self) -> None:
        self._testpmd.tell("start")
        self._running = True

    def ended(self) -> str | None:
        return None if all(process.alive() for process in self._testpmd.processes()) else self._testpmd.log()

    def stop(self) -> dict[str, str]:
        self._running = False
        return {"testpmd.txt": self._testpmd.tell("stop")}

    def remove(self) -> None:
        """Take the file's port away again, so that another flood can bring its own."""
        if self._running:
            self.stop()
        source = self._ports
        self._testpmd.tell(f"port stop {source}", f"port detach {source}")


class PacketSocketFlood(Flood):
    """A flood through a packet socket (AF_PACKET) of an interface in a network namespace: needs neither pktgen nor hugepages."""

    def __init__(self, host: Testbed, name: str, namespace: str, interface: str, frames: Frames, cpu: int) -> None:
        """``name``: of its process, which no other on the host may have had."""
        self._host, self._name, self._namespace, self._interface, self._frames, self._cpu = host, name, namespace, interface, frames, cpu
        self._testpmd: Testpmd | None = None

    def prepare(self) -> None:
        path = f"{RUN}/{self._name}.pcap"
        self._host.push(pcap(self._frames), path)
        devices = [f"net_pcap0,rx_pcap={path},infinite_rx=1", f"net_af_packet0,iface={self._interface},qdisc_bypass=1"]
        within = f"ip netns exec {self._namespace}"
        self._testpmd = Testpmd(self._host, self._name, devices, [self._cpu], within=within, hugepages=False)

    def start(self) -> None:
        self._running().tell("start")

    def ended(self) -> str | None:
        testpmd = self._running()
        return None if all(process.alive() for process in testpmd.processes()) else testpmd.log()

    def stop(self) -> dict[str, str]:
        return {"testpmd.txt": self._running().tell("stop")}

    def threads(self) -> list[Thread]:
        return self._testpmd.threads() if self._testpmd else []

    def processes(self) -> list[Process]:
        return self._testpmd.processes() if self._testpmd else []

    def end(self) -> None:
        if self._testpmd is not None:
            self._testpmd.stop()
            self._testpmd = None

    def _running(self) -> Testpmd:
        assert self._testpmd is not None
        return self._testpmd


def can_not_flood(name: str, flows: int) -> str | None:
    """Why it can't send a flood of so many flows, or None."""
    return messages.too_many_flows(name, flows, MOST_FLOWS) if flows > MOST_FLOWS else None


def role_of(thread: str) -> str:
    """The forwarding threads of a DPDK program are the endpoint; the others wait, and answer questions."""
    return "guest" if thread.startswith("dpdk-worker") else "host-other"


def pcap(frames: Frames) -> bytes:
    """The flood's frames as a file of libpcap's classic format: one of each flow, and of few flows several times."""
    packets = [_frame(frames, IPv4Address(frames.target_address) + flow) for flow in range(frames.flows)]
    packets *= -(-SMALLEST_FILE // len(packets))
    # Magic number, version 2.4, no time zone, no accuracy, longest frame, Ethernet.
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet for packet in packets)


def _frame(frames: Frames, target_address: IPv4Address) -> bytes:
    """One UDP datagram in an Ethernet frame (RFC 768, 791); its UDP checksum is 0, which says that none was made, as pktgen does."""
    size = frames.size - 14
    source, target = IPv4Address(frames.source_address).packed, target_address.packed
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 17, 0) + source + target
    ip = ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:]
    udp = struct.pack(">HHHH", frames.source_port, frames.target_port, size - 20, 0)
    macs = b"".join(bytes.fromhex(mac.replace(":", "")) for mac in (frames.target_mac, frames.source_mac))
    return (macs + b"\x08\x00" + ip + udp).ljust(frames.size, b"\0")


def _checksum(header: bytes) -> int:
    """The internet checksum (RFC 1071)."""
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
