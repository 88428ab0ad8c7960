# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of dataplane/ that are ends of a path: where they are on a testbed, and how another build of one gets there."""

import os
from dataclasses import dataclass
from pathlib import Path

from vsprof.testbeds.base import Testbed
from vsprof.workloads import messages


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


FRAME_PROBE = OwnProgram("frame-probe", "dataplane/probe", "VSPROF_FRAME_PROBE")
FRAME_FLOOD = OwnProgram("frame-flood", "dataplane/flood", "VSPROF_FRAME_FLOOD")
