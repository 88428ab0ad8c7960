# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right? Microbenchmarks, two switches, and the same work twice.

On a machine with a working PMU whose processor has a profile, everything also runs natively under perf stat, and the
model is compared with the processor. Without one the microbenchmarks are compared with what the profile's own shape says
must happen: a random walk through half of L2 misses L1 every time and L2 never. Of the switches there is then the model's
side, and natively how many packets a second they forward.

All that is found becomes rows of one document (analysis/validation.py): of these the printed tables, validate-model.json,
validation.json and validate-model.html are made.
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from vsprof.analysis import explain_validation, report, stats, validation
from vsprof.analysis.describe import Table
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import Note, Row, Validation
from vsprof.bench import compared, messages, microbenchmarks, native, perf, repeat, table, user_mode_linux
from vsprof.bench import validate_switches as switches
from vsprof.collectors.uarch_model import profiles
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.terms import errors
from vsprof.testbeds.emulator import image

Say = Callable[[str], None]

PAGE = "validate-model.html"


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
    cpuinfo = Path("/proc/cpuinfo").read_text()
    own = profiles.for_host(cpuinfo)
    profile = profiles.load(wanted or own or profiles.DEFAULT)
    why = perf.missing() or ("" if own == profile.id else f"this processor is none that {profile.id} describes")
    print(f"profile {profile.id}; " + (f"compared with what must happen, for {why}" if why else "compared with this processor"))
    found = Validation(
        profile=profile.id,
        processor=profile.name,
        why_no_hardware=why or None,
        cpu_model=cpu_model(cpuinfo),
        when=datetime.now(UTC),
        parts=list(dict.fromkeys(parts)),
    )
    for part in found.parts:
        PARTS[part](profile, found, say)
        _print(part, found)
    print(table.write("validate-model", named(found)))
    print(found.write(table.FOLDER))
    print(report.page(table.FOLDER, "validation", table.FOLDER / PAGE))
    return 0


