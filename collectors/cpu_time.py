# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the time goes: each CPU's seconds by kind (/proc/stat), each role's running and waiting for a CPU (schedstat)."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from vsprof.collectors.base import Load, Reader, Recorded
from vsprof.collectors.procfs import THREADS, by_role, threads, without_paths
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords

# proc_stat(5), in ticks of 1/100 s (USER_HZ). guest is also counted in user, guest_nice in nice: taken out below.
KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
TICK_S = 0.01
NO_LINE = "^$"


class CpuTime(Reader):
    words = "CPUs' and threads' time"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "cpu_*_seconds": NumberWords("time that a CPU spends on this kind of work"),
        "run_seconds": NumberWords("time on a CPU"),
        "wait_seconds": NumberWords("time runnable, waiting for a CPU", better="less"),
    }
    files: ClassVar[Mapping[str, str]] = {
        # On a CPU without a tick (nohz_full) the kernel books what a thread ran once a second, unless it is asked for its stat: so a
        # poll-mode thread had run 0.2 to 0.7 s in windows of 0.03 s. It is asked before all else, and what it says is not wanted.
        f"{THREADS}/stat": NO_LINE,
        "/proc/stat": "^cpu[0-9]",
        f"{THREADS}/schedstat": "^[0-9]",
    }

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        yield from _cpus(recorded)
        yield from _threads(recorded)

    def loads(self, recorded: Recorded) -> Mapping[int, Load]:
        seconds: dict[int | None, dict[str, float]] = {}
        for one in _cpus(recorded):
            seconds.setdefault(one.cpu, {})[one.name] = one.value or 0.0
        # Of a CPU without a tick the kernel may have booked nothing: then it is not known.
        passed = {cpu: sum(kinds.values()) for cpu, kinds in seconds.items()}
        known = {cpu: whole for cpu, whole in passed.items() if cpu is not None and whole > 0}
        return {
            cpu: Load(1 - (seconds[cpu]["cpu_idle_seconds"] + seconds[cpu]["cpu_steal_seconds"]) / whole) for cpu, whole in known.items()
        }


def _cpus(recorded: Recorded) -> Iterable[Number]:
    old, new = _ticks(recorded.begin), _ticks(recorded.end)
    if not new or old.keys() != new.keys():
        raise ValueError(f"/proc/stat had the CPUs {sorted(old)} at the begin and {sorted(new)} at the end")
    for cpu, ticks in new.items():
        gained = {kind: (ticks[kind] - old[cpu][kind]) * TICK_S for kind in KINDS}
        seconds = {
            "user": gained["user"] + gained["nice"] - gained["guest"] - gained["guest_nice"],
            "kernel": gained["system"],
            "softirq": gained["softirq"],
            "irq": gained["irq"],
            "guest": gained["guest"] + gained["guest_nice"],
            "idle": gained["idle"] + gained["iowait"],
            "steal": gained["steal"],
        }
        role = recorded.placement.role_of_cpu(cpu)
        for kind, value in seconds.items():
            mode = {"user": "user", "guest": "guest", "idle": "all", "steal": "all"}.get(kind, "kernel")
            yield Number(f"cpu_{kind}_seconds", value, "seconds", role, cpu, mode, recorded.seconds, recorded.seconds)


def _ticks(text: str) -> dict[int, dict[str, int]]:
    rows = (line.split() for line in without_paths(text).splitlines() if line.startswith("cpu"))
    return {int(row[0][3:]): dict(zip(KINDS, map(int, row[1 : len(KINDS) + 1]), strict=True)) for row in rows}


def _threads(recorded: Recorded) -> Iterable[Number]:
    old, new = _schedstat(recorded.begin), _schedstat(recorded.end)
    for index, name in enumerate(("run_seconds", "wait_seconds")):
        gained = by_role({t: v[index] for t, v in old.items()}, {t: v[index] for t, v in new.items()}, recorded.placement)
        for role, value in sorted(gained.items()):
            yield Number(name, value, "seconds", role, None, "all", recorded.seconds, recorded.seconds)


def _schedstat(text: str) -> dict[int, tuple[float, float]]:
    """Each thread's seconds on a CPU, and seconds it was ready but waited for one (sched-stats: nanoseconds)."""
    read = ((tid, lines[0].split()) for tid, lines in threads(text).items())
    return {tid: (int(fields[0]) / 1e9, int(fields[1]) / 1e9) for tid, fields in read if len(fields) == 3}


COLLECTOR = CpuTime
