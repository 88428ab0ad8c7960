# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hypervisor does to the CPUs of a virtual machine on which switches are measured: how far apart it has put them, and how much a
neighbour slows them.

Both change every number of a window, for minutes at a time, and nothing that is counted inside of it tells.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from vsprof.collectors import messages
from vsprof.collectors.base import Between, Recorded
from vsprof.terms import places
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import REAL

SOURCE = Path(__file__).with_name("disturbance.c")
PROGRAM = places.BUILD / "disturbance"
ON_HOST = "/tmp/vsprof-disturbance"
"""Not in /run, from which Debian's servers run nothing (noexec)."""
SETTLE_S = 0.05
"""After a look: whoever polls had to wait for it, and rings have filled meanwhile."""
MOST_S = 5
"""That a look may take: the program waits for a thread of its own on another CPU, which may have none for it."""
COMPILE_S = 120
SEEN = re.compile(r"^(cpu|first|loop|line) (\d{1,12}(?:\.\d)?)$", re.MULTILINE)
NUMBERS = {"line_transfer_seconds": "line", "calibration_loop_seconds": "loop"}
"""What the program calls them."""
NANO = 1e-9


class Disturbance(Between):
    words = "disturbance"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "line_transfer_seconds": NumberWords("time that a cache line takes between the switch's CPU and the endpoints'", better="less"),
        "calibration_loop_seconds": NumberWords("time of a loop that a neighbour on the same core slows", better="less"),
    }

    def unavailable(self) -> str | None:
        if self.host.clock != REAL:
            return "nothing disturbs a window of modelled time, and an emulator disturbs itself"
        if self.host.run("grep -qw hypervisor /proc/cpuinfo", check=False).status != 0:
            return "no hypervisor moves the CPUs of this machine, and it has them alone"
        if why := compiled():
            return why
        self.setup()
        tried = self.host.run(self._program(), check=False)
        self.teardown()
        return None if tried.status == 0 else f"its program does not run here: {tried.stderr.strip() or f'exit status {tried.status}'}"

    def setup(self) -> None:
        self.host.push(PROGRAM.read_bytes(), ON_HOST)
        self.host.run(f"chmod 755 {ON_HOST}")

    def teardown(self) -> None:
        self.host.run(f"rm -f {ON_HOST}", check=False)

    def facts(self) -> dict[str, Any]:
        return {"cpu": self.host.plan().switch, "partners": self._partners()}

    def look(self) -> str:
        return f"{self._program()}; sleep {SETTLE_S}"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        looks = [SEEN.findall(text) for text in (recorded.begin, recorded.end)]
        why = next((lacks for seen in looks if (lacks := _lacks(dict(seen)))), "")
        cpu = None if why else int(dict(looks[0])["cpu"])
        for name, called in NUMBERS.items():
            # Of a window during which the CPUs were moved, one end was apart.
            values = [float(value) for seen in looks for one, value in seen if one == called]
            yield Number(name, None if why else max(values) * NANO, "seconds", "switch", cpu, note=why)

    def _partners(self) -> list[int]:
        plan = self.host.plan()
        return sorted({*plan.endpoints} - {plan.switch})

    def _program(self) -> str:
        return " ".join(["timeout", f"{MOST_S}", ON_HOST, str(self.host.plan().switch), *map(str, self._partners())])


def compiled() -> str | None:
    """Compile the program on this machine, where that is not done yet. Why it can't be, or None."""
    if PROGRAM.is_file() and PROGRAM.stat().st_mtime >= SOURCE.stat().st_mtime:
        return None
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    # Put in its place whole: another process may be reading the one that is there. Static: it runs on other machines' systems, too.
    made = PROGRAM.with_name(f"{PROGRAM.name}.{os.getpid()}")
    command = ["gcc", "-O3", "-Wall", "-Wextra", "-static", "-pthread", "-o", str(made), str(SOURCE)]
    try:
        built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=COMPILE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return messages.disturbance_not_built(str(error))
    if built.returncode != 0:
        return messages.disturbance_not_built(built.stderr)
    made.replace(PROGRAM)
    return None


def _lacks(seen: Mapping[str, str]) -> str:
    """Why a look has no numbers, or nothing."""
    if not {"cpu", "first", "loop", "line"} <= seen.keys():
        return "a look at the CPUs failed"
    if seen["first"] != "1":
        return "the look at the CPUs had no priority over those who poll there"
    return ""


COLLECTOR = Disturbance
