# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right? The answer, the tables and the figures of a validation.

Without a processor's counts there is no answer to that question, and the text says so: what its own profile says must happen is another.
"""

from __future__ import annotations

import html
import importlib
from types import ModuleType

import numpy as np
import pandas as pd

from analysis import figures, messages
from analysis.describe import Table, Text
from analysis.stats import Estimate
from analysis.validation import FEW, MADE_BY, PARTS, Document, Row, TimeValidation, Validation
from terms import units

CLOSE, CLOSE_TO_HARDWARE = 0.01, 0.1
"""Fractions: the answer counts the errors that are at most so large. What must happen is known exactly, a processor's ways are not."""
EVENTS = {
    "instructions": "instructions",
    "l1d_misses": "L1D misses",
    "l2_misses": "L2 misses",
    "llc_misses": "LLC misses",
    "dtlb_misses": "DTLB misses (1st level)",
    "dtlb_walks": "DTLB walks",
    "branch_misses": "branch misses",
    "kernel_entries": "entries into the kernel",
    "cycles": "cycles",
    "cpi": "CPI (cycles per instruction)",
    "packets": "packets per second",
    "packets_per_poll": "packets per poll that found some",
}
SWITCHES = {
    "ovs_dpdk": "OVS-DPDK",
    "kernel_ovs": "kernel OVS's datapath (User-Mode Linux)",
    "testpmd_io": "testpmd io",
    "vhost_switch": "vhost-switch",
    "linux_bridge": "Linux bridge (veth)",
}
HEADS = {
    "microbenchmarks": ("microbenchmark", "events per iteration"),
    "switches": ("switch", "events per packet, user mode"),
    "repeat": ("microbenchmark", "events in user mode"),
}


# --- The question and its answer --------------------------------------------------------------------------------


def question(found: Validation) -> Text:
    return Text(f"> Is the processor model right? Here as {found.processor} (`{found.profile}`).")


def answer(found: Validation) -> Text:
    """Two sentences that say no more than was compared."""
    return plain(_against_hardware(found) if found.hardware else _against_its_profile(found))


def _against_its_profile(found: Validation) -> str:
    rows = compared(found, "microbenchmarks")
    if not rows:
        why = f"No processor was counted, for {found.why_no_hardware}, and {_nothing(found)}"
        return f"That is not known: no number of the model was compared with anything. {why}."
    return (
        "That is not known: the model was compared with what its own profile says must happen, not with a processor, for "
        f"{found.why_no_hardware}. There {_closeness(rows, CLOSE)} of what must happen (of what must not, within {FEW:g} events an "
        f"iteration), and {_largest(rows)}."
    )


def _against_hardware(found: Validation) -> str:
    rows = compared(found, "microbenchmarks")
    first = f"As far as one processor tells ({found.cpu_model}): "
    first += _by_counts(rows) if rows else _nothing(found)
    cycles = [row for row in compared(found, "switches") if row.event == "cycles"]
    if not cycles:
        return f"{first}. Of switches, cycles per packet were compared with nothing."
    errors = ", ".join(f"{shown_error(row)} with {name(row)}" for row in cycles)
    return f"{first}. The model's cycles per packet are off by {errors} (in brackets: 95 % intervals)."


def _by_counts(rows: list[Row]) -> str:
    rarely = f"(of what hardly happens, within {FEW:g} events an iteration)"
    return f"{_closeness(rows, CLOSE_TO_HARDWARE)} of what it counted {rarely}, and {_largest(rows)}"


def _nothing(found: Validation) -> str:
    return f"of microbenchmarks there is no number ({why_empty(found, 'microbenchmarks')})"


def _closeness(rows: list[Row], limit: float) -> str:
    close = sum(abs(row.error.median) <= (limit if row.error_unit == "fraction" else FEW) for row in rows)
    items = len({row.item for row in rows})
    return f"{close} of {len(rows)} events of {items} microbenchmark{'s' if items > 1 else ''} are within {100 * limit:g} %"


