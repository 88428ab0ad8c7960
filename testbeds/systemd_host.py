# SPDX-License-Identifier: GPL-2.0-or-later
"""What all Debian hosts have in common that are reached over SSH as root and keep their processes by systemd."""

import contextlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vsprof.testbeds import facts
from vsprof.testbeds.base import Completed, Process, Testbed
from vsprof.testbeds.ssh import Channel, Shell

STOP_SECONDS = 5
"""What a process gets from being asked to end to being killed."""


class UnitProcess(Process):
    """A process of a host, kept by its systemd as a transient unit."""

    def __init__(self, host: "SystemdHost", name: str, unit: str, log: str, pid: int) -> None:
        self.name, self.unit = name, unit
        self._host, self._log, self._pid = host, log, pid

    @property
    def pid(self) -> int:
        return self._pid

    def alive(self) -> bool:
        return self._host.run(f"systemctl is-active --quiet {self.unit}", check=False).status == 0

    def log(self) -> str:
        return self._host.run(f"tail -c 20000 {self._log}", check=False).stdout

    def stop(self) -> None:
        self._host.run(f"systemctl stop {self.unit}", check=False)


class SystemdHost(Testbed):
    """A testbed behind a ``Channel``, which ``open`` makes."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._enter: list[str] = []
        """The start of a command line that brings a program to where this testbed's processes run."""

    @property
    def channel(self) -> Channel:
        assert self._channel is not None
        return self._channel

    def facts(self) -> dict[str, Any]:
        return facts.of(self)

    def run(self, command: str, *, timeout: float = 60, check: bool = True) -> Completed:
        there = shlex.join([*self._enter, "bash", "-c", command]) if self._enter else command
        return self.channel.run(there, timeout=timeout, check=check)

    def process(self, name: str) -> Process:
        """One that runs by this name, whoever started it. Raises ``RunFailed`` where none does."""
        unit, log = unit_of(name)
        pid = int(self.run(f"systemctl is-active --quiet {unit} && systemctl show --property MainPID --value {unit}").stdout)
        return UnitProcess(self, name, unit, log, pid)

    def start(self, name: str, command: str, *, cpus: Sequence[int], environment: Mapping[str, str] = {}) -> Process:
        unit, log = unit_of(name)
        settings = [f"--property=CPUAffinity={','.join(map(str, cpus))}", f"--property=StandardOutput=append:{log}",
                    f"--property=StandardError=append:{log}", "--property=LimitMEMLOCK=infinity",
                    # What is stopped while it still starts may not listen: systemd would give it 90 s.
                    f"--property=TimeoutStopSec={STOP_SECONDS}",
                    *(f"--setenv={k}={v}" for k, v in environment.items())]  # fmt: skip
        begun = self.run(
            f"systemd-run --quiet --collect --service-type=exec --unit={unit} {shlex.join([*settings, *self._enter])} {command}"
            f" && systemctl show --property MainPID --value {unit}"
        )
        return UnitProcess(self, name, unit, log, int(begun.stdout))

    @contextlib.contextmanager
    def shell(self) -> Iterator[Shell]:
        """A shell that stays while it is used: programs that one line began, a later one can end."""
        shell = self.channel.shell()
        try:
            yield shell
        finally:
            shell.close()

    def died(self, processes: Sequence[Process]) -> Process | None:
        """One question for all, where each alone would cost a round trip."""
        units = {p.unit: p for p in processes if isinstance(p, UnitProcess)}
        states = self.run(f"systemctl is-active {' '.join(units)}; true").stdout.split()
        return next((process for process, state in zip(units.values(), states, strict=True) if state != "active"), None)

    def push(self, content: str | bytes, path: str) -> None:
        self.channel.push(content, path)

    def pull(self, path: str, to: Path) -> None:
        self.channel.pull(path, to)

    def socket(self, path: str) -> Path:
        return self.channel.socket(path)


def unit_of(name: str) -> tuple[str, str]:
    """The unit of a process, and the file that takes what it prints."""
    return f"vsprof-{name}", f"/run/vsprof-{name}.log"
