# SPDX-License-Identifier: GPL-2.0-or-later
"""Tools of bcc, where the kernel's headers are: softirqs, and runqlat.

bcc compiles its programs each time when they start, which in the lab takes from seconds to most of a minute of a whole CPU, and
counts from then on. So each tool has an own window: it is told how long to count, and prints one table.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors import messages
from vsprof.collectors.base import Apart, Recorded
from vsprof.terms import messages as terms_messages
from vsprof.terms.placement import Placement
from vsprof.terms.schema import ROLES, Number
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import Testbed

COMPILE_SECONDS = 240
"""How long a tool may take beyond its window."""
TOOLS = {"softirqs": "softirqs-bpfcc", "runqlat": "runqlat-bpfcc -L"}
"""Name and command (Debian's), to which the seconds and the number of tables are added. -L: by thread."""
# The tools' names, in the kernel's order (Linux, include/linux/interrupt.h).
KINDS = ("hi", "timer", "net_tx", "net_rx", "block", "irq_poll", "tasklet", "sched", "hrtimer", "rcu")
_PART = re.compile(r"^--- (?P<tool>\w+) (?P<seconds>\d+) (?P<status>-?\d+)\n", re.MULTILINE | re.ASCII)
_SOFTIRQ = re.compile(r"^(\w+)[ \t]+(\d+)[ \t]*$", re.MULTILINE | re.ASCII)
_THREAD = re.compile(r"^tid = (\d+)", re.ASCII)
_BUCKET = re.compile(r"^ *(\d+) -> \d+ +: (\d+) ", re.ASCII)


class Bcc(Apart):
    words = "bcc"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "bcc_softirq_*_seconds": NumberWords("time in softirqs of this kind", better="less"),
        "bcc_run_queue_waits*": NumberWords("waits for a CPU, and those from this many microseconds on", better="less"),
    }
    automatic = False
    options: ClassVar[Mapping[str, str]] = {"tools": f"which, a list of {', '.join(TOOLS)}; without it, softirqs, which starts faster"}

    def __init__(self, host: Testbed, tools: Sequence[str] = ("softirqs",)) -> None:
        super().__init__(host)
        self._tools = tools

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        tools = given.get("tools", ["softirqs"])
        if not isinstance(tools, list) or not tools:
            raise messages.no_list("bcc", "tools", tools, "softirqs")
        for name in tools:
            if name not in TOOLS:
                raise terms_messages.unknown_value("tool of bcc", name, TOOLS)

    def unavailable(self) -> str | None:
        for name in self._tools:
            if self.host.run(f"command -v {TOOLS[name]}", check=False).status:
                return messages.no_bcc(TOOLS[name].split()[0])
        headers = self.host.run("test -d /lib/modules/$(uname -r)/build || uname -r", check=False).stdout.strip()
        return messages.no_headers(headers) if headers else None

    def facts(self) -> dict[str, Any]:
        return {"tools": list(self._tools)}

    def measure(self, seconds: float) -> str:
        # The tools know whole seconds only.
        whole = math.ceil(seconds)
        return "".join(self._run(name, whole) for name in self._tools)

    def _run(self, name: str, seconds: int) -> str:
        done = self.host.run(f"{self.host.housekeeping} {TOOLS[name]} {seconds} 1", timeout=seconds + COMPILE_SECONDS, check=False)
        return f"--- {name} {seconds} {done.status}\n{done.stdout if done.status == 0 else done.stderr}\n"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        parts = _PART.split(recorded.end)
        if len(parts) == 1 and recorded.end:
            raise ValueError(f"no tool of bcc printed this: {recorded.end[:80]!r}")
        for tool, seconds, status, text in zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True):
            if tool not in PARSERS:
                raise ValueError(f"{tool!r} is no tool of bcc that is known here")
            yield from PARSERS[tool](text if status == "0" else "", recorded.placement, float(seconds), "" if status == "0" else text)


def softirqs(text: str, placement: Placement, seconds: float, failed: str) -> Iterable[Number]:
    """Total time in each kind of softirq on all CPUs. A kind without a line had none."""
    if not failed and "TOTAL_usecs" not in text:
        raise ValueError(f"not softirqs: {text[:80]!r}")
    spent = {kind: float(microseconds) for kind, microseconds in _SOFTIRQ.findall(text)}
    for kind in KINDS:
        value = None if failed else spent.get(kind, 0.0) / 1e6
        yield Number(f"bcc_softirq_{kind}_seconds", value, "seconds", None, None, "kernel", seconds, seconds, _note(failed))


def runqlat(text: str, placement: Placement, seconds: float, failed: str) -> Iterable[Number]:
    """Waits for a CPU by role: how many, and how many in each bucket."""
    if failed:
        yield Number("bcc_run_queue_waits", None, "events", note=_note(failed))
        return
    if "usecs" not in text and "Tracing" not in text:
        raise ValueError(f"not runqlat: {text[:80]!r}")
    waits: dict[tuple[str, str], float] = {}
    role = ""
    for line in text.splitlines():
        if thread := _THREAD.match(line):
            role = placement.role_of_thread(int(thread[1]))
        elif (bucket := _BUCKET.match(line)) and role and int(bucket[2]):
            for name in ("bcc_run_queue_waits", f"bcc_run_queue_waits_from_{bucket[1]}us"):
                waits[role, name] = waits.get((role, name), 0.0) + float(bucket[2])
    there = {thread.role for thread in placement.threads} | {"host-other"}
    waits = {(role, "bcc_run_queue_waits"): 0.0 for role in ROLES if role in there} | waits
    for (role, name), value in waits.items():
        yield Number(name, value, "events", role, None, "all", seconds, seconds)


def _note(failed: str) -> str:
    return messages.bcc_failed(" ".join(failed.split())[-200:]) if failed else ""


PARSERS: Mapping[str, Callable[[str, Placement, float, str], Iterable[Number]]] = {"softirqs": softirqs, "runqlat": runqlat}
COLLECTOR = Bcc
