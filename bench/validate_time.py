# SPDX-License-Identifier: GPL-2.0-or-later
"""Are the times right that the model predicts? The same programs natively, by this machine's clock, and in the lab, by the modelled one.

It takes no PMU: what the model predicts is time, and any machine can measure that. The errors are about this machine's processor where a
profile describes it; where none does, the default profile is taken, and all output says so.

All that is found becomes rows of one document (analysis/validation.py): of these the printed tables, validate-time.json,
validation-time.json and validate-time.html are made.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from vsprof.analysis import explain_validation, report, stats
from vsprof.analysis.describe import Table
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import NS_PER_ITERATION, NS_PER_PACKET, TIME, Note, Row, Side, TimeValidation
from vsprof.bench import compared, messages, micro_guest, micro_times, native, switch_times, table, user_mode_linux
from vsprof.bench.micro_times import ADDS
from vsprof.bench.validate import cpu_model
from vsprof.collectors.uarch_model import COLLECTOR, QUANTUM_US, profiles
from vsprof.collectors.uarch_model.profiles import Profile
from vsprof.terms import errors
from vsprof.testbeds.emulator import image

TARGET = "validate-time"
PAGE = "validate-time.html"
UNITS = {"microbenchmarks": NS_PER_ITERATION, "switches": NS_PER_PACKET}
SAME_FREQUENCY = 0.01
"""A fraction: by what part the frequency natively may differ from the profile's before it is told."""

Say = Callable[[str], None]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cpu-profile", help="default: this machine's own, if there is one, else " + profiles.DEFAULT)
    parser.add_argument("--part", choices=PARTS, action="append", help="what to do; can be given again (default: all)")
    parser.add_argument("--quantum-us", type=float, default=QUANTUM_US, help="how far the lab's CPUs may be apart (default: %(default)g)")
    asked = parser.parse_args(arguments)
    try:
        COLLECTOR.check_options({"quantum_us": asked.quantum_us})
        found = validate(
            asked.cpu_profile, asked.part or list(PARTS), asked.quantum_us, lambda text: print(text, file=sys.stderr, flush=True)
        )
        _write(found)
    except errors.VsprofError as error:
        print(f"{TARGET}: {error}", file=sys.stderr)
        return error.exit_status
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def validate(wanted: str | None, parts: list[str], quantum_us: float, say: Say) -> TimeValidation:
    """All that was found. Raises ``VsprofError``."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    own, model = profiles.for_host(cpuinfo), cpu_model(cpuinfo)
    profile = profiles.load(wanted or own or profiles.DEFAULT)
    why = _why_other(model, own, profile.id)
    found = TimeValidation(
        profile=profile.id,
        processor=profile.name,
        why_other=why,
        cpu_model=model,
        quantum_s=quantum_us / 1e6,
        native=Side(frequency_hz=None, kernel=micro_times.own_kernel(), load=None),
        lab=Side(frequency_hz=float(profile.frequency_hz), kernel="", load=None),
        when=datetime.now(UTC),
        parts=list(dict.fromkeys(parts)),
    )
    print(explain_validation.Times(found).about)
    for part in found.parts:
        found = PARTS[part](profile, found, say)
        _print(part, found)
        # Kept, whatever becomes of the next part.
        found.write(table.FOLDER)
    return found


def _why_other(model: str, own: str | None, profile: str) -> str | None:
    if own == profile:
        return None
    return messages.no_profile_here(model, profile) if own is None else messages.another_profile(model, profile)


def _print(part: str, found: TimeValidation) -> None:
    one = explain_validation.Times(found).table(part)
    if isinstance(one, Table):
        table.show(one.frame)
    for note in found.notes:
        if note.part == part:
            print(f"{note.item}: {note.text}")


def _write(found: TimeValidation) -> None:
    print(explain_validation.Times(found).answer())
    print(table.write(TARGET, named(found)))
    print(found.write(table.FOLDER))
    print(report.page(table.FOLDER, "validation-time", table.FOLDER / PAGE))


def named(found: TimeValidation) -> dict[str, tuple[Estimate, str]]:
    """What validate-time.json keeps: each item's error, and what it was natively and as modelled."""
    rows: dict[str, tuple[Estimate, str]] = {}
    for row in found.rows:
        if row.error is not None:
            rows[f"{row.item}_time_error"] = row.error, str(row.error_unit)
    for row in found.rows:
        rows |= {f"{row.item}_time_{side}": (one, row.unit) for side, one in (("native", row.reference), ("modelled", row.modelled)) if one}
    return rows


def row(part: str, item: str, natively: Sequence[float], modelled: Sequence[float]) -> Row:
    """A time, in nanoseconds, from as many measurements as there are on each side."""
    here, there = compared.sample(modelled), compared.sample(natively)
    error, unit = compared.error(here, there) if natively else (None, None)
    return Row(
        part=part, item=item, event=TIME, unit=UNITS[part],
        reference=stats.estimate(there) if natively else None, modelled=stats.estimate(here), error=error, error_unit=unit,
    )  # fmt: skip


# --- Microbenchmarks --------------------------------------------------------------------------------------------


