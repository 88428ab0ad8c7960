# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch (and, as a back-end that is known to be good, testpmd) in the testbed, and how to talk to them."""

import contextlib
import json
import os
import shlex
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from frontend import SECONDS, Frontend, eventually
from traffic import frames, mac, quiet, same

from vsprof.testbeds.base import Process
from vsprof.testbeds.native import Native
from vsprof.workloads.endpoints.testpmd import PROGRAM as TESTPMD

PROGRAM = "/usr/local/bin/vhost-switch"
START_SECONDS = 20
LOOK_SECONDS = 0.2
IDLE = ("idle1", "idle2")
"""Ports that are always there and never up: librte_vhost takes a second to close the last of its sockets. A pair, for wires."""
MEMORY = ("--in-memory", "-m", "256")
"""Of hugepages, which nobody else sees."""
FOLDER = "/run/vs"
POLLS = 200
"""Of a worker's queues, in which it takes all that a test's rings hold, 32 frames at a time."""


_numbers = count(1)


class Running:
    """A DPDK process named ``name``, which is up once it has printed ``ready``."""

    def __init__(self, host: Native, name: str, words: Sequence[str], ready: str, cpus: Sequence[int]) -> None:
        self.host, self.name = host, name
        host.run(f"mkdir -p {FOLDER} && rm -f /run/vsprof-{name}.log")
        self._began = time.monotonic()
        self.process: Process = host.start(name, shlex.join(words), cpus=cpus)
        try:
            eventually(lambda: ready in self.log() or not self.alive(), f"{name} to say {ready!r}", self.log, START_SECONDS, self.clock)
        except AssertionError:
            # It would poll on beside all later tests.
            self.kill()
            raise
        assert self.alive(), f"{name} ended with status {self.status()}: {shlex.join(words)}\n{self.log()}"

    def alive(self) -> bool:
        return self.process.alive()

    def log(self) -> str:
        return self.process.log()[-3000:]

    def status(self) -> int | None:
        """With which it ended; of a signal, the negative number. None while it runs."""
        return self.process._child.poll()

    def clock(self) -> float:
        """Seconds that stand still while a thread of it waits for a CPU: on a busy machine it may need many to do the work of one.

        They never stand still altogether: one that never gets a CPU is not waited for for ever.
        """
        waited = 0.0
        for task in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError):
                # proc(5): nanoseconds on a CPU, nanoseconds ready to run without one, time slices.
                waited = max(waited, int(task.read_text().split()[1]) / 1e9)
        return time.monotonic() - min(waited, 0.9 * (time.monotonic() - self._began))

    def local(self, path: str) -> Path:
        """A path of the testbed, as one of this process."""
        return self.host.socket(path)

    def ask(self, question: str) -> Any:
        """DPDK's telemetry. Raises ``AssertionError`` with the log if there is no answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as talk:
            talk.settimeout(SECONDS)
            try:
                talk.connect(str(self.local(f"/run/dpdk/{self.name}/dpdk_telemetry.v2")))
                self._hear(talk)
                talk.send(question.encode())
                answer = json.loads(self._hear(talk))
            except (OSError, ValueError) as error:
                raise AssertionError(f"{self.name}: {question}: {error!r}\n{self.log()}") from error
        [value] = answer.values()
        return value

    def _hear(self, talk: socket.socket) -> bytes:
        """What it says next. Raises ``TimeoutError`` where it says nothing."""
        talk.settimeout(LOOK_SECONDS)
        end = self.clock() + SECONDS
        while True:
            try:
                return talk.recv(1 << 20)
            except TimeoutError:
                if self.clock() > end:
                    raise

    def stop(self) -> int:
        """SIGTERM; the status it ended with. Raises ``AssertionError`` if it does not end."""
        if self.alive():
            self.process._child.send_signal(signal.SIGTERM)
            try:
                eventually(lambda: not self.alive(), f"{self.name} to end after SIGTERM", self.log, clock=self.clock)
            finally:
                self.process.stop()
        return self.status()

    def kill(self) -> None:
        """Where nobody looks how it ends."""
        self.process._child.kill()
        self.process.stop()


class Switch(Running):
    """vhost-switch with its options; ``workers`` PMD threads share the switch's CPU, or, ``apart``, have that and the housekeeping CPU alternately.

    ``program``: another than the installed one; ``before``: words in front of it on its command line.
    """

    def __init__(
        self,
        host: Native,
        name: str,
        options: Sequence[str] = (),
        *,
        workers: int = 1,
        apart: bool = False,
        eal: Sequence[str] = MEMORY,
        program: str = PROGRAM,
        before: Sequence[str] = (),
    ) -> None:
        housekeeping, cpu = host.plan().housekeeping, host.plan().switch
        places = [(cpu, housekeeping)[number % 2] if apart else cpu for number in range(workers)]
        self._control = f"{FOLDER}/{name}.control"
        words = [*before, *command(name, lcores(housekeeping, places), eal, program), "--control", self._control, *options]
        for idle in IDLE:
            words += ["--port", f"{idle},path={FOLDER}/{name}.{idle},server=1"]
        super().__init__(host, name, words, "vhost-switch: ready", [housekeeping, cpu])

    def ports(self) -> list[str]:
        """Names of the ports that a test added."""
        return [name for name in self.control("ports").split() if name not in IDLE]

    def control(self, line: str) -> str:
        """One command; its answer without "ok". Raises ``AssertionError`` on an error."""
        answer = self.answer(line)
        assert answer.split(maxsplit=1)[0] == "ok", f"{line!r}: {answer}\n{self.log()}"
        return answer[2:].strip()

    def answer(self, line: str) -> str:
        """One command; its answer whatever it is. Raises ``AssertionError`` if there is none."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
            talk.settimeout(SECONDS)
            try:
                talk.connect(str(self.local(self._control)))
                talk.sendall(line.encode() + b"\n")
                answer = heard = self._hear(talk)
                while heard and not answer.endswith(b"\n"):
                    answer += (heard := self._hear(talk))
            except OSError as error:
                raise AssertionError(f"{line!r}: {error!r}\n{self.log()}") from error
        assert answer.endswith(b"\n"), f"{line!r}: the answer is {answer!r}\n{self.log()}"
        return answer.decode().strip()

    def attach(self, guest: Frontend, name: str, *, server: bool = True, queues: int = 1) -> Frontend:
        """Add a port for the guest and bring the guest up on it; ``server``: the switch's end of the socket listens."""
        path = f"{FOLDER}/{self.name}.{name}"
        spec = f"add-port {name},path={path}{',server=1' if server else ''}{f',queues={queues}' if queues > 1 else ''}"
        if server:
            self.control(spec)
            guest.connect(self.local(path))
        else:
            self.local(path).unlink(missing_ok=True)
            guest.listen(self.local(path))
            self.control(spec)
            guest.accept()
        self.await_up(name)
        return guest

    def again(self, guest: Frontend, name: str) -> None:
        """Let a guest that left come back to its port, on which the switch listens."""
        guest.connect(self.local(f"{FOLDER}/{self.name}.{name}"))
        self.await_up(name)

    def await_up(self, name: str) -> None:
        eventually(lambda: self.port(name)["up"], f"port {name} to be up", lambda: f"{self.port(name)}\n{self.log()}", clock=self.clock)

    def await_down(self, name: str) -> None:
        eventually(
            lambda: not self.port(name)["up"], f"port {name} to be down", lambda: f"{self.port(name)}\n{self.log()}", clock=self.clock
        )

    def port(self, name: str) -> dict[str, Any]:
        return self.ask(f"/vhost_switch/port,{name}")

    def macs(self) -> dict[str, str]:
        """The port of each learned address."""
        return dict(one.split()[:2] for one in self.ask("/vhost_switch/macs"))

    def available(self) -> int:
        """Mbufs that nobody holds."""
        return self.ask("/vhost_switch/pool")["available"]


