# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the processor model right, and are the times that it predicts? The answer, the tables and the figures of a validation.

Without a processor's counts there is no answer to that question, and the text says so: what its own profile says must happen is another.
"""

import abc
import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from vsprof.analysis import describe, figures, messages, model, read
from vsprof.analysis.describe import Table
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import FEW, MADE_BY, PARTS, TIME_PARTS, Row, TimeValidation, Validation
from vsprof.terms import units

CLOSE, CLOSE_TO_HARDWARE = 0.01, 0.1
"""Fractions: the answer counts the errors that are at most so large. What must happen is known exactly, a processor's ways are not."""
WORDS = read(__file__)
NO_CYCLES = "Of switches, cycles per packet were compared with nothing."
WITHIN = {"microbenchmarks": 0.15, "switches": 0.25}
"""Fractions: how far off a time may be, by part."""
NS = 1e-9
QUIET = 2.0
"""The load that a microbenchmark of two threads is itself."""


@dataclass(frozen=True)
class Explained(abc.ABC):
    """What is said of any validation."""

    found: Validation | TimeValidation
    parts: ClassVar[tuple[str, ...]] = ()
    note: ClassVar[str] = "{note.item}: {note.text}"
    asks: ClassVar[str] = ""

    def question(self) -> str:
        return plain(f"> {self.asks} Here as {self.found.processor} (`{self.found.profile}`).")

    def compared(self, part: str) -> list[Row]:
        """The rows of a part that have an error."""
        return [row for row in self.found.of(part) if row.error is not None]

    def recorded(self, own: dict[str, str]) -> Table:
        """What is known of any validation, around its ``own`` lines."""
        when, parts = f"{self.found.when:%Y-%m-%d %H:%M %Z}", ", ".join(self.found.parts) or "none"
        rows = {"modelled processor": f"{self.found.processor} (CPU profile {self.found.profile})", **own, "when": when, "parts": parts}
        return describe.listed(rows)

    def table(self, part: str) -> Table | str:
        """Each event of a part: modelled, what it was compared with, and the error."""
        return self.listed(part, [self._cells(row) for row in self.found.of(part) if row.of_processor])

    def listed(self, part: str, rows: list[dict[str, str]]) -> Table | str:
        """Rows of a part as a table, or why there are none."""
        return Table(pd.DataFrame(rows)) if rows else plain(f"*{messages.not_shown(f'the part `{part}`', [self.why_empty(part)])}*")

    def why_empty(self, part: str) -> str:
        if part not in self.found.parts:
            return messages.not_run(part, MADE_BY[self.found.file])
        return "; ".join(f"{note.item} {note.text}" for note in self.found.notes if note.part == part) or messages.empty(part)

    def show(self, figure: str) -> figures.Shown | figures.NotShown:
        """The figure of that name, or the reason why there is none."""
        module = figures.named(figure, figures.names(of_validation=True))
        drawn = module.table(self)
        if drawn.empty:
            return figures.NotShown(messages.not_shown(figures.first_sentence(module), [self.why_empty(module.PART)]))
        # The docstring, then where, by whom and how often it was counted.
        by = "this machine's clock" if isinstance(self.found, TimeValidation) else "hardware counters" if self.found.hardware else ""
        beside = f"; {by} ({self.found.cpu_model}), testbed native" if by else ""
        least, most = int(drawn["n"].min()), int(drawn["n"].max())
        windows = f"n={most}" if least == most else f"n={least} to {most}"
        spread = "n=1, no interval from one measurement." if most == 1 else f"Medians over windows ({windows}), 95 % bootstrap intervals."
        caption = f"{' '.join(module.__doc__.split())} Testbed: lab. Source: estimated (model: {self.found.processor}){beside}. {spread}"
        return figures.Shown(module.plot(drawn), caption, drawn)

    def limits(self) -> str:
        """What these very numbers do not say, as a list: limits, parts that were not run, notes."""
        doubts = self._doubts()
        said = [text.format(found=self.found, of=doubts[of]) for of, text in WORDS["limits"].items() if doubts.get(of)]
        said += [f"{part}: {self.why_empty(part)}." for part in self.parts if part not in self.found.parts]
        return plain("\n".join(f"- {text}" for text in [*said, *(self.note.format(note=note) for note in self.found.notes)]))

    @abc.abstractmethod
    def _doubts(self) -> dict[str, object]:
        """Which limits hold, by their names in explain_validation.yaml; and what each is about."""

    def drawn(self, part: str) -> pd.DataFrame:
        """One row an event of a processor: `modelled`, `reference` and `error`, each with `…_low` and `…_high`; NaN where there is none."""
        rows = [
            {"item": row.item, "label": name(row), "what": event(row), "counted in": row.unit, "n": row.modelled.n,
             **_bounds("modelled", row.modelled), "beside": self.found.beside,
             **_bounds("reference", row.reference), **_bounds("error", row.error), "error_unit": row.error_unit, "shown": shown_error(row)}
            for row in self.found.of(part) if row.of_processor
        ]  # fmt: skip
        return pd.DataFrame(rows)


