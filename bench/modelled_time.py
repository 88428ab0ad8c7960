# SPDX-License-Identifier: GPL-2.0-or-later
"""Has modelled time converged? The same flood with CPUs kept together within ever fewer microseconds, in a second lab resumed from the
same snapshot, and beside a program that takes one of this machine's CPUs. If the prediction is of the modelled processor, none of these
changes it.

Quanta take turns in one lab, so that each is set beside the next smaller one under the same conditions; so do windows beside that program
and windows without it.
"""

import argparse
import contextlib
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vsprof.analysis.stats import Estimate
from vsprof.bench import table
from vsprof.bench.compared import estimate
from vsprof.bench.flood import Say, flood
from vsprof.bench.modelled_flood import Counted, ModelledPath, modelled
from vsprof.collectors.uarch_model import QUANTUM_US, profiles
from vsprof.runner.experiment import Case
from vsprof.terms import errors
from vsprof.terms import messages as terms_messages
from vsprof.testbeds.processes import dying_with_parent
from vsprof.workloads.traffic.base import Traffic

CASES = {"kernel-ovs": "vhost-net", "ovs-dpdk": "vhost-user"}
"""Each switch with its usual access."""
QUANTA_US = (0.5, 1, 2, 5, 10, 20)
TURNS = 3
PAIRS = 3
"""Windows beside a busy program, and as many without, in each turn: over kernel OVS single windows differ by some percent."""
SECONDS = {"kernel-ovs": 0.1, "ovs-dpdk": 0.03}
"""Of modelled time, in a window. Over kernel OVS two vhost workers alternate by milliseconds, and shorter windows differ by more."""
WARMUP_SECONDS = 0.02
"""Of modelled time, before a window."""
FRAME_BYTES = 64
BUSY = "while True: pass"


@dataclass(frozen=True)
class Seen:
    """One window."""

    rate: float
    """Packets per second out of the switch."""
    misses: float
    """Of L1D, by all CPUs, for each packet."""
    switches: float
    """Of tasks, likewise."""
    slowness: float
    """Real seconds for each modelled one."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--switches", default=",".join(CASES))
    parser.add_argument("--quanta", default=",".join(f"{quantum:g}" for quantum in QUANTA_US), help="in microseconds, from small to large")
    parser.add_argument("--cpu-profile", default=profiles.DEFAULT)
    asked = parser.parse_args(arguments)
    numbers: dict[str, tuple[Estimate, str]] = {}
    try:
        for switch in asked.switches.split(","):
            quanta = [float(quantum) for quantum in asked.quanta.split(",")]
            numbers |= measure(switch, quanta, asked.turns, asked.cpu_profile, lambda text: print(text, file=sys.stderr))
            # Kept whatever becomes of the next switch.
            table.write("bench-time", numbers)
        path = table.report("bench-time", numbers)
    except errors.VsprofError as error:
        print(f"bench-time: {error}", file=sys.stderr)
        return error.exit_status
    print(path)
    return 0


def measure(switch: str, quanta: Sequence[float], turns: int, cpu_profile: str, say: Say) -> dict[str, tuple[Estimate, str]]:
    """All numbers of one switch. Raises ``VsprofError``."""
    if switch not in CASES:
        raise terms_messages.unknown_value("switch", switch, CASES)
    with _flood(switch, cpu_profile, say) as path:
        of_quantum: dict[float, list[Seen]] = {quantum: [] for quantum in quanta}
        for turn in range(1, turns + 1):
            for quantum, seen in of_quantum.items():
                say(f"{switch}: turn {turn} of {turns}, a quantum of {quantum} us")
                seen.append(path.window(quantum))
        say(f"{switch}: alone, and beside a program that takes a CPU")
        alone, loaded = [], []
        for _ in range(PAIRS * turns):
            alone.append(path.window(QUANTUM_US))
            with _busy_cpu():
                loaded.append(path.window(QUANTUM_US))
    with _flood(switch, cpu_profile, say) as path:
        say(f"{switch}: once more, from the same snapshot")
        again = [path.window(QUANTUM_US) for _ in alone]
        skew = path.clock()["far_apart_share"]
    numbers = _by_quantum(switch, of_quantum)
    numbers[f"{switch}_rate"] = estimate([one.rate for one in alone]), "packets/s"
    numbers[f"{switch}_rate_repeat_difference"] = _difference(alone, again, "rate"), ""
    numbers[f"{switch}_rate_loaded_difference"] = _difference(alone, loaded, "rate"), ""
    numbers[f"{switch}_wall_per_modelled_second"] = estimate([one.slowness for one in alone]), ""
    numbers[f"{switch}_skew_share"] = estimate([skew]), ""
    return numbers


def _by_quantum(switch: str, of_quantum: dict[float, list[Seen]]) -> dict[str, tuple[Estimate, str]]:
    """Each quantum against the next smaller one, turn by turn."""
    numbers: dict[str, tuple[Estimate, str]] = {}
    for quantum, seen in of_quantum.items():
        numbers[f"{switch}_wall_per_modelled_second_{quantum:g}us"] = estimate([one.slowness for one in seen]), ""
    for smaller, larger in itertools.pairwise(of_quantum):
        for what in ("rate", "misses", "switches"):
            difference = _difference(of_quantum[smaller], of_quantum[larger], what)
            numbers[f"{switch}_{what}_difference_{larger:g}us"] = difference, ""
    return numbers


def _difference(first: list[Seen], second: list[Seen], what: str) -> Estimate:
    """By how much the second differs from the first, as a fraction of it: of each pair of windows."""
    pairs = zip(first, second, strict=True)
    return estimate([getattr(b, what) / getattr(a, what) - 1 for a, b in pairs])


class _Path:
    """A flood that flows through a switch in a lab, and windows of modelled time on it."""

    def __init__(self, path: ModelledPath, traffic: Traffic, seconds: float) -> None:
        self._path, self._traffic, self._seconds = path, traffic, seconds

    def window(self, quantum_us: float) -> Seen:
        self._path.model.set_quantum(quantum_us)
        counted = self._path.window(self._traffic, self._seconds, WARMUP_SECONDS)
        return Seen(counted.rate, *(_sum(counted, name) / counted.packets for name in ("l1d_misses", "task_switches")), counted.slowness)

    def clock(self) -> dict[str, float]:
        return self._path.model.clock_facts()


def _sum(counted: Counted, counter: str) -> float:
    return sum(mode.get(counter, 0) for core in counted.cores for mode in core["modes"].values())


@contextlib.contextmanager
def _flood(switch: str, cpu_profile: str, say: Say) -> Iterator[_Path]:
    """A lab of its own, in which a flood at saturation flows from one guest to the other."""
    with modelled(Case("vm2vm", switch, CASES[switch], FRAME_BYTES, 1), cpu_profile, say) as path:
        traffic = flood(path.topology, FRAME_BYTES)
        yield _Path(path, traffic, SECONDS[switch])
        traffic.stop()


@contextlib.contextmanager
def _busy_cpu() -> Iterator[None]:
    # Where the benchmark is killed it would go on for ever.
    busy = subprocess.Popen([sys.executable, "-c", BUSY], preexec_fn=dying_with_parent())
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


if __name__ == "__main__":
    sys.exit(main())
