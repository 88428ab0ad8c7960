# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right? The answer, the tables and the figures of a validation.

Without a processor's counts there is no answer to that question, and the text says so: what its own profile says must happen is another.
"""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd

from vsprof.analysis import figures, messages
from vsprof.analysis.describe import Table, Text
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import FEW, MADE_BY, PARTS, Document, Row, TimeValidation, Validation
from vsprof.terms import units

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
NO_CYCLES = "Of switches, cycles per packet were compared with nothing."
HEADS = {
    "microbenchmarks": ("microbenchmark", "events per iteration"),
    "switches": ("switch", "events per packet, user mode"),
    "repeat": ("microbenchmark", "events in user mode"),
}


def question(found: Validation) -> Text:
    return Text(f"> Is the processor model right? Here as {found.processor} (`{found.profile}`).")


def answer(found: Validation) -> Text:
    """Two sentences that say no more than was compared."""
    rows = compared(found, "microbenchmarks")
    nothing = f"of microbenchmarks there is no number ({why_empty(found, 'microbenchmarks')})"
    if not found.hardware:
        if not rows:
            why = f"No processor was counted, for {found.why_no_hardware}, and {nothing}"
            return plain(f"That is not known: no number of the model was compared with anything. {why}.")
        first = "That is not known: the model was compared with what its own profile says must happen, not with a processor"
        return plain(f"{first}, for {found.why_no_hardware}. There {_errors(rows, CLOSE, 'what must happen', 'what must not')}.")
    first = _errors(rows, CLOSE_TO_HARDWARE, "what it counted", "what hardly happens") if rows else nothing
    cycles = ", ".join(f"{shown_error(row)} with {name(row)}" for row in compared(found, "switches") if row.event == "cycles")
    second = f"The model's cycles per packet are off by {cycles} (in brackets: 95 % intervals)." if cycles else NO_CYCLES
    return plain(f"As far as one processor tells ({found.cpu_model}): {first}. {second}")


def _errors(rows: list[Row], limit: float, happens: str, hardly: str) -> str:
    """How many are close, and the largest error. Those that are fractions and those that are differences can't be ranked together."""
    fractions = [row for row in rows if row.error_unit == "fraction"]
    close = sum(abs(row.error.median) <= (limit if row in fractions else FEW) for row in rows)
    items = len({row.item for row in rows})
    worst = max(fractions or rows, key=lambda row: abs(row.error.median))
    named = f"{items} microbenchmark{'s' if items > 1 else ''}"
    return (
        f"{close} of {len(rows)} events of {named} are within {100 * limit:g} % of {happens} (of {hardly}, within {FEW:g} events an "
        f"iteration), and the largest error is {shown_error(worst)} ({event(worst)} of `{worst.item}`)"
    )


def compared(found: Document, part: str) -> list[Row]:
    """The rows of a part that have an error."""
    return [row for row in found.of(part) if row.error is not None]


def where(found: Validation) -> Table:
    """What was compared with what, where and when."""
    against, prefetchers = "the processor of this machine, by perf stat", "as the profile has them"
    if not found.hardware:
        against = f"what must happen by its profile, for {found.why_no_hardware}"
        prefetchers = "off in microbenchmarks: they would spoil what is known beforehand"
    return recorded(found, {"compared with": against, "its prefetchers": prefetchers, "machine": found.cpu_model})


def recorded(found: Validation | TimeValidation, own: dict[str, str]) -> Table:
    """What is known of any validation, around its ``own`` lines."""
    when, parts = f"{found.when:%Y-%m-%d %H:%M %Z}", ", ".join(found.parts) or "none"
    rows = {"modelled processor": f"{found.processor} (CPU profile {found.profile})", **own, "when": when, "parts": parts}
    return Table(pd.DataFrame({"": list(rows), "as recorded": list(rows.values())}))


def table(found: Validation, part: str) -> Table | Text:
    """Each event of a part: modelled, what it was compared with, and the error."""
    return listed(found, part, [_cells(found, row) for row in found.of(part) if row.of_processor])


def listed(found: Validation | TimeValidation, part: str, rows: list[dict[str, str]]) -> Table | Text:
    """Rows of a part as a table, or why there are none."""
    return Table(pd.DataFrame(rows)) if rows else plain(f"*{messages.not_shown(f'the part `{part}`', [why_empty(found, part)])}*")


def rates(found: Validation) -> Table | Text:
    """How fast the switches forwarded, natively and in the lab."""
    rows = [
        {"switch": name(row), "": event(row), "natively": interval(row.reference), "in the lab, while modelled": interval(row.modelled)}
        for row in found.of("switches")
        if not row.of_processor
    ]
    return listed(found, "switches", rows)