def cpu_model(cpuinfo: str) -> str:
    """The processor's name, by the text of /proc/cpuinfo."""
    return next((line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")), "unknown")


def named(found: Validation) -> dict[str, tuple[Estimate, str]]:
    """What validate-model.json keeps: errors; where there are none, of switches the model's numbers themselves, and the native rates."""
    return dict(one for row in found.rows if (one := _named(row, found.hardware)))


def _named(row: Row, hardware: bool) -> tuple[str, tuple[Estimate, str]] | None:
    if row.error is not None:
        name = f"repeat_{row.item}_{row.event}_difference" if row.part == "repeat" else f"{row.item}_{row.event}_error"
        return name, (row.error, str(row.error_unit))
    if not row.of_processor:
        return (f"{row.item}_native_{row.event}", (row.reference, row.unit)) if row.reference else None
    return None if hardware else (f"{row.item}_{row.event}_modelled", (row.modelled, row.unit))


def _print(part: str, found: Validation) -> None:
    explained = explain_validation.Events(found)
    tables = [explained.table(part), *([explained.rates()] if part == "switches" else [])]
    for one in tables:
        if isinstance(one, Table):
            table.show(one.frame)
    for note in found.notes:
        if note.part == part:
            print(f"{note.item}: {note.text}")
    if part == "switches" and not found.hardware:
        print(f"No hardware column and no error, for {found.why_no_hardware}.")


# --- Microbenchmarks --------------------------------------------------------------------------------------------


def _microbenchmarks(profile: Profile, found: Validation, say: Say) -> None:
    # Prefetchers would spoil what is known beforehand; against hardware they stay, for it has them, too.
    modelled = microbenchmarks.model(profile if found.hardware else profile.without("prefetch"), say)
    items = microbenchmarks.items(profile)
    known = _hardware(profile, max(item.hugepages for item in items), say) if found.hardware else {}
    for item in items:
        beside = known.get(item.name, {}) if found.hardware else item.expected
        if not beside:
            found.notes.append(Note(part="microbenchmarks", item=item.name, text=messages.not_counted_here()))
        for event, must in beside.items():
            found.rows.append(_microbenchmark(item.name, event, must, modelled[item.name][event], counted=found.hardware))


def _microbenchmark(item: str, event: str, must: float, seen: float, *, counted: bool) -> Row:
    reference = Estimate(float(must), None, None, int(counted))
    error, unit = compared.error(compared.sample([seen]), compared.sample([must]))
    return Row(
        part="microbenchmarks", item=item, event=event, unit=validation.PER_ITERATION,
        reference=reference, modelled=compared.once(seen), error=error, error_unit=unit,
    )  # fmt: skip


def _hardware(profile: Profile, hugepages: int, say: Say) -> dict[str, dict[str, float]]:
    # Without root they are those that the machine has already, or the items that need some are left out.
    with native.hugepages(hugepages) if os.geteuid() == 0 else contextlib.nullcontext():
        return microbenchmarks.native(profile, say)


# --- Switches ---------------------------------------------------------------------------------------------------


def _switches(profile: Profile, found: Validation, say: Say) -> None:
    tree = image.get(say).tree
    folders, chosen = {}, list(switches.SWITCHES)
    try:
        folders["uml"] = user_mode_linux.get(tree, say)
    except errors.VsprofError as error:
        chosen = [switch for switch in chosen if "uml" not in switch.folders]
        found.notes.append(Note(part="switches", item="user_mode_linux", text=messages.left_out(error)))
    events = switches.hardware_events(profile) if found.hardware else {}
    natively = {switch.name: _natively(switch, tree, folders, events, found, say) for switch in chosen}
    for name, windows in switches.modelled(chosen, folders, profile, say).items():
        found.rows.extend(_switch_rows(name, windows, natively[name]))


def _natively(
    switch: switches.Switch,
    tree: Path,
    folders: Mapping[str, Path],
    events: Mapping[str, list[str]],
    found: Validation,
    say: Say,
) -> list[dict[str, float]]:
    """Nothing, where it can't be done; that is said."""
    try:
        why: object = native.unavailable()
        if not why:
            return switches.natively(switch, tree, folders, events, say)
    except errors.RunFailed as error:
        why = error
    found.notes.append(Note(part="switches", item=switch.name, text=messages.not_natively(why)))
    return []


def _switch_rows(switch: str, modelled: list[dict[str, float]], natively: list[dict[str, float]]) -> list[Row]:
    """Each metric that was modelled, and what it was natively, where it was counted there."""
    return [_switch_row(switch, metric, _sample(modelled, metric), _sample(natively, metric)) for metric in modelled[0]]


def _switch_row(switch: str, metric: str, here: stats.Sample, there: stats.Sample) -> Row:
    unit = switches.FACTS.get(metric) or (validation.CPI if metric == "cpi" else validation.PER_PACKET)
    # The lab's rate is the emulator's: it is compared with nothing.
    error, error_unit = compared.error(here, there) if there and metric not in switches.FACTS else (None, None)
    return Row(
        part="switches", item=switch, event=metric, unit=unit,
        reference=stats.estimate(there) if there else None, modelled=stats.estimate(here), error=error, error_unit=error_unit,
    )  # fmt: skip


def _sample(windows: list[dict[str, float]], metric: str) -> stats.Sample:
    return compared.sample(window[metric] for window in windows if metric in window)


# --- The same work twice ----------------------------------------------------------------------------------------


def _repeat(profile: Profile, found: Validation, say: Say) -> None:
    """Hardware has no part in it, whether there is some or not."""
    for item, (first, second) in repeat.measure(profile, say).items():
        found.rows.extend(_twice(item, counter, first.user[counter], second.user[counter]) for counter in repeat.COUNTERS)
        if words := repeat.explain(first, second):
            found.notes.append(Note(part="repeat", item=item, text=words))


def _twice(item: str, counter: str, first: float, second: float) -> Row:
    return Row(
        part="repeat", item=item, event=counter, unit=validation.EVENTS,
        reference=compared.once(first), modelled=compared.once(second), error=compared.once(second - first), error_unit="events",
    )  # fmt: skip


PARTS: dict[str, Callable[[Profile, Validation, Say], None]] = {
    "microbenchmarks": _microbenchmarks,
    "switches": _switches,
    "repeat": _repeat,
}
"""What is done, in this order."""


if __name__ == "__main__":
    sys.exit(main())
