# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hypervisor does to the CPUs of a virtual machine on which switches are measured: how far apart it has put them, and how much a
neighbour slows them; looked at before each window and behind it.

Both change every number of a window, for minutes at a time, and nothing that is counted inside of it tells.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from vsprof.collectors import messages
from vsprof.collectors.base import Collector, Recorded
from vsprof.terms import places
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import MODELLED

SOURCE = Path(__file__).with_name("disturbance.c")
PROGRAM = places.BUILD / "disturbance"
ON_HOST = "/run/vsprof-disturbance"
LOOK = "disturbance.before"
"""In the window's folder: what was seen before it."""
SETTLE_S = 0.05
"""After a look until the window: whoever polls had to wait for it, and rings have filled meanwhile."""
COMPILE_S = 120
LOOKS = 2
SEEN = re.compile(r"^(cpu|loop|line) (\d{1,12}(?:\.\d)?)$", re.MULTILINE)
NANO = 1e-9


class Disturbance(Collector):
    words = "disturbance"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "line_transfer_seconds": NumberWords("time that a cache line takes between the switch's CPU and the endpoints'", better="less"),
        "calibration_loop_seconds": NumberWords("time of a loop that a neighbour on the same core slows", better="less"),
    }

    @classmethod
    def build(cls) -> None:
        if PROGRAM.is_file() and PROGRAM.stat().st_mtime >= SOURCE.stat().st_mtime:
            return
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        # Put in its place whole: another process may be reading the one that is there. Static: it runs on other machines' systems, too.
        made = PROGRAM.with_name(f"{PROGRAM.name}.new")
        command = ["gcc", "-O3", "-Wall", "-Wextra", "-static", "-pthread", "-o", str(made), str(SOURCE)]
        try:
            built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise messages.disturbance_not_built(str(error)) from None
        if built.returncode != 0:
            raise messages.disturbance_not_built(built.stderr)
        made.replace(PROGRAM)

    def unavailable(self) -> str | None:
        if self.host.clock == MODELLED:
            return "nothing disturbs a window of modelled time"
        if self.host.run("grep -qw hypervisor /proc/cpuinfo", check=False).status != 0:
            return "no hypervisor moves the CPUs of this machine, and it has them alone"
        return None

    def setup(self) -> None:
        self.host.push(PROGRAM.read_bytes(), ON_HOST)
        self.host.run(f"chmod 755 {ON_HOST}")

    def teardown(self) -> None:
        self.host.run(f"rm -f {ON_HOST}", check=False)

    def facts(self) -> dict[str, Any]:
        return {"cpu": self.host.plan().switch, "partners": self._partners()}

    def prepare(self) -> str:
        return f"{self._look()} > {LOOK}; sleep {SETTLE_S}"

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""

    def finish(self) -> str:
        return f"cat {LOOK}; {self._look()}"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        seen = SEEN.findall(recorded.end)
        cpus, loops, lines = ([float(value) for name, value in seen if name == wanted] for wanted in ("cpu", "loop", "line"))
        if len(cpus) != LOOKS or len(loops) != LOOKS or len(lines) < LOOKS:
            raise ValueError(f"what was seen before the window and behind it was to be told, and this was: {recorded.end!r}")
        # Of a window during which the CPUs were moved, one end was apart.
        for name, of in (("line_transfer_seconds", lines), ("calibration_loop_seconds", loops)):
            yield Number(name, max(of) * NANO, "seconds", "switch", int(cpus[0]))

    def _partners(self) -> list[int]:
        plan = self.host.plan()
        return sorted({*plan.endpoints} - {plan.switch})

    def _look(self) -> str:
        return " ".join([ON_HOST, str(self.host.plan().switch), *map(str, self._partners())])


COLLECTOR = Disturbance
