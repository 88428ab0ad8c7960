# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right? Microbenchmarks whose events are known, run in the lab under the model.

On a machine with a working PMU whose processor has a profile, the same program also runs natively under perf stat, and the
model is compared with the processor. Without one it is compared with what the profile's own shape says must happen: a random
walk through half of L2 misses L1 every time and L2 never.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis import stats
from bench import table
from bench.model import PLUGIN, connect
from collectors.uarch_model import BUILD, profiles
from collectors.uarch_model.profiles import Profile
from terms import errors
from testbeds.lab import Lab

SOURCE = Path(__file__).with_name("micro.c")
PROGRAM = BUILD.parent / "bench" / "micro"
CPU = 1
LINE = 64
HUGE = 2 << 20
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


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cpu-profile", help="default: this machine's own, if there is one, else " + profiles.DEFAULT)
    asked = parser.parse_args(arguments)
    try:
        return _validate(asked.cpu_profile, lambda text: print(text, file=sys.stderr))
    except errors.VsprofError as error:
        print(f"validate-model: {error}", file=sys.stderr)
        return error.exit_status


def _validate(wanted: str | None, say: Callable[[str], None]) -> int:
    own = profiles.for_host(Path("/proc/cpuinfo").read_text())
    profile = profiles.load(wanted or own or profiles.DEFAULT)
    why = "" if own == profile.id else f"this processor is none that {profile.id} describes"
    why = why or no_pmu()
    say(f"profile {profile.id}; " + (f"compared with what must happen, for {why}" if why else "compared with this processor"))
    _build()
    # Prefetchers would spoil what is known beforehand; against hardware they stay, for it has them, too.
    modelled = model(profile.without("prefetch") if why else profile, say)
    known = {item.name: item.expected for item in items(profile)} if why else native(profile, say)
    rows = {}
    print(f"{'item':16} {'event per iteration':20} {'hardware' if not why else 'must be':>10} {'model':>10}   error")
    for item, events in known.items():
        for event, must in events.items():
            seen = modelled[item][event]
            error = (seen - must) / must if must else seen
            rows[f"{item}_{event}_error"] = (stats.estimate([np.array([[error, 1.0]])]), "fraction" if must else "events")
            print(f"{item:16} {event:20} {must:10.4g} {seen:10.4g}   " + (f"{100 * error:+.1f} %" if must else f"{error:+.4f}"))
    print(table.write("validate-model", rows))
    return 0


def model(profile: Profile, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Each item's events per iteration, as modelled in the lab."""
    found = {}
    with Lab(say=say, plugins=[PLUGIN]) as host:
        control = connect(host, profile)
        host.push(PROGRAM.read_bytes(), "/root/micro")
        host.run("chmod 755 /root/micro")
        for item in items(profile):
            say(f"model: {item.name}")
            # A fresh model for each: what one leaves in the caches is nothing to the next.
            control.change("model", wake=lambda: host.run("true"))
            host.run(f"taskset -c {CPU} /root/micro {item.kind} {item.argument} {item.iterations}", timeout=300)
            modes = control.ask_json("window")["cores"][CPU]["modes"].values()
            found[item.name] = {event: sum(mode.get(event, 0) for mode in modes) / item.iterations for event in MEASURED}
        control.close()
    return found


def native(profile: Profile, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Each item's events per iteration, as this processor counts them."""
    found: dict[str, dict[str, float]] = {}
    for item in items(profile):
        say(f"hardware: {item.name}")
        found[item.name] = {}
        for event, names in {"cycles": ["cycles"], "instructions": ["instructions"], **profile.events}.items():
            if event in MEASURED and (count := _per_iteration(item, names)) is not None:
                found[item.name][event] = count
    return found


def _per_iteration(item: Item, events: list[str]) -> float | None:
    """Twice the iterations less once: the program's own beginning and end cancel out. None if perf can't count it."""
    once, twice = (_perf(item, events, item.iterations * times) for times in (1, 2))
    return None if once is None or twice is None else (twice - once) / item.iterations


def _perf(item: Item, events: list[str], iterations: int) -> float | None:
    command = ["perf", "stat", "-x", ";", "-e", ",".join(f"{event}:u" for event in events), "--", "taskset", "-c", "0"]
    ran = subprocess.run(
        [*command, str(PROGRAM), item.kind, str(item.argument), str(iterations)], capture_output=True, text=True, timeout=300, check=False
    )
    values = [line.split(";")[0] for line in ran.stderr.splitlines() if ";" in line]
    if ran.returncode != 0 or len(values) != len(events) or not all(value.replace(".", "", 1).isdigit() for value in values):
        return None
    return sum(map(float, values))


def no_pmu() -> str:
    """Why this machine can't say what a processor counts, or nothing."""
    if shutil.which("perf") is None:
        return "there is no perf here"
    command = ["perf", "stat", "-x", ";", "-e", "instructions:u", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    count = tried.stderr.strip().partition(";")[0]
    if tried.returncode == 0 and count.isdigit() and int(count) > 0:
        return ""
    return f"there is no working PMU here (perf said {count or 'nothing'})"


def _build() -> None:
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-static", "-o", str(PROGRAM), str(SOURCE)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if built.returncode != 0:
        raise errors.build_step_failed(command, built.returncode, built.stderr)


if __name__ == "__main__":
    sys.exit(main())
