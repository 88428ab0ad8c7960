# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make validate-model` found: the processor model's numbers, each beside what it was compared with; and what that was.

bench/validate.py writes one (validation.json); whoever reads it needs nothing else. Values are stored as measured, unrounded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from analysis.stats import Estimate
from terms import validation_messages as say

FILE = "validation.json"
PARTS = ("microbenchmarks", "switches", "repeat")
PER_ITERATION, PER_PACKET, CPI, EVENTS = "events/iteration", "events/packet", "cycles/instruction", "events"
"""The units of a processor's numbers; any other is a rate, which is compared with nothing: the lab's is the emulator's."""
FEW = 0.01
"""Events per iteration or packet: of fewer, no fraction is made."""


def _ordered(one: Estimate) -> Estimate:
    """An interval has both ends, and its median between them."""
    if (one.low is None) != (one.high is None) or (one.low is not None and not one.low <= one.median <= one.high):
        raise ValueError(say.bad_interval())
    return one


Number = Annotated[Estimate, AfterValidator(_ordered)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Row(Strict):
    """One event of one microbenchmark or switch. Of the part `repeat`, `reference` is the first run and `modelled` the second."""

    part: Literal["microbenchmarks", "switches", "repeat"]
    item: str
    event: str
    unit: str
    reference: Number | None
    """What the processor counted, or what must happen (then n is 0); None: neither is known."""
    modelled: Number
    error: Number | None
    """Of the modelled number; None where it was compared with nothing."""
    error_unit: Literal["fraction", "events"] | None
    """Of what hardly happens the error is a difference in events."""

    @property
    def of_processor(self) -> bool:
        return self.unit in (PER_ITERATION, PER_PACKET, CPI, EVENTS)


class Note(Strict):
    """What is to be known of an item: why it was left out, or why two runs of it differ."""

    part: Literal["microbenchmarks", "switches", "repeat"]
    item: str
    text: str


class Validation(Strict):
    version: Literal[1] = 1
    profile: str
    """The CPU profile's id."""
    processor: str
    """The name of the processor that it describes."""
    why_no_hardware: str | None
    """Why the model was compared with what must happen by its profile; None: it was compared with this machine's processor."""
    cpu_model: str
    """This machine's processor."""
    when: AwareDatetime
    parts: list[Literal["microbenchmarks", "switches", "repeat"]]
    """Which were run, of PARTS."""
    rows: list[Row] = []
    notes: list[Note] = []

    @property
    def hardware(self) -> bool:
        return self.why_no_hardware is None

    def of(self, part: str) -> list[Row]:
        return [row for row in self.rows if row.part == part]

    def write(self, folder: Path) -> Path:
        """Write it into `folder`, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return path


def load(path: str | Path) -> Validation:
    """The validation in a file, or in a folder's validation.json. One that can't be read is BadInput, with the value seen."""
    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    try:
        return Validation.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise say.no_validation(file) from error
    except (OSError, UnicodeDecodeError) as error:
        raise say.unreadable(file, error) from error
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        raise say.bad_validation(file, ".".join(map(str, first["loc"])), first["msg"], first["input"], len(others)) from error