def _microbenchmarks(profile: Profile, found: TimeValidation, say: Say) -> TimeValidation:
    items = micro_times.items(profile)
    natively, why = micro_times.natively(items, micro_times.NATIVE_ROUNDS, say)
    load = os.getloadavg()[0]
    modelled, kernel = micro_times.modelled(items, profile, found.quantum_s * 1e6, micro_times.LAB_ROUNDS, say)
    if micro_guest.needed():
        modelled |= _in_a_guest([item for item in items if item.hypervisor], profile, found, say)
    for item in items:
        here, there = (list(map(of, side[item.name])) for of, side in ((micro_times.shortest, natively), (micro_times.median, modelled)))
        found.rows.append(row("microbenchmarks", item.name, _near(item, here, profile, found), there))
    found.notes.extend(Note(part="microbenchmarks", item=item, text=messages.not_natively(text)) for item, text in why.items())
    if micro_times.copies_differ(natively, modelled):
        found.notes.append(Note(part="microbenchmarks", item="memcpy", text=messages.copied_otherwise()))
    return _with_sides(found, _frequency(found), kernel, load)


def _in_a_guest(items: list[micro_times.Timed], profile: Profile, found: TimeValidation, say: Say) -> dict[str, list[micro_times.Took]]:
    """What a hypervisor has a part in, as this machine has it; nothing where that can't be, which is said."""
    names = [item.name for item in items]
    try:
        exit_ns = micro_guest.natively(say)
        taken, entry = micro_guest.modelled(items, exit_ns, profile, found.quantum_s * 1e6, micro_times.LAB_ROUNDS, say)
        text = messages.in_a_guest(names, exit_ns, entry)
    except errors.RunFailed as error:
        taken, text = {}, messages.not_in_a_guest(names, error)
    found.notes.append(Note(part="microbenchmarks", item="this machine", text=text))
    return taken


def _near(item: micro_times.Timed, natively: list[float], profile: Profile, found: TimeValidation) -> list[float]:
    """Of a line between two CPUs the rounds in which they had a cache in common; if there were none, all, and that is said."""
    if item.name != micro_times.LINE_ITEM.name or not natively:
        return natively
    near = [one for one in natively if micro_times.is_near(one, profile)]
    if not near:
        found.notes.append(Note(part="microbenchmarks", item=item.name, text=messages.cpus_far_apart()))
    return near or natively


def _frequency(found: TimeValidation) -> float | None:
    """Natively, in hertz: dependent additions take a cycle each. CPUID's is the one without boost, and of a virtual machine any."""
    adds = next(row.reference for row in found.rows if row.item == ADDS)
    return None if adds is None else 1e9 / adds.median


def _with_sides(found: TimeValidation, frequency: float | None, kernel: str, load: float) -> TimeValidation:
    profile_hz = found.lab.frequency_hz
    if frequency is not None and abs(frequency / profile_hz - 1) > SAME_FREQUENCY:
        text = messages.another_frequency(frequency / 1e9, profile_hz / 1e9)
        found.notes.append(Note(part="microbenchmarks", item=ADDS, text=text))
    native = found.native.model_copy(update={"frequency_hz": frequency, "load": load})
    return found.model_copy(update={"native": native, "lab": found.lab.model_copy(update={"kernel": kernel})})


# --- Switches ---------------------------------------------------------------------------------------------------


def _switches(profile: Profile, found: TimeValidation, say: Say) -> TimeValidation:
    tree = image.get(say).tree
    folders, chosen = {}, list(switch_times.SWITCHES)
    try:
        folders["uml"] = user_mode_linux.get(tree, say)
    except errors.VsprofError as error:
        chosen = [switch for switch in chosen if "uml" not in switch.folders]
        found.notes.append(Note(part="switches", item="user_mode_linux", text=messages.left_out(error)))
    natively = {switch.name: _natively(switch, tree, folders, profile, found, say) for switch in chosen}
    lab = switch_times.modelled(chosen, folders, profile, found.quantum_s * 1e6, say)
    found.rows.extend(row("switches", name, natively[name], times) for name, times in lab.times.items())
    found.notes.extend(Note(part="switches", item=item, text=messages.not_in_lab(why)) for item, why in lab.why.items())
    return found.model_copy(update={"lab": found.lab.model_copy(update={"kernel": lab.kernel})})


def _natively(
    switch: switch_times.Switch, tree: Path, folders: Mapping[str, Path], profile: Profile, found: TimeValidation, say: Say
) -> list[float]:
    """Nothing, where it can't be done; that is said."""
    try:
        why: object = native.unavailable()
        if not why:
            starts = switch_times.natively(switch, tree, folders, profile, say)
            if not any(start.near for start in starts):
                found.notes.append(Note(part="switches", item=switch.name, text=messages.cpus_far_apart()))
            return switch_times.counted(starts)
    except errors.RunFailed as error:
        why = error
    found.notes.append(Note(part="switches", item=switch.name, text=messages.not_natively(why)))
    return []


PARTS: dict[str, Callable[[Profile, TimeValidation, Say], TimeValidation]] = {"microbenchmarks": _microbenchmarks, "switches": _switches}
"""What is done, in this order."""


if __name__ == "__main__":
    sys.exit(main())
