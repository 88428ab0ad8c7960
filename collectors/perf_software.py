# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own events on each CPU, counted by perf stat: context switches, migrations, faults, interrupts, VM exits.

perf is started before the window with its counters off, and switched on and off through a control pipe, so that its
start-up is in no window. It reads each CPU's counters on that CPU: one migration and some three context switches a window
and CPU are its own.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors.base import Collector, Recorded
from vsprof.terms.errors import RunFailed
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

# perf's name of each event, and ours.
EVENTS = {
    "context-switches": "context_switches",
    "cpu-migrations": "cpu_migrations",
    "minor-faults": "page_faults_minor",
    "major-faults": "page_faults_major",
    "irq:irq_handler_entry": "hard_interrupts",
    "irq:softirq_entry": "soft_interrupts",
    "irq_vectors:local_timer_entry": "timer_interrupts",
    "kvm:kvm_exit": "vm_exits",
}
FOLDER = "/run/vsprof-perf"
Count = tuple[str, int, float | None, float | None, float | None]
"""Event, CPU, value (None: not counted), seconds enabled, seconds running."""


class PerfSoftware(Collector):
    words = "the kernel's events, by perf stat"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "context_switches": NumberWords("context switches", better="less"),
        "cpu_migrations": NumberWords("threads moved to this CPU from another", better="less"),
        "page_faults_minor": NumberWords("page faults of pages that are in memory", better="less"),
        "page_faults_major": NumberWords("page faults that read a disk", better="less"),
        "vm_exits": NumberWords("exits from a guest to the hypervisor", better="less"),
        "*_interrupts": NumberWords("interrupts of this kind", better="less"),
    }
    _events: Sequence[str] = ()

    def unavailable(self) -> str | None:
        # Mostly all events are known, and one call tells so.
        if self._counts(",".join(EVENTS)):
            self._events = list(EVENTS)
            return None
        tried = self.host.run("perf stat -a -e context-switches true", check=False)
        return None if tried.status == 0 else f"perf stat does not work: {' '.join(tried.stderr.split())[:200]}"

    def setup(self) -> None:
        # An event that perf does not know ends it, all others with it: where all together fail, each is tried alone.
        self._events = self._events or [event for event in EVENTS if self._counts(event)]

    def _counts(self, events: str) -> bool:
        command = f"perf stat -a -e {events} true"
        # A failure is not remembered: it may have been one of the moment.
        try:
            self.host.remembered(f"works: {command}", lambda: self.host.run(command).stdout)
        except RunFailed:
            return False
        return True

    def prepare(self) -> str:
        return f"""
rm -rf {FOLDER}; mkdir {FOLDER}; mkfifo {FOLDER}/control {FOLDER}/ack
{self.host.housekeeping} perf stat -a -A -j -o {FOLDER}/out -D -1 --control fifo:{FOLDER}/control,{FOLDER}/ack -e {",".join(self._events)} &
perf_pid=$!
exec 7<>{FOLDER}/control 8<>{FOLDER}/ack
echo ping >&7; read -t 20 -u 8 answer"""

    def begin(self) -> str:
        return "echo enable >&7; read -t 20 -u 8 answer; echo $answer"

    def end(self) -> str:
        return "echo disable >&7; read -t 20 -u 8 answer; echo $answer"

    def finish(self) -> str:
        return f"kill -INT $perf_pid; wait $perf_pid; cat {FOLDER}/out"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        counted = list(_counts(recorded.end))
        for event, cpu, value, enabled_s, running_s in counted:
            # A counter that never ran is not a zero.
            note = "" if value is not None else "perf did not count it"
            role = recorded.placement.role_of_cpu(cpu)
            yield Number(EVENTS[event], value, "events", role, cpu, "all", enabled_s, running_s, note)
        for event in EVENTS.keys() - {event for event, *_ in counted}:
            yield Number(EVENTS[event], None, "events", note=f"the kernel does not offer {event}")


def _counts(text: str) -> Iterable[Count]:
    """Read perf stat -j: one JSON object a line, behind header lines; ``event-runtime`` is in nanoseconds."""
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            count = _count(json.loads(line))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not perf stat -j: {line[:80]}") from error
        if count:
            yield count


def _count(row: dict[str, Any]) -> Count | None:
    # perf 6.12 writes "context-switches [software]" where earlier ones write "context-switches".
    event = str(row.get("event", "")).partition(" ")[0]
    if event not in EVENTS or "cpu" not in row:
        return None
    running_s = float(row["event-runtime"]) / 1e9
    percent = float(row["pcnt-running"])
    value = str(row["counter-value"])
    # An uncounted event says "100 % running" with a runtime of zero: the runtime tells.
    counted = not value.startswith("<") and running_s > 0
    enabled_s = running_s * 100 / percent if percent else None
    return event, int(row["cpu"]), float(value) if counted else None, enabled_s, running_s


COLLECTOR = PerfSoftware