class Keeper:
    """At most one running switch at a time: two that poll would share a CPU."""

    def __init__(self, host: Native) -> None:
        self._host = host
        self._switch: Switch | None = None
        self._options: object = None

    def get(self, options: tuple[str, ...], **more: object) -> Switch:
        """The one that runs, if it has these options, else a new one."""
        if self._switch is None or (options, more) != self._options or not self._switch.alive():
            self.stop()
            self._switch, self._options = Switch(self._host, fresh(), options, **more), (options, more)
        return self._switch

    def stop(self) -> None:
        # That it ends well is a test of its own; here it only takes time.
        if self._switch is not None:
            self._switch.kill()
        self._switch = None


def kept(keeper: Keeper, options: tuple[str, ...], **more: object) -> Iterator[Switch]:
    """A switch without ports, for a test; after it the switch must live, and all its mbufs must be free, once the ports are gone."""
    running = keeper.get(options, **more)
    before = running.available()
    yield running
    assert running.alive(), f"the switch ended with status {running.status()}\n{running.log()}"
    for name in running.ports():
        running.control(f"remove-port {name}")
    running.control("flush-macs")
    eventually(
        lambda: running.available() == before,
        f"{before} mbufs to be free",
        lambda: f"{running.available()} are\n{running.log()}",
        clock=running.clock,
    )