class Events(Explained):
    """What is said of a Validation."""

    parts = PARTS
    note = "{note.part}, {note.item}: {note.text}."
    asks = "Is the processor model right?"

    def answer(self) -> str:
        """Two sentences that say no more than was compared."""
        rows = self.compared("microbenchmarks")
        nothing = f"of microbenchmarks there is no number ({self.why_empty('microbenchmarks')})"
        if not self.found.hardware:
            if not rows:
                why = f"No processor was counted, for {self.found.why_no_hardware}, and {nothing}"
                return plain(f"That is not known: no number of the model was compared with anything. {why}.")
            first = "That is not known: the model was compared with what its own profile says must happen, not with a processor"
            return plain(f"{first}, for {self.found.why_no_hardware}. There {_errors(rows, CLOSE, 'what must happen', 'what must not')}.")
        first = _errors(rows, CLOSE_TO_HARDWARE, "what it counted", "what hardly happens") if rows else nothing
        cycles = ", ".join(f"{shown_error(row)} with {name(row)}" for row in self.compared("switches") if row.event == "cycles")
        second = f"The model's cycles per packet are off by {cycles} (in brackets: 95 % intervals)." if cycles else NO_CYCLES
        return plain(f"As far as one processor tells ({self.found.cpu_model}): {first}. {second}")

    def where(self) -> Table:
        """What was compared with what, where and when."""
        rows = WORDS["where"]["hardware" if self.found.hardware else "profile"]
        return self.recorded({name: text.format(found=self.found) for name, text in rows.items()})

    def rates(self) -> Table | str:
        """How fast the switches forwarded, natively and in the lab."""
        rows = [
            {"switch": name(row), "": event(row), "natively": interval(row.reference), "in the lab, while modelled": interval(row.modelled)}
            for row in self.found.of("switches")
            if not row.of_processor
        ]
        return self.listed("switches", rows)

    def _cells(self, row: Row) -> dict[str, str]:
        item, events = WORDS["heads"][row.part]
        cells, shown = {item: name(row), events: event(row)}, {"model": interval(row.modelled)}
        if row.part == "repeat":
            return cells | {"first run": interval(row.reference), "second run": interval(row.modelled), "difference": shown_error(row)}
        if row.part == "switches" and not self.found.hardware:
            return cells | shown
        return cells | {"hardware" if self.found.hardware else "must be": interval(row.reference)} | shown | {"error": shown_error(row)}

    def _doubts(self) -> dict[str, object]:
        micro, switches = self.found.of("microbenchmarks"), self.found.of("switches")
        without = (row for row in self.found.rows if self.found.hardware and row.of_processor and row.reference is None)
        return {
            "one processor": self.found.hardware,
            "no processor": not self.found.hardware,
            "once": micro and all(row.modelled.n == 1 for row in micro),
            "one window": switches and all(row.modelled.n == 1 for row in switches),
            "one lab": switches,
            "fits the caches": switches,
            "not counted": ", ".join(f"{event(row)} of {name(row)}" for row in without),
        }


