# SPDX-License-Identifier: GPL-2.0-or-later
"""Microbenchmarks whose events are known beforehand (micro/), in the lab under the model, and natively under perf stat."""

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vsprof.bench import perf
from vsprof.bench.model import PLUGIN, connect
from vsprof.collectors.uarch_model import BUILD
from vsprof.collectors.uarch_model.control import Control
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.lab import Lab

SOURCES = sorted(Path(__file__).with_name("micro").glob("*.c"))
PROGRAM = BUILD.parent / "bench" / "micro"
IN_LAB = "/root/micro"
CPU = 1
LINE, HUGE = 64, 2 << 20
MEASURED = (
    "instructions",
    "l1d_misses",
    "l2_misses",
    "llc_misses",
    "dtlb_misses",
    "dtlb_walks",
    "branch_misses",
    "kernel_entries",
    "cycles",
)


@dataclass(frozen=True)
class Item:
    """A microbenchmark, and how often each event must happen in an iteration."""

    name: str
    kind: str
    argument: int
    iterations: int
    expected: Mapping[str, float]

    @property
    def hugepages(self) -> int:
        """How many it needs, of 2 MiB."""
        return {"chase": -(-self.argument // HUGE), "hugepages": self.argument}.get(self.kind, 0)

    def words(self, times: int = 1) -> list[str]:
        """What the program is told."""
        return [self.kind, str(self.argument), str(self.iterations * times)]


def items(profile: Profile) -> list[Item]:
    """The microbenchmarks, sized for the profile's caches and TLBs."""
    p = profile.values
    l1, l2, llc = (p[f"{name}.sets"] * p[f"{name}.ways"] * LINE for name in ("l1d", "l2", "llc"))
    second, large = p["stlb.entries"], p["dtlb.2m.entries"]
    hit = {"l1d_misses": 0, "l2_misses": 0, "llc_misses": 0, "dtlb_walks": 0}
    return [
        Item("chase_l1", "chase", l1 // 2, 500_000, hit),
        Item("chase_l2", "chase", l2 // 2, 500_000, {**hit, "l1d_misses": 1, "cycles": p["l2.latency"]}),
        Item("chase_llc", "chase", max(2 * l2, llc // 8), 500_000, {**hit, "l1d_misses": 1, "l2_misses": 1, "cycles": p["llc.latency"]}),
        Item("chase_memory", "chase", 4 * llc, 3_000_000,
             {"l1d_misses": 1, "l2_misses": 1, "llc_misses": 1, "cycles": p["memory.latency_local"]}),
        Item("pages_stlb", "pages", second // 2, 500_000, {"dtlb_misses": 1, "dtlb_walks": 0}),
        Item("pages_walk", "pages", 4 * second, 500_000, {"dtlb_misses": 1, "dtlb_walks": 1}),
        Item("hugepages_stlb", "hugepages", 4 * large, 500_000, {"dtlb_misses": 1, "dtlb_walks": 0}),
        Item("stream_l2", "stream", l2 // 2, 100, {"l1d_misses": l2 // 2 / LINE, "llc_misses": 0}),
        Item("branch_random", "random", 0, 1_000_000, {"branch_misses": 0.5}),
        Item("branch_pattern", "pattern", 4, 1_000_000, {"branch_misses": 0}),
        Item("syscalls", "syscalls", 0, 100_000, {"kernel_entries": 1}),
    ]  # fmt: skip


def model(profile: Profile, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Each item's events per iteration, as modelled in the lab."""
    found = {}
    with Lab(say=say, plugins=[PLUGIN]) as host:
        control = connect(host, profile)
        install(host)
        for item in items(profile):
            say(f"model: {item.name}")
            modes = run_modelled(host, control, item)["modes"].values()
            found[item.name] = {event: sum(mode.get(event, 0) for mode in modes) / item.iterations for event in MEASURED}
        control.close()
    return found


def install(host: Lab) -> None:
    """Build the program and bring it into the lab."""
    build()
    host.push(PROGRAM.read_bytes(), IN_LAB)
    host.run(f"chmod 755 {IN_LAB}")


def run_modelled(host: Lab, control: Control, item: Item) -> Any:
    """What the item's CPU did between the marks, as the plug-in tells it."""
    # A fresh model for each: what one leaves in the caches is nothing to the next.
    control.change("model", wake=lambda: host.run("true"))
    # Always at the same addresses: without that, no two runs would touch the same sets.
    host.run(f"taskset -c {CPU} setarch --addr-no-randomize {IN_LAB} {' '.join(item.words())}", timeout=300)
    return control.ask_json("window")["cores"][CPU]


def native(profile: Profile, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Each item's events per iteration, as this processor counts them."""
    build()
    found: dict[str, dict[str, float]] = {}
    for item in items(profile):
        say(f"hardware: {item.name}")
        found[item.name] = {}
        for event, names in {"cycles": ["cycles"], "instructions": ["instructions"], **profile.events}.items():
            if event in MEASURED and (count := _per_iteration(item, names)) is not None:
                found[item.name][event] = count
    return found


def _per_iteration(item: Item, events: Iterable[str]) -> float | None:
    """Twice the iterations less once: the program's own beginning and end cancel out. None if perf can't count it."""
    once, twice = (_perf(item, list(events), times) for times in (1, 2))
    return None if once is None or twice is None else (twice.events - once.events) / item.iterations


def _perf(item: Item, events: list[str], times: int) -> perf.Count | None:
    command = [*perf.command(events), "taskset", "-c", "0", str(PROGRAM), *item.words(times)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return perf.read(ran.stdout, events) if ran.returncode == 0 else None


def build() -> None:
    """Compile the program. Raises ``VsprofError`` with the compiler's words."""
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    # Put in its place whole: another process may be running the one that is there.
    made = PROGRAM.with_name(f"{PROGRAM.name}.{os.getpid()}")
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-static", "-pthread", "-o", str(made), *map(str, SOURCES)]
    try:
        built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    except OSError as error:
        raise testbeds_messages.build_step_failed(command, 127, str(error)) from None
    if built.returncode != 0:
        raise testbeds_messages.build_step_failed(command, built.returncode, built.stderr)
    made.replace(PROGRAM)
