# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make validate-model` and `make validate-time` found: the processor model's numbers, each beside what it was compared with.

bench/validate.py writes a Validation (validation.json), bench/validate_time.py a TimeValidation (validation-time.json); whoever reads
one needs nothing else. Values are stored as measured, unrounded.
"""

import functools
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, ValidationError

from vsprof.analysis import messages
from vsprof.analysis.stats import Estimate

FILE, TIME_FILE = "validation.json", "validation-time.json"
MADE_BY = {FILE: "validate-model", TIME_FILE: "validate-time"}
"""The target of the Makefile that writes each file."""
PARTS, TIME_PARTS = ("microbenchmarks", "switches", "repeat"), ("microbenchmarks", "switches")
Part = Literal["microbenchmarks", "switches", "repeat"]
PER_ITERATION, PER_PACKET, CPI, EVENTS = "events/iteration", "events/packet", "cycles/instruction", "events"
"""The units of a processor's numbers; any other is a rate, which is compared with nothing: the lab's is the emulator's."""
TIME = "time"
"""The only event of a TimeValidation."""
NS_PER_ITERATION, NS_PER_PACKET = "ns/iteration", "ns/packet"
FEW = 0.01
"""Events per iteration or packet: of fewer, no fraction is made."""


def _ordered(one: Estimate) -> Estimate:
    """An interval has both ends, and its median between them."""
    if (one.low is None) != (one.high is None) or (one.low is not None and not one.low <= one.median <= one.high):
        raise ValueError(messages.BAD_INTERVAL)
    return one


Number = Annotated[Estimate, AfterValidator(_ordered)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Row(Strict):
    """One event of one microbenchmark or switch. Of the part `repeat`, `reference` is the first run and `modelled` the second."""

    part: Part
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
        return self.unit in (PER_ITERATION, PER_PACKET, CPI, EVENTS, NS_PER_ITERATION, NS_PER_PACKET)


class Note(Strict):
    """What is to be known of an item: why it was left out, or why two runs of it differ."""

    part: Part
    item: str
    text: str


class Document(Strict):
    """What both kinds have in common."""

    file: ClassVar[str]
    version: Literal[1] = 1
    profile: str
    """The CPU profile's id."""
    processor: str
    """The name of the processor that it describes."""
    cpu_model: str
    """This machine's processor."""
    when: AwareDatetime
    rows: list[Row] = []
    notes: list[Note] = []

    def of(self, part: str) -> list[Row]:
        return [row for row in self.rows if row.part == part]

    def write(self, folder: Path) -> Path:
        """Write it into `folder`, and return its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.file
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        return path


class Validation(Document):
    """Events."""

    file: ClassVar[str] = FILE
    why_no_hardware: str | None
    """Why the model was compared with what must happen by its profile; None: it was compared with this machine's processor."""
    parts: list[Part]
    """Which were run, of PARTS."""

    @property
    def hardware(self) -> bool:
        return self.why_no_hardware is None

    @property
    def beside(self) -> str:
        """What the model's numbers stand beside."""
        return "hardware" if self.hardware else "must happen"


class Side(Strict):
    """Where one half of the times was taken."""

    frequency_hz: float | None
    """Natively as dependent additions show it, one a cycle (None: they did not run); in the lab the profile's."""
    kernel: str
    """Its release."""
    load: float | None
    """How many processes of others ran or wanted to while it was measured, at the most; None: not known."""


class TimeValidation(Document):
    """Times: each row's event is TIME, its reference was taken natively."""

    file: ClassVar[str] = TIME_FILE
    why_other: str | None
    """Why the errors are not about this processor; None: the profile describes it."""
    quantum_s: float
    """How far the lab's CPUs could be apart."""
    native: Side
    lab: Side
    parts: list[Literal["microbenchmarks", "switches"]]
    """Which were run, of TIME_PARTS."""
    beside: ClassVar[str] = "natively"


Kind = TypeVar("Kind", Validation, TimeValidation)


def load(path: str | Path, kind: type[Kind] = Validation) -> Kind:
    """The validation in a file, or in a folder's file of its kind. One that can't be read is BadInput, with the value seen."""
    file = Path(path) / kind.file if Path(path).is_dir() else Path(path)
    try:
        return kind.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise messages.no_validation(file, MADE_BY[kind.file]) from error
    except (OSError, UnicodeDecodeError) as error:
        raise messages.unreadable(file, error) from error
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        reason = ".".join(map(str, first["loc"])), first["msg"], first["input"], len(others)
        raise messages.bad_validation(file, *reason, MADE_BY[kind.file]) from error


load_time = functools.partial(load, kind=TimeValidation)