class Times(Explained):
    """What is said of a TimeValidation."""

    parts = TIME_PARTS
    asks = "Are the times right that the model predicts?"

    def answer(self) -> str:
        """Says no more than was compared."""
        parts = [self._close(part) for part in TIME_PARTS if self.compared(part)]
        if not parts:
            return plain(f"That is not known: no time was compared ({'; '.join(self.why_empty(part) for part in TIME_PARTS)}).")
        order = "The order of switches is right."
        if wrong := ", and ".join(f"{name(faster)} takes less time than {name(slower)}" for faster, slower in self.wrong_pairs()):
            order = f"The order of switches is wrong: natively {wrong}."
        return plain(" ".join([*parts, *([order] if len(self.compared("switches")) > 1 else []), self.about]))

    @property
    def about(self) -> str:
        """Whether the errors are about this machine's processor."""
        return WORDS["about"]["this" if self.found.why_other is None else "another"].format(found=self.found)

    def _close(self, part: str) -> str:
        rows = self.compared(part)
        close = sum(abs(row.error.median) <= WITHIN[part] for row in rows)
        # By how many times it is off, either way: a time can be too short by 100 % at most, and too long by any.
        worst = max(rows, key=lambda row: max(1 + row.error.median, 1 / (1 + row.error.median)))
        within = f"{close} of {len(rows)} {part} are within {100 * WITHIN[part]:g} % of this machine's time"
        return f"{within}; the largest error is {shown_error(worst)} ({name(worst)})."

    def wrong_pairs(self) -> list[tuple[Row, Row]]:
        """Switches whose order natively is beyond doubt (their intervals do not meet) and in the lab the other one."""

        def bound(one: Estimate, end: float | None) -> float:
            return one.median if end is None else end

        ordered = sorted(self.compared("switches"), key=lambda row: row.reference.median)
        return [
            (faster, slower)
            for faster, slower in itertools.combinations(ordered, 2)
            if bound(faster.reference, faster.reference.high) < bound(slower.reference, slower.reference.low)
            and faster.modelled.median >= slower.modelled.median
        ]

    def where(self) -> Table:
        """What was compared with what, where and when."""
        native, lab = self.found.native, self.found.lab
        own = {
            "machine": self.found.cpu_model,
            "frequency natively, by dependent additions": "–" if native.frequency_hz is None else f"{native.frequency_hz / 1e9:.3f} GHz",
            "frequency in the lab": f"{lab.frequency_hz / 1e9:.3f} GHz",
            "kernel natively; in the lab": f"{native.kernel}; {lab.kernel}",
            "the lab's CPUs could be apart": f"{self.found.quantum_s * 1e6:g} us",
            "load of the machine, at most": "–" if native.load is None else f"{native.load:.1f}",
        }
        return self.recorded(own)

    def _cells(self, row: Row) -> dict[str, str]:
        item, unit = WORDS["time heads"][row.part]
        hit = "–" if row.error is None else "yes" if abs(row.error.median) <= WITHIN[row.part] else "no"
        return {
            item: name(row),
            f"natively ({unit})": interval(row.reference),
            "cycles": _cycles(row.reference, self.found.native.frequency_hz),
            f"model ({unit})": interval(row.modelled),
            "model's cycles": _cycles(row.modelled, self.found.lab.frequency_hz),
            "error": shown_error(row),
            f"within {100 * WITHIN[row.part]:g} %": hit,
        }

    def _doubts(self) -> dict[str, object]:
        native, lab = self.found.native, self.found.lab
        return {
            "another processor": self.found.why_other,
            "other kernel": native.kernel != lab.kernel,
            "busy machine": native.load is not None and native.load > QUIET,
        }


def of(found: Validation | TimeValidation) -> Explained:
    return Times(found) if isinstance(found, TimeValidation) else Events(found)


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


def _bounds(of: str, one: Estimate | None) -> dict[str, float]:
    ends = {"": "median", "_low": "low", "_high": "high"}
    return {f"{of}{end}": np.nan if (value := getattr(one, name, None)) is None else value for end, name in ends.items()}


def name(row: Row) -> str:
    return WORDS["switches"].get(row.item, row.item)


def event(row: Row) -> str:
    return {**model.WORDS, **WORDS["events"]}.get(row.event, row.event)


def plain(text: str) -> str:
    """Markdown in which `perf said <not supported>` is no tag; a `>` stays, which quotes."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


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


def _cycles(one: Estimate | None, frequency_hz: float | None) -> str:
    return "–" if one is None or frequency_hz is None else number(one.median * NS * frequency_hz)
