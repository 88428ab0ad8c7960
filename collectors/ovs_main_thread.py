# SPDX-License-Identifier: GPL-2.0-or-later
"""What the main thread of ovs-vswitchd did: its time on a CPU and waiting for one, its context switches, and the packets it moved itself.

In the netdev datapath it serves every port that no poll-mode thread does, such as the bridge's local port. In the kernel's it moves none.
"""

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Reader, Recorded
from vsprof.collectors.ovs import Asker, not_running
from vsprof.collectors.procfs import THREADS, threads
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

SEPARATOR = "--- pmd-stats-show"
# Our name, and which field of the thread's schedstat it is, which has nanoseconds. Then by field of its status and of pmd-stats-show.
TIMES = {"main_thread_run_seconds": 0, "main_thread_wait_seconds": 1}
SWITCHES = {
    "voluntary_ctxt_switches": "main_thread_switches_voluntary",
    "nonvoluntary_ctxt_switches": "main_thread_switches_involuntary",
}
STATS = {
    "packets received": ("main_thread_packets", "packets"),
    "miss with success upcall": ("main_thread_upcalls", "events"),
    "miss with failed upcall": ("main_thread_lost_upcalls", "events"),
}
_MAIN = re.compile(r"^/proc/(\d+)/task/\1/", re.MULTILINE)
_FIELD = re.compile(r"^\s+(?P<name>[a-z ]+): (?P<value>\d+)$", re.MULTILINE)


class OvsMainThread(Reader, Asker):
    words = "ovs-vswitchd's main thread"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "main_thread_run_seconds": NumberWords("time on a CPU"),
        "main_thread_wait_seconds": NumberWords("time runnable, waiting for a CPU", better="less"),
        "main_thread_switches_*": NumberWords("context switches of the main thread", better="less"),
        "main_thread_packets": NumberWords("packets that the main thread moves"),
        "main_thread_*upcalls": NumberWords("packets without a flow, in the main thread", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {f"{THREADS}/schedstat": "^[0-9]", f"{THREADS}/status": "^(non)?voluntary_ctxt_switches:"}
    asks = (SEPARATOR, "dpif-netdev/pmd-stats-show")

    def not_of_this_switch(self) -> str | None:
        return not_running(self.host)

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        before, after = (_read(text, recorded) for text in (recorded.begin, recorded.end))
        if before.keys() != after.keys():
            raise ValueError(f"the main thread has {sorted(after)} at the end of the window, and {sorted(before)} at its begin")
        for (name, unit), value in after.items():
            if value is None or (earlier := before[name, unit]) is None:
                yield Number(name, None, unit, "switch", None, "all", note="this kernel does not tell it")
            else:
                yield Number(name, value - earlier, unit, "switch", None, "all", recorded.seconds, recorded.seconds)


def _read(text: str, recorded: Recorded) -> dict[tuple[str, str], float | None]:
    """Everything counted since the thread began, by name and unit; None for what the kernel left out. Raises ``ValueError`` where the
    thread is not found."""
    files, found, stats = text.partition(SEPARATOR)
    # A main thread's id is its process's.
    ours = {one.tid for one in recorded.placement.threads if one.role == "switch"} & {int(pid) for pid in _MAIN.findall(files)}
    mine = [lines for tid, lines in threads(files).items() if tid in ours]
    if not found or len(mine) != 1:
        raise ValueError(f"{len(mine)} main threads of the switch: need 1")
    fields = dict(line.split(":\t") for line in mine[0] if ":" in line)
    times = next((line.split() for line in mine[0] if ":" not in line), [])
    read: dict[tuple[str, str], float | None] = {}
    read |= {(name, "seconds"): int(times[place]) / 1e9 if len(times) == 3 else None for name, place in TIMES.items()}
    read |= {(name, "events"): int(fields[field]) if field in fields else None for field, name in SWITCHES.items()}
    packets = dict(_FIELD.findall(stats.rpartition("main thread:")[2])) if "main thread:" in stats else {}
    return read | {STATS[field]: int(value) for field, value in packets.items() if field in STATS}


COLLECTOR = OvsMainThread
