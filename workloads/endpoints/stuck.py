# SPDX-License-Identifier: GPL-2.0-or-later
"""What a virtual machine that does not go on waits for, in a line: for the error that ends the wait."""

import base64
import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path

from vsprof.terms import errors
from vsprof.testbeds.base import Testbed
from vsprof.testbeds.qmp import Monitor

SECONDS = 5
"""For each question: whoever hangs does not answer."""
TRIES = 20
LEAST_RUN_S = 0.001
"""The least that its CPU runs between two looks, by its host's clock: in modelled time a minute of ours is less than a second there."""
REGISTERS = re.compile(r"\b(RIP|RFL|HLT)=([0-9a-f]+)")
INTERRUPTS_ON = 1 << 9
"""IF of RFLAGS (Intel SDM, vol. 1, 3.4.3.3)."""
# A kernel thread has no command line; the file's size is 0 in any case.
PROGRAMS = "for p in /proc/[0-9]*; do grep -q . $p/cmdline && echo $(cat $p/comm $p/wchan); done 2> /dev/null; true"
"""Each program of a guest, and where in the kernel it sleeps (0: it runs)."""


def ran_seconds(host: Testbed, pid: int, tid: int) -> float:
    """How long a virtual machine's CPU has run so far, by the host's scheduler; 0 where it is gone."""
    said = host.run(f"cat /proc/{pid}/task/{tid}/schedstat", check=False).stdout.split()
    return int(said[0]) / 1e9 if said else 0.0


class Progress:
    """Asked again and again, it says whether a virtual machine goes on: whether its CPU ran for ``least`` seconds since it was last asked.
    Not more than ``looks`` times: one whose CPU runs on for so long is in a loop."""

    def __init__(self, ran: Callable[[], float], looks: int, least: float = LEAST_RUN_S) -> None:
        self._ran, self._looks, self._least = ran, looks, least
        self._before = 0.0

    def __call__(self) -> bool:
        self._looks -= 1
        before, self._before = self._before, self._ran()
        return self._looks > 0 and self._before - before >= self._least


def processor(host: Testbed, pid: int, tid: int, monitor: Path) -> str:
    """Where the thread of its CPU is on the host, and where the CPU itself is in the guest."""
    asked = f"cd /proc/{pid}/task/{tid} && sed -n 's/^State:[[:space:]]*\\([A-Z]\\).*/\\1/p' status && cat wchan"
    state, _, sleeps = host.run(asked, check=False).stdout.strip().partition("\n")
    if not state:
        return "its CPU's thread is gone"
    thread = "runs" if state == "R" else f"sleeps in {sleeps.strip() or 'an unknown place'} (state {state})"
    return f"its CPU's thread {thread}, {_registers(monitor)}"


def _registers(socket: Path) -> str:
    monitor = Monitor(socket)
    try:
        if not monitor.connect():
            return "and QEMU's monitor does not answer"
        said = monitor.execute("human-monitor-command", seconds=SECONDS, **{"command-line": "info registers"})
    except errors.RunFailed as error:
        return f"and QEMU does not say where: {error}"
    finally:
        monitor.close()
    found = {name: int(value, 16) for name, value in REGISTERS.findall(said)}
    if not {"RIP", "RFL"} <= found.keys():
        return "and QEMU's registers are not as we know them"
    halted = "is halted" if found.get("HLT") else "is"
    interrupts = "on" if found["RFL"] & INTERRUPTS_ON else "off"
    return f"the guest {halted} at {found['RIP']:#x} with interrupts {interrupts}"


def programs(agent: Monitor) -> str:
    """Each program in the guest and where it sleeps, by its agent; or that it does not answer."""
    with contextlib.suppress(errors.RunFailed, KeyError):
        shell = {"path": "/bin/sh", "arg": ["-c", PROGRAMS], "capture-output": True}
        pid = agent.execute("guest-exec", seconds=SECONDS, **shell)["pid"]
        for _ in range(TRIES):
            status = agent.execute("guest-exec-status", seconds=SECONDS, pid=pid)
            if status["exited"]:
                said = base64.b64decode(status.get("out-data", "")).decode(errors="replace")
                return f"its programs and where they sleep: {', '.join(said.splitlines())}"
            time.sleep(SECONDS / TRIES)
    return "its guest agent does not answer any more"