def unharmed(switch: Switch, neighbours: tuple[Frontend, Frontend]) -> None:
    """The switch lives, and the neighbours' frames come through; what else reaches them is not asked."""
    a, b = neighbours
    # What the attack sent them fills their rings.
    gone_round(switch)
    quiet(a, b)
    for sender, receiver, sent in ((a, b, frames(23, mac(1), mac(2))), (b, a, frames(23, mac(2), mac(1)))):
        sender.send_all(sent)
        got: list[bytes] = []
        end = switch.clock() + SECONDS
        while len(got) < len(sent) and switch.clock() < end and switch.alive():
            got += [one for one in receiver.receive(1, 0.05) if one in sent]
        assert switch.alive(), f"the switch ended with status {switch.status()}\n{switch.log()}"
        same(got, sent)
        sender.all_back()


def gone_round(switch: Switch) -> None:
    """Wait until each worker, which must poll, has looked at all its queues again and again: what lay in them is on its way then, however
    long this machine kept the worker from its CPU."""
    assert switch.alive(), f"the switch ended with status {switch.status()}\n{switch.log()}"
    lcores = switch.ask("/vhost_switch/lcores")

    def polls() -> list[int]:
        return [one["rx_bursts"] + one["empty_polls"] for one in (switch.ask(f"/vhost_switch/lcore,{lcore}") for lcore in lcores)]

    wanted = [one + POLLS for one in polls()]
    eventually(lambda: all(map(int.__ge__, polls(), wanted)), "each worker to poll", switch.log, clock=switch.clock)


class Loop(Running):
    """testpmd that forwards whatever comes in at one net_vhost port out at the other: a back-end of the same library."""

    def __init__(self, host: Native, name: str, *, queues: int = 1, client: bool = False) -> None:
        housekeeping, cpu = host.plan().housekeeping, host.plan().switch
        self.paths = [f"{FOLDER}/{name}.{end}" for end in "ab"]
        # Its first statistics come once the time since the machine booted is longer than the period: of an hour, a fresh machine waits for it.
        vdevs = [f"--vdev=net_vhost{n},iface={path},queues={queues},client={int(client)}" for n, path in enumerate(self.paths)]
        words = [
            TESTPMD, *MEMORY, "--no-pci", f"--file-prefix={name}", "--lcores", lcores(housekeeping, [cpu]), *vdevs,
            "--", "--forward-mode=io", "--auto-start", "--disable-link-check", "--no-mlockall", "--stats-period=1",
            "--total-num-mbufs=16384", f"--rxq={queues}", f"--txq={queues}",
        ]  # fmt: skip
        super().__init__(host, name, words, "Port statistics", [housekeeping, cpu])


def fresh(prefix: str = "v") -> str:
    """A name that no process in the testbed had before."""
    return f"{prefix}{next(_numbers)}"


def command(name: str, cores: str, eal: Sequence[str] = MEMORY, program: str = PROGRAM) -> list[str]:
    """vhost-switch up to where its own options begin."""
    return [program, "--no-pci", "--log-level=lib.vhost.*:warning", f"--file-prefix={name}", "--lcores", cores, *eal, "--"]


def lcores(housekeeping: int, cpus: Sequence[int]) -> str:
    """The main lcore on the CPU of the host's own work, and each other one where told."""
    return ",".join(f"{number}@{cpu}" for number, cpu in enumerate((housekeeping, *cpus)))


def held(pid: int) -> Counter[str]:
    """What of the guests' a process has open: files by their kind, mappings of guests' memory."""
    kinds: Counter[str] = Counter()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        # Some are closed while we look.
        with contextlib.suppress(FileNotFoundError):
            link = os.readlink(one)
            # Those of a kind are told from one another by a number behind the colon; files without a name have one there.
            kinds[link.split()[0] if link.startswith(("/memfd:", "anon_inode:")) else link.split(":")[0]] += 1
    kinds["mappings"] = Path(f"/proc/{pid}/maps").read_text().count("memfd:guest")
    return kinds