def _largest(rows: list[Row]) -> str:
    """Errors that are fractions and those that are differences can't be ranked together."""
    fractions = [row for row in rows if row.error_unit == "fraction"]
    worst = max(fractions or rows, key=lambda row: abs(row.error.median))
    return f"the largest error is {shown_error(worst)} ({event(worst)} of `{worst.item}`)"


def compared(found: Document, part: str) -> list[Row]:
    """The rows of a part that have an error."""
    return [row for row in found.of(part) if row.error is not None]


# --- Tables -----------------------------------------------------------------------------------------------------


def where(found: Validation) -> Table:
    """What was compared with what, where and when."""
    against, prefetchers = "the processor of this machine, by perf stat", "as the profile has them"
    if not found.hardware:
        against = f"what must happen by its profile, for {found.why_no_hardware}"
        prefetchers = "off in microbenchmarks: they would spoil what is known beforehand"
    rows = {
        "modelled processor": f"{found.processor} (CPU profile {found.profile})",
        "compared with": against,
        "its prefetchers": prefetchers,
        "machine": found.cpu_model,
        "when": f"{found.when:%Y-%m-%d %H:%M %Z}",
        "parts": ", ".join(found.parts) or "none",
    }
    return Table(pd.DataFrame({"": list(rows), "as recorded": list(rows.values())}))


def table(found: Validation, part: str) -> Table | Text:
    """Each event of a part: modelled, what it was compared with, and the error."""
    rows = [row for row in found.of(part) if row.of_processor]
    return Table(pd.DataFrame([_cells(found, row) for row in rows])) if rows else not_shown(found, part)


def rates(found: Validation) -> Table | Text:
    """How fast the switches forwarded, natively and in the lab."""
    rows = [row for row in found.of("switches") if not row.of_processor]
    if not rows:
        return not_shown(found, "switches")
    cells = [
        {"switch": name(row), "": event(row), "natively": interval(row.reference), "in the lab, while modelled": interval(row.modelled)}
        for row in rows
    ]
    return Table(pd.DataFrame(cells))


def _cells(found: Validation, row: Row) -> dict[str, str]:
    item, events = HEADS[row.part]
    cells = {item: name(row), events: event(row)}
    if row.part == "repeat":
        return cells | {"first run": interval(row.reference), "second run": interval(row.modelled), "difference": shown_error(row)}
    if row.part == "switches" and not found.hardware:
        return cells | {"model": interval(row.modelled)}
    return cells | {reference(found): interval(row.reference), "model": interval(row.modelled), "error": shown_error(row)}


def reference(found: Validation) -> str:
    """What the model's numbers stand beside."""
    return "hardware" if found.hardware else "must be"


def not_shown(found: Validation | TimeValidation, part: str) -> Text:
    return plain(f"*{messages.not_shown(f'the part `{part}`', [why_empty(found, part)])}*")


def why_empty(found: Validation | TimeValidation, part: str) -> str:
    if part not in found.parts:
        return messages.not_run(part, MADE_BY[found.file])
    return "; ".join(f"{note.item} {note.text}" for note in found.notes if note.part == part) or messages.empty(part)


# --- Figures ----------------------------------------------------------------------------------------------------


def show(found: Validation | TimeValidation, figure: str) -> figures.Shown | figures.NotShown:
    """The figure of that name, or the reason why there is none."""
    module = importlib.import_module(f"analysis.figures.{figure}")
    drawn = module.table(found)
    if drawn.empty:
        return figures.NotShown(messages.not_shown(figures.first_sentence(module), [why_empty(found, module.PART)]))
    return figures.Shown(module.plot(drawn), _caption(found, module, drawn), drawn)


def _caption(found: Validation | TimeValidation, module: ModuleType, drawn: pd.DataFrame) -> str:
    """The docstring, then where, by whom and how often it was counted."""
    by = "this machine's clock" if isinstance(found, TimeValidation) else "hardware counters" if found.hardware else ""
    beside = f"; {by} ({found.cpu_model}), testbed native" if by else ""
    least, most = int(drawn["n"].min()), int(drawn["n"].max())
    windows = f"n={most}" if least == most else f"n={least} to {most}"
    spread = "n=1, no interval from one measurement." if most == 1 else f"Medians over windows ({windows}), 95 % bootstrap intervals."
    return f"{' '.join(module.__doc__.split())} Testbed: lab. Source: estimated (model: {found.processor}){beside}. {spread}"


