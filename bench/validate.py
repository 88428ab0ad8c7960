# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right? Microbenchmarks, two switches, and the same work twice.

On a machine with a working PMU whose processor has a profile, everything also runs natively under perf stat, and the
model is compared with the processor. Without one the microbenchmarks are compared with what the profile's own shape says
must happen: a random walk through half of L2 misses L1 every time and L2 never. Of the switches there is then the model's
side, and natively how many packets a second they forward.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from analysis import stats
from analysis.stats import Estimate
from bench import microbenchmarks, native, perf, repeat, table, user_mode_linux
from bench import validate_switches as switches
from collectors.uarch_model import profiles
from collectors.uarch_model.profiles import Profile
from terms import errors
from testbeds.emulator import image

Say = Callable[[str], None]
Rows = dict[str, tuple[Estimate, str]]

FEW = 0.01
"""Events per packet: of fewer, no fraction is made."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cpu-profile", help="default: this machine's own, if there is one, else " + profiles.DEFAULT)
    parser.add_argument("--part", choices=PARTS, action="append", help="what to do; can be given again (default: all)")
    asked = parser.parse_args(arguments)
    try:
        return _validate(asked.cpu_profile, asked.part or list(PARTS), lambda text: print(text, file=sys.stderr))
    except errors.VsprofError as error:
        print(f"validate-model: {error}", file=sys.stderr)
        return error.exit_status


def _validate(wanted: str | None, parts: list[str], say: Say) -> int:
    own = profiles.for_host(Path("/proc/cpuinfo").read_text())
    profile = profiles.load(wanted or own or profiles.DEFAULT)
    why = perf.missing() or ("" if own == profile.id else f"this processor is none that {profile.id} describes")
    print(f"profile {profile.id}; " + (f"compared with what must happen, for {why}" if why else "compared with this processor"))
    rows: Rows = {}
    for part in parts:
        rows |= PARTS[part](profile, why, say)
    print(table.write("validate-model", rows))
    return 0


# --- Microbenchmarks --------------------------------------------------------------------------------------------


def _microbenchmarks(profile: Profile, why: str, say: Say) -> Rows:
    """``why`` there is no hardware to compare with, or nothing."""
    # Prefetchers would spoil what is known beforehand; against hardware they stay, for it has them, too.
    modelled = microbenchmarks.model(profile.without("prefetch") if why else profile, say)
    items = microbenchmarks.items(profile)
    known = {item.name: item.expected for item in items} if why else _hardware(profile, max(item.hugepages for item in items), say)
    rows: Rows = {}
    print(f"\n{'item':16} {'event per iteration':20} {'hardware' if not why else 'must be':>10} {'model':>10}   error")
    for item, events in known.items():
        for event, must in events.items():
            seen = modelled[item][event]
            error = (seen - must) / must if must else seen
            rows[f"{item}_{event}_error"] = (_once(error), "fraction" if must else "events")
            print(f"{item:16} {event:20} {must:10.4g} {seen:10.4g}   " + (f"{100 * error:+.1f} %" if must else f"{error:+.4f}"))
    return rows


def _hardware(profile: Profile, hugepages: int, say: Say) -> dict[str, dict[str, float]]:
    # Without root they are those that the machine has already, or the items that need some are left out.
    with native.hugepages(hugepages) if os.geteuid() == 0 else contextlib.nullcontext():
        return microbenchmarks.native(profile, say)


# --- Switches ---------------------------------------------------------------------------------------------------


def _switches(profile: Profile, why: str, say: Say) -> Rows:
    tree = image.get(say).tree
    folders, chosen = {}, list(switches.SWITCHES)
    try:
        folders["uml"] = user_mode_linux.get(tree, say)
    except errors.VsprofError as error:
        chosen = [switch for switch in chosen if "uml" not in switch.folders]
        print(f"\nkernel_ovs is left out: {error}")
    events = {} if why else switches.hardware_events(profile)
    natively = {switch.name: _natively(switch, tree, folders, events, say) for switch in chosen}
    modelled = switches.modelled(chosen, folders, profile, say)
    rows: Rows = {}
    print(f"\n{'switch':12} {'per packet, user mode':22} {'hardware' if events else '':>10} {'model':>10}   error")
    for name, windows in modelled.items():
        rows |= _switch_rows(name, windows, natively[name], bool(events))
    if not events:
        print(f"No hardware column and no error, for {why}.")
    return rows


def _natively(
    switch: switches.Switch, tree: Path, folders: Mapping[str, Path], events: Mapping[str, list[str]], say: Say
) -> list[dict[str, float]]:
    """Nothing, where it can't be done; that is said."""
    if why := native.unavailable():
        print(f"\n{switch.name} does not run natively: {why}")
        return []
    try:
        return switches.natively(switch, tree, folders, events, say)
    except errors.RunFailed as error:
        print(f"\n{switch.name} does not run natively: {error}")
        return []


