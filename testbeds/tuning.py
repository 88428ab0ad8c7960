# SPDX-License-Identifier: GPL-2.0-or-later
"""What of this host disturbs a measurement: shown as it is, written where asked and put back; and what only a boot can change."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vsprof.terms.placement import CpuPlan


@dataclass(frozen=True, slots=True)
class Setting:
    """One file of the kernel's: what it says now, and what would be better for measuring. Empty ``wanted``: only shown."""

    what: str
    path: str
    seen: str
    wanted: str
    cpu: int | None = None
    """The one that it is of; None: it is of all of the host."""

    @property
    def differs(self) -> bool:
        return bool(self.wanted) and self.seen not in (self.wanted, UNREADABLE)


UNREADABLE = "unreadable"
"""In place of what a file says: never written back."""
ISOLATED = "/sys/devices/system/cpu/isolated"
WANTED = (
    # An NMI watchdog holds one counter of each CPU's PMU.
    ("NMI watchdog", "/proc/sys/kernel/nmi_watchdog", "0"),
    ("automatic NUMA balancing", "/proc/sys/kernel/numa_balancing", "0"),
    # Else perf can neither count a CPU for other users nor resolve the kernel's symbols.
    ("perf's restriction", "/proc/sys/kernel/perf_event_paranoid", "-1"),
    ("restriction of kernel addresses", "/proc/sys/kernel/kptr_restrict", "0"),
    ("scheduler's limit on real-time threads", "/proc/sys/kernel/sched_rt_runtime_us", ""),
    ("transparent hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", ""),
    ("turbo forbidden (Intel)", "/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
    ("turbo (AMD and others)", "/sys/devices/system/cpu/cpufreq/boost", "0"),
    ("hyper-threads", "/sys/devices/system/cpu/smt/active", ""),
    ("isolated CPUs", ISOLATED, ""),
    ("CPUs without a tick", "/sys/devices/system/cpu/nohz_full", ""),
)
GOVERNOR = "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"


def look(cpus: Iterable[int]) -> list[Setting]:
    """Every setting that this host has, as it is now: of all of it, and of these CPUs."""
    whole = [Setting(what, path, _read(path), wanted) for what, path, wanted in WANTED if Path(path).exists()]
    paths = [(cpu, GOVERNOR.format(cpu=cpu)) for cpu in cpus if Path(GOVERNOR.format(cpu=cpu)).exists()]
    return [*whole, *(Setting(f"frequency governor of CPU {cpu}", path, _read(path), "performance", cpu) for cpu, path in paths)]


def differing(settings: Iterable[Setting]) -> list[Setting]:
    """Those that differ, in one for all CPUs of which the same is to be said: there may be hundreds."""
    found: list[Setting] = []
    same: dict[tuple[str, str], list[Setting]] = {}
    for setting in filter(lambda one: one.differs, settings):
        if setting.cpu is None:
            found.append(setting)
        else:
            same.setdefault((setting.seen, setting.wanted), []).append(setting)
    for first, *others in same.values():
        numbers = ", ".join(str(one.cpu) for one in (first, *others))
        found.append(replace(first, what=first.what.replace(f"CPU {first.cpu}", f"CPUs {numbers}")) if others else first)
    return found


def write(settings: Iterable[Setting]) -> None:
    """Write what differs. A file that the kernel won't have written stays as it is: ``look`` again tells."""
    for setting in settings:
        if setting.differs:
            try:
                Path(setting.path).write_text(f"{setting.wanted}\n")
            except OSError:
                continue


def undo(settings: Iterable[Setting]) -> list[str]:
    """Shell lines that put everything back as ``look`` saw it."""
    return [f"echo {shlex.quote(setting.seen)} > {shlex.quote(setting.path)}" for setting in settings if setting.differs]


def advice(plan: CpuPlan) -> str:
    """What belongs on the kernel's command line: nothing that runs can do it."""
    cpus = ",".join(map(str, measured(plan)))
    return f"isolcpus={cpus} nohz_full={cpus} rcu_nocbs={cpus} default_hugepagesz=2M"


def measured(plan: CpuPlan) -> Sequence[int]:
    """The CPUs of a plan that must be left alone: all but the housekeeping CPU."""
    return list(plan.own)


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return UNREADABLE
