# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of dataplane/ that are ends of a path: where they are on a testbed, and how another build of one gets there."""

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vsprof.terms.placement import Thread
from vsprof.testbeds.base import Process, Testbed
from vsprof.testbeds.threads import threads_of
from vsprof.workloads import messages

START_SECONDS = 30


@dataclass(frozen=True, slots=True)
class OwnProgram:
    name: str
    sources: str
    """The folder that it is made of."""
    variable: str
    """Names the program on this machine, while it is being developed: it is brought to the testbed."""

    @property
    def path(self) -> str:
        return f"/usr/local/bin/{self.name}"

    def unavailable(self, host: Testbed) -> str | None:
        """Why ``host`` can't run it, or None."""
        if self.variable in os.environ or host.run(f"test -x {self.path}", check=False).status == 0:
            return None
        return messages.not_installed(self.path, self.sources, self.variable)

    def bring(self, host: Testbed) -> None:
        """Put the one that the variable names, if it does, on ``host``. Raises ``BadInput`` where there is none."""
        if self.variable not in os.environ:
            return
        program = Path(os.environ[self.variable])
        if not program.is_file():
            raise messages.not_a_file(self.variable, program, self.sources)
        host.push(program.read_bytes(), self.path)
        host.run(f"chmod 755 {self.path}")


class OwnProcess:
    """One of them that runs. Its first lcore listens, the others poll: the endpoint's work is theirs."""

    def __init__(self, host: Testbed, program: OwnProgram, name: str, words: Sequence[str], cpus: Sequence[int]) -> None:
        """``words``: behind the program's own. Returns once it says that it is ready. Raises ``RunFailed`` if it does not."""
        self._host, self.name = host, name
        program.bring(host)
        self._process: Process = host.start(name, shlex.join([program.path, *words]), cpus=sorted(set(cpus)))
        try:
            self._await_ready(program.name)
        except BaseException:
            # Nobody stops what was never made.
            self.stop()
            raise

    def log(self) -> str:
        """What it printed so far."""
        return self._process.log()

    def ended(self) -> str | None:
        """What it printed if it ended by itself; None while it runs."""
        return None if self._process.alive() else self.log()

    def threads(self) -> list[Thread]:
        found = threads_of(self._host, self._process.pid)
        return [
            Thread(f"{self.name}:{name}", tid, "guest" if name.startswith("dpdk-worker") else "host-other", cpus)
            for tid, name, cpus in found
        ]

    def processes(self) -> list[Process]:
        return [self._process]

    def stop(self) -> None:
        self._process.stop()

    def _await_ready(self, program: str) -> None:
        patience = self._host.patience(START_SECONDS)
        while f"{program}: ready" not in (log := self._process.log()):
            if not self._process.alive() or patience.over():
                raise messages.endpoint_failed(self.name, f"{program} did not get ready", log)
            time.sleep(0.05)


FRAME_PROBE = OwnProgram("frame-probe", "dataplane/probe", "VSPROF_FRAME_PROBE")
FRAME_FLOOD = OwnProgram("frame-flood", "dataplane/flood", "VSPROF_FRAME_FLOOD")