def _switch_rows(switch: str, modelled: list[dict[str, float]], natively: list[dict[str, float]], compared: bool) -> Rows:
    """With hardware the errors; without it the model's numbers themselves."""
    rows: Rows = {}
    for metric in modelled[0]:
        here, there = (_sample(windows, metric) for windows in (modelled, natively))
        model = stats.estimate(here)
        if metric in switches.FACTS:
            # Compared nowhere: the lab's rate is the emulator's.
            print(f"{switch:12} {switches.FACTS[metric]:22} {_fact(stats.estimate(there), model)}")
            if there:
                rows[f"{switch}_native_{metric}"] = (stats.estimate(there), switches.FACTS[metric])
        elif compared and there:
            rows[f"{switch}_{metric}_error"] = error = _error(here, there)
            print(f"{switch:12} {metric:22} {_number(stats.estimate(there)):>10} {_number(model):>10}   {_shown(error)}")
        elif not compared:
            rows[f"{switch}_{metric}_modelled"] = (model, "cycles/instruction" if metric == "cpi" else "events/packet")
            print(f"{switch:12} {metric:22} {'':10} {_number(model):>10}")
    return rows


def _fact(natively: Estimate, modelled: Estimate) -> str:
    return f"{natively.median:.4g} natively, {modelled.median:.4g} in the lab while modelled" if natively.n else "not run natively"


def _number(one: Estimate) -> str:
    """What is left of next to nothing when the polls in vain are taken out may be below it."""
    return f"{one.median:.4g}" if abs(one.median) >= 1e-4 else "0.0000"


def _error(model: stats.Sample, hardware: stats.Sample) -> tuple[Estimate, str]:
    """A fraction; of what hardly happens, the difference in events."""
    if (base := stats.estimate(hardware).median) < FEW:
        return _once(stats.estimate(model).median - base), "events"
    ratio = stats.ratio(model, hardware)
    low, high = (None if bound is None else bound - 1 for bound in (ratio.low, ratio.high))
    return Estimate(ratio.median - 1, low, high, ratio.n), "fraction"


def _shown(error: tuple[Estimate, str]) -> str:
    estimate, unit = error
    return f"{100 * estimate.median:+.1f} %" if unit == "fraction" else f"{estimate.median:+.4f}"


def _sample(windows: list[dict[str, float]], metric: str) -> stats.Sample:
    return [np.array([[window[metric], 1.0]]) for window in windows if metric in window]


def _once(value: float) -> Estimate:
    return stats.estimate([np.array([[value, 1.0]])])


# --- The same work twice ----------------------------------------------------------------------------------------


def _repeat(profile: Profile, why: str, say: Say) -> Rows:
    """Hardware has no part in it, whether there is some or not."""
    rows: Rows = {}
    runs = repeat.measure(profile, say)
    print(f"\n{'twice the same':16} {'user mode':20} {'first':>12} {'second':>12}   difference")
    for item, (first, second) in runs.items():
        for counter in repeat.COUNTERS:
            one, other = first.user[counter], second.user[counter]
            rows[f"repeat_{item}_{counter}_difference"] = (_once(other - one), "events")
            print(f"{item:16} {counter:20} {one:12.0f} {other:12.0f}   {other - one:+.0f}")
        if words := repeat.explain(first, second):
            print(f"{item:16} {words}")
    return rows


PARTS: dict[str, Callable[[Profile, str, Say], Rows]] = {
    "microbenchmarks": _microbenchmarks,
    "switches": _switches,
    "repeat": _repeat,
}
"""What is done, in this order."""


if __name__ == "__main__":
    sys.exit(main())
