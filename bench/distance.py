# SPDX-License-Identifier: GPL-2.0-or-later
"""How far apart two CPUs are, for a line of the cache that one writes and the other reads."""

from collections.abc import Iterable
from pathlib import Path

from vsprof.bench import micro_times, microbenchmarks
from vsprof.collectors.uarch_model import profiles


class Distance:
    """Whether a CPU has a cache in common with each of some others, each time that it is asked: ``near``; else ``far``.

    A hypervisor moves a virtual machine's CPUs about, within minutes.
    """

    def __init__(self, cpu: int, partners: Iterable[int]) -> None:
        """Raises ``VsprofError`` where its program can't be compiled."""
        microbenchmarks.build()
        self._cpu, self._partners = cpu, sorted({*partners} - {cpu})
        self._profile = profiles.load(profiles.for_host(Path("/proc/cpuinfo").read_text()) or profiles.DEFAULT)
        self.seen: dict[str, list[float]] = {}
        """Nanoseconds that a line took to the one that is farthest, by what was answered."""

    def __call__(self) -> str:
        """Nothing else may want the CPUs meanwhile: some 10 ms for each pair. Raises ``RunFailed``."""
        took = max(micro_times.between_cpus(self._cpu, partner) for partner in self._partners)
        place = "near" if micro_times.is_near(took, self._profile) else "far"
        self.seen.setdefault(place, []).append(took)
        return place