def drawn(found: Validation | TimeValidation, part: str) -> pd.DataFrame:
    """One row an event of a processor: `modelled`, `reference` and `error`, each with `…_low` and `…_high`; NaN where there is none."""
    rows = [
        {"item": row.item, "label": name(row), "what": event(row), "counted in": row.unit, "n": row.modelled.n,
         **_bounds("modelled", row.modelled), "beside": found.beside,
         **_bounds("reference", row.reference), **_bounds("error", row.error), "error_unit": row.error_unit, "shown": shown_error(row)}
        for row in found.of(part) if row.of_processor
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _bounds(of: str, one: Estimate | None) -> dict[str, float]:
    values = (None, None, None) if one is None else (one.median, one.low, one.high)
    return {f"{of}{end}": np.nan if value is None else value for end, value in zip(("", "_low", "_high"), values, strict=True)}


# --- What a reader must know ------------------------------------------------------------------------------------


def limits(found: Validation) -> Text:
    """What these very numbers do not say, as a list."""
    return plain("\n".join(f"- {text}" for text in all_limits(found)))


def all_limits(found: Validation) -> list[str]:
    texts = [messages.one_processor(found.cpu_model) if found.hardware else messages.no_hardware(str(found.why_no_hardware))]
    if (micro := found.of("microbenchmarks")) and all(row.modelled.n == 1 for row in micro):
        texts.append(messages.once())
    if modelled := found.of("switches"):
        texts += [messages.one_window()] if all(row.modelled.n == 1 for row in modelled) else []
        texts += [messages.one_lab(), messages.fits_the_caches()]
    without = [f"{event(row)} of {name(row)}" for row in found.rows if found.hardware and row.of_processor and row.reference is None]
    texts += [messages.not_counted(without)] if without else []
    texts += [f"{part}: {why_empty(found, part)}." for part in PARTS if part not in found.parts]
    return texts + [f"{note.part}, {note.item}: {note.text}." for note in found.notes]


# --- Words ------------------------------------------------------------------------------------------------------


def name(row: Row) -> str:
    return SWITCHES.get(row.item, row.item)


def event(row: Row) -> str:
    return EVENTS.get(row.event, row.event)


def plain(text: str) -> Text:
    """Markdown in which `perf said <not supported>` is no tag."""
    return Text(html.escape(text, quote=False))


def number(value: float) -> str:
    """What is left of next to nothing when the polls in vain are taken out may be below it."""
    return "0" if value == 0 else "0.0000" if abs(value) < 1e-4 else units.significant(value, 4)


def shown_error(row: Row) -> str:
    """`+5.6 %`, `-12.0 % [-14.1, -9.8]`; of what hardly happens `+0.0100 events`."""
    if row.error is None:
        return "–"
    one, unit = (row.error, "events") if row.error_unit == "events" else (_per_cent(row.error), "%")
    form = "+.1f" if unit == "%" else "+.4f" if abs(one.median) < 1 else "+,.0f"
    bounds = "" if one.low is None or one.high is None else f" [{one.low:{form}}, {one.high:{form}}]"
    return f"{one.median:{form}} {unit}{bounds}" if one.median else f"0 {unit}{bounds}"


def _per_cent(one: Estimate) -> Estimate:
    low, high = (None if bound is None else 100 * bound for bound in (one.low, one.high))
    return Estimate(100 * one.median, low, high, one.n)


def interval(one: Estimate | None) -> str:
    if one is None:
        return "–"
    if one.n == 0:
        # What must happen is known exactly.
        return f"{one.median:,g}"
    bounds = "" if one.low is None or one.high is None else f" [{number(one.low)}, {number(one.high)}]"
    return number(one.median) + bounds