def _cells(found: Validation, row: Row) -> dict[str, str]:
    item, events = HEADS[row.part]
    cells, shown = {item: name(row), events: event(row)}, {"model": interval(row.modelled)}
    if row.part == "repeat":
        return cells | {"first run": interval(row.reference), "second run": interval(row.modelled), "difference": shown_error(row)}
    if row.part == "switches" and not found.hardware:
        return cells | shown
    return cells | {"hardware" if found.hardware else "must be": interval(row.reference)} | shown | {"error": shown_error(row)}


def why_empty(found: Validation | TimeValidation, part: str) -> str:
    if part not in found.parts:
        return messages.not_run(part, MADE_BY[found.file])
    return "; ".join(f"{note.item} {note.text}" for note in found.notes if note.part == part) or messages.empty(part)


def show(found: Validation | TimeValidation, figure: str) -> figures.Shown | figures.NotShown:
    """The figure of that name, or the reason why there is none."""
    module = importlib.import_module(f"vsprof.analysis.figures.{figure}")
    drawn = module.table(found)
    if drawn.empty:
        return figures.NotShown(messages.not_shown(figures.first_sentence(module), [why_empty(found, module.PART)]))
    # The docstring, then where, by whom and how often it was counted.
    by = "this machine's clock" if isinstance(found, TimeValidation) else "hardware counters" if found.hardware else ""
    beside = f"; {by} ({found.cpu_model}), testbed native" if by else ""
    least, most = int(drawn["n"].min()), int(drawn["n"].max())
    windows = f"n={most}" if least == most else f"n={least} to {most}"
    spread = "n=1, no interval from one measurement." if most == 1 else f"Medians over windows ({windows}), 95 % bootstrap intervals."
    caption = f"{' '.join(module.__doc__.split())} Testbed: lab. Source: estimated (model: {found.processor}){beside}. {spread}"
    return figures.Shown(module.plot(drawn), caption, drawn)


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
    ends = {"": "median", "_low": "low", "_high": "high"}
    return {f"{of}{end}": np.nan if (value := getattr(one, name, None)) is None else value for end, name in ends.items()}


def limits(found: Validation) -> Text:
    """What these very numbers do not say, as a list."""
    texts = [messages.one_processor(found.cpu_model) if found.hardware else messages.no_hardware(str(found.why_no_hardware))]
    if (micro := found.of("microbenchmarks")) and all(row.modelled.n == 1 for row in micro):
        texts.append(messages.ONCE)
    if modelled := found.of("switches"):
        texts += [messages.ONE_WINDOW] if all(row.modelled.n == 1 for row in modelled) else []
        texts += [messages.ONE_LAB, messages.FITS_THE_CACHES]
    without = [f"{event(row)} of {name(row)}" for row in found.rows if found.hardware and row.of_processor and row.reference is None]
    texts += [messages.not_counted(without)] if without else []
    texts += [f"{part}: {why_empty(found, part)}." for part in PARTS if part not in found.parts]
    return as_list([*texts, *(f"{note.part}, {note.item}: {note.text}." for note in found.notes)])


def name(row: Row) -> str:
    return SWITCHES.get(row.item, row.item)


def event(row: Row) -> str:
    return EVENTS.get(row.event, row.event)


def plain(text: str) -> Text:
    """Markdown in which `perf said <not supported>` is no tag; a `>` stays, which quotes."""
    return Text(text.replace("&", "&amp;").replace("<", "&lt;"))


def as_list(texts: list[str]) -> Text:
    return plain("\n".join(f"- {text}" for text in texts))


def number(value: float) -> str:
    """What is left of next to nothing when the polls in vain are taken out may be below it."""
    return "0" if value == 0 else "0.0000" if abs(value) < 1e-4 else units.significant(value, 4)


def shown_error(row: Row) -> str:
    """`+5.6 %`, `-12.0 % [-14.1, -9.8]`; of what hardly happens `+0.0100 events`."""
    if row.error is None:
        return "–"
    factor, unit = (1, "events") if row.error_unit == "events" else (100, "%")
    error, low, high = (None if one is None else factor * one for one in (row.error.median, row.error.low, row.error.high))
    form = "+.1f" if unit == "%" else "+.4f" if abs(error) < 1 else "+,.0f"
    bounds = "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
    return f"{error:{form}} {unit}{bounds}" if error else f"0 {unit}{bounds}"


def interval(one: Estimate | None) -> str:
    """`12.34 [12.01, 12.50]`."""
    if one is None or one.n == 0:
        # What must happen is known exactly.
        return "–" if one is None else f"{one.median:,g}"
    return number(one.median) + ("" if one.low is None or one.high is None else f" [{number(one.low)}, {number(one.high)}]")
