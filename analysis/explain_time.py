# SPDX-License-Identifier: GPL-2.0-or-later
"""Are the predicted times right? The answer and the tables of a TimeValidation; figures are shown by `explain_validation.show`."""

from __future__ import annotations

import itertools

from vsprof.analysis import messages
from vsprof.analysis.describe import Table, Text
from vsprof.analysis.explain_validation import as_list, compared, interval, listed, name, number, plain, recorded, shown_error, why_empty
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import TIME_PARTS, Row, TimeValidation

WITHIN = {"microbenchmarks": 0.15, "switches": 0.25}
"""Fractions: how far off the model may be, by part."""
HEADS = {"microbenchmarks": ("microbenchmark", "ns/iteration"), "switches": ("switch", "ns/packet")}
NS = 1e-9
QUIET = 2.0
"""The load that a microbenchmark of two threads is itself."""


def question(found: TimeValidation) -> Text:
    return plain(f"> Are the times right that the model predicts? Here as {found.processor} (`{found.profile}`).")


def answer(found: TimeValidation) -> Text:
    """Says no more than was compared."""
    parts = [_close(found, part) for part in TIME_PARTS if compared(found, part)]
    if not parts:
        return plain(f"That is not known: no time was compared ({'; '.join(why_empty(found, part) for part in TIME_PARTS)}).")
    if found.why_other is None:
        about = messages.about_this_processor(found.cpu_model, found.profile)
    else:
        about = messages.not_about_this_processor(found.why_other)
    order = "The order of switches is right."
    if wrong := ", and ".join(f"{name(faster)} takes less time than {name(slower)}" for faster, slower in wrong_pairs(found)):
        order = f"The order of switches is wrong: natively {wrong}."
    return plain(" ".join([*parts, *([order] if len(compared(found, "switches")) > 1 else []), about]))


def _close(found: TimeValidation, part: str) -> str:
    rows = compared(found, part)
    close = sum(abs(row.error.median) <= WITHIN[part] for row in rows)
    # By how many times it is off, either way: a time can be too short by 100 % at most, and too long by any.
    worst = max(rows, key=lambda row: max(1 + row.error.median, 1 / (1 + row.error.median)))
    within = f"{close} of {len(rows)} {part} are within {100 * WITHIN[part]:g} % of this machine's time"
    return f"{within}; the largest error is {shown_error(worst)} ({name(worst)})."


def wrong_pairs(found: TimeValidation) -> list[tuple[Row, Row]]:
    """Switches whose order natively is beyond doubt (their intervals do not meet) and in the lab the other one."""

    def bound(one: Estimate, end: float | None) -> float:
        return one.median if end is None else end

    ordered = sorted(compared(found, "switches"), key=lambda row: row.reference.median)
    return [
        (faster, slower)
        for faster, slower in itertools.combinations(ordered, 2)
        if bound(faster.reference, faster.reference.high) < bound(slower.reference, slower.reference.low)
        and faster.modelled.median >= slower.modelled.median
    ]


def where(found: TimeValidation) -> Table:
    """What was compared with what, where and when."""
    native, lab = found.native, found.lab
    own = {
        "machine": found.cpu_model,
        "frequency natively, by dependent additions": "–" if native.frequency_hz is None else f"{native.frequency_hz / 1e9:.3f} GHz",
        "frequency in the lab": f"{lab.frequency_hz / 1e9:.3f} GHz",
        "kernel natively; in the lab": f"{native.kernel}; {lab.kernel}",
        "the lab's CPUs could be apart": f"{found.quantum_s * 1e6:g} us",
        "load of the machine, at most": "–" if native.load is None else f"{native.load:.1f}",
    }
    return recorded(found, own)


def table(found: TimeValidation, part: str) -> Table | Text:
    """Each item of a part: natively, modelled, and the error; cycles natively are by the frequency that the additions show."""
    return listed(found, part, [_cells(found, row) for row in found.of(part)])


def _cells(found: TimeValidation, row: Row) -> dict[str, str]:
    item, unit = HEADS[row.part]
    hit = "–" if row.error is None else "yes" if abs(row.error.median) <= WITHIN[row.part] else "no"
    return {
        item: name(row),
        f"natively ({unit})": interval(row.reference),
        "cycles": _cycles(row.reference, found.native.frequency_hz),
        f"model ({unit})": interval(row.modelled),
        "model's cycles": _cycles(row.modelled, found.lab.frequency_hz),
        "error": shown_error(row),
        f"within {100 * WITHIN[row.part]:g} %": hit,
    }


def _cycles(one: Estimate | None, frequency_hz: float | None) -> str:
    return "–" if one is None or frequency_hz is None else number(one.median * NS * frequency_hz)


def limits(found: TimeValidation) -> Text:
    """What these very numbers do not say, as a list."""
    texts = [] if found.why_other is None else [messages.not_about_this_processor(found.why_other)]
    if found.native.kernel != found.lab.kernel:
        texts.append(messages.other_kernel(found.native.kernel, found.lab.kernel))
    if found.native.load is not None and found.native.load > QUIET:
        texts.append(messages.machine_was_busy(found.native.load))
    texts += [f"{part}: {why_empty(found, part)}." for part in TIME_PARTS if part not in found.parts]
    return as_list([*texts, *(f"{note.item}: {note.text}" for note in found.notes)])
