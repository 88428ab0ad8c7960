# SPDX-License-Identifier: GPL-2.0-or-later
"""What Intel's VTune Profiler says of the whole host: its summary, and its hardware events by function. Intel's processors only.

Not run here: VTune can't be installed on the project's machines. The command lines and the readers follow its documentation
(docs/collectors/vtune.md names it), and no output of it was captured.
"""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vsprof.collectors import intel, messages
from vsprof.collectors.base import Apart, Recorded
from vsprof.terms import messages as terms_messages
from vsprof.terms.schema import FunctionCount, Number
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import Testbed

ANALYSES = {
    "uarch-exploration": "",
    "memory-access": "",
    # By default it traces single programs from inside, which can't be done to a whole host.
    "threading": "-knob sampling-and-waits=hw",
}
"""The analyses that can be asked for, and what each needs to see the whole host."""
PLACES = ("vtune", "/opt/intel/oneapi/vtune/latest/bin64/vtune")
FOLDER = "/run/vsprof-vtune"
ALLOWANCE_S = 600
"""How long VTune may take to resolve symbols and to write its reports."""
RELIABLE = 0.9
"""Below this MUX Reliability the numbers get a note. Our own limit: VTune's own is not documented."""
DELIMITERS = ",\t;^|"
PREFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
UNITS = {"CPI Rate": "cycles/instruction", "Clockticks": "cycles", "Instructions Retired": "instructions"}
NOT_NUMBERS = "Collection and Platform Info"
ROOT = "Elapsed Time"
"""The metric that all others of the run lie under: it is left out of their names."""
_EVENT = re.compile(r"Hardware Event Count:(?P<name>\S+?)(?::(?P<kind>Self|Total))?(?: \((?P<prefix>[KMG])\))?")
_VALUE = re.compile(r"(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>%|s|GB/s)?")
_CPUS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


class Vtune(Apart):
    words = "VTune"
    source = "hardware"
    says: ClassVar[Mapping[str, NumberWords]] = {"vtune_*": NumberWords("VTune's metric or event of this name")}
    automatic = False
    options: ClassVar[dict[str, str]] = {
        "analysis": "what VTune looks for: " + ", ".join(ANALYSES),
        "cpus": "the CPUs to look at, such as '1,3-5'; all of them if not given",
    }

    def __init__(self, host: Testbed, analysis: str = "uarch-exploration", cpus: str = "") -> None:
        super().__init__(host)
        self.analysis, self.cpus = analysis, cpus

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        analysis, cpus = given.get("analysis", "threading"), given.get("cpus", "0")
        if analysis not in ANALYSES:
            raise terms_messages.unknown_value("analysis of vtune", analysis, ANALYSES)
        if not (isinstance(cpus, str) and _CPUS.fullmatch(cpus)):
            raise messages.bad_cpus(cpus)

    def unavailable(self) -> str | None:
        if why := intel.refused(self.host, "VTune"):
            return why
        return None if self._program() else messages.vtune_not_found(PLACES)

    def _program(self) -> str:
        """Where VTune is, or nothing."""
        return self.host.run(" || ".join(f"command -v {place}" for place in PLACES), check=False).stdout.strip()

    def facts(self) -> dict[str, Any]:
        version = self.host.run(f"{self._program()} -version", check=False).stdout.strip()
        return {"analysis": self.analysis, "cpus": self.cpus or "all", "version": version.splitlines()[0] if version else ""}

    def measure(self, seconds: float) -> str:
        command = script(self._program(), self.analysis, seconds, self.cpus)
        done = self.host.run(command, timeout=seconds + ALLOWANCE_S)
        return f"{done.stdout}--- messages\n{done.stderr}"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        hw_events, summary = intel.sections(recorded.end, "hw-events", "summary")
        metrics = list(read_summary(summary))
        reliability = next((one.value for one in metrics if one.path[-1] == "MUX Reliability" and one.value is not None), 1.0)
        doubt = [messages.unreliable(reliability, RELIABLE)] if reliability < RELIABLE else []
        for metric in metrics:
            reason = [] if metric.value is not None else [messages.no_value(metric.text)]
            yield Number(_name(metric.path), metric.value, metric.unit, note="; ".join([*reason, *doubt]))
        totals: dict[str, float] = defaultdict(float)
        for count in read_events(hw_events):
            totals[count.name] += count.value
        for name, total in totals.items():
            yield Number(f"vtune_{name}", total, "events", note="; ".join(["estimated from samples", *doubt]))

    @classmethod
    def functions(cls, recorded: Recorded) -> Iterable[FunctionCount]:
        (hw_events,) = intel.sections(recorded.end, "hw-events")
        return (count for count in read_events(hw_events) if count.value)


def script(program: str, analysis: str, seconds: float, cpus: str = "") -> str:
    """The shell script that looks at the whole host for ``seconds``, rounded up to whole ones, and prints the record.

    No program is named to VTune: so it looks at all of them.
    """
    words = [program, "-collect", analysis, ANALYSES[analysis], f"-duration {math.ceil(seconds)}", "-result-dir result"]
    words += [f"-cpu-mask {cpus}"] if cpus else []
    report = f"{program} -result-dir result -format csv -csv-delimiter comma -quiet"
    return f"""set -e
rm -rf {FOLDER}; mkdir -p {FOLDER}; cd {FOLDER}
{" ".join(filter(None, words))} -no-summary -quiet >&2
for report in hw-events summary; do {report} -report $report -report-output $report.csv >&2; done
echo --- hw-events; cat hw-events.csv
echo --- summary; cat summary.csv
rm -rf result
"""


@dataclass(frozen=True)
class Metric:
    """One line of VTune's summary."""

    path: tuple[str, ...]
    """Its name, behind the names that it lies under."""
    value: float | None
    unit: str
    text: str
    """What VTune printed for it."""


def read_summary(text: str) -> Iterator[Metric]:
    """The metrics of a summary report. Raises ``ValueError`` if it is none.

    Lines are as wide as they need to be: a heading has no value, and a table inside (of bandwidths) has lines with several values,
    behind a line of the columns' names.
    """
    lines = _lines(text, "Metric Name")
    header = next(lines)
    levelled = header[0] == "Hierarchy Level"
    if header[levelled:] != ["Metric Name", "Metric Value"]:
        raise ValueError(f"not a summary of VTune: {header}")
    above: list[str] = []
    columns: list[str] = []
    for line in lines:
        level = int(line[0]) if levelled else 0
        name, values = "".join(line[levelled : levelled + 1]), line[levelled + 1 :]
        if not 0 <= level <= len(above) or not name:
            raise ValueError(f"a line of VTune's summary lies under none: {line}")
        above = [*above[:level], name]
        if above[0] == NOT_NUMBERS:
            continue
        if len(values) <= 1:
            columns = []
            yield from _metric(tuple(above), values[0] if values else "")
        elif not columns:
            columns = values
        elif len(values) == len(columns):
            for column, value in zip(columns, values, strict=True):
                yield from _metric((*above, column), value)
        else:
            raise ValueError(f"a line of a table in VTune's summary has {len(values)} values, and the table {len(columns)} columns")


def read_events(text: str) -> Iterator[FunctionCount]:
    """The counts of a hw-events report, estimated from samples, by function. Raises ``ValueError`` if it is none."""
    lines = _lines(text, "Function")
    header = next(lines)
    counts = {at: match for at, title in enumerate(header) if (match := _EVENT.fullmatch(title)) and match["kind"] != "Total"}
    if not counts or "Module" not in header:
        raise ValueError(f"not a hw-events report of VTune: {header}")
    module = header.index("Module")
    for line in lines:
        if len(line) != len(header):
            raise ValueError(f"a line of VTune's hw-events has {len(line)} fields, and the table {len(header)}")
        for at, match in counts.items():
            value = float(line[at] or 0) * PREFIXES[match["prefix"] or ""]
            if not 0 <= value < math.inf:
                raise ValueError(f"{match['name']}: {line[at]!r} is no count")
            yield FunctionCount(match["name"], value, "events", line[module], line[0])


def _lines(text: str, title: str) -> Iterator[list[str]]:
    """The fields of the lines from the heading on, which has the field ``title``; the delimiter is the one around that.

    Raises ``ValueError`` if there is no heading: VTune may print remarks before it.
    """
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if re.search(rf"(^|[{DELIMITERS}] *){title} *[{DELIMITERS}]", line)), None)
    if start is None:
        raise ValueError(f"no column {title} in what VTune printed: {text[:80]!r}")
    delimiter = lines[start].partition(title)[2].lstrip(" ")[0]
    try:
        reader = csv.reader(lines[start:], delimiter=delimiter, skipinitialspace=True, strict=True)
        yield from ([field.strip() for field in line] for line in reader if line)
    except csv.Error as error:
        raise ValueError(f"not a table of VTune: {error}") from error


def _metric(path: tuple[str, ...], text: str) -> Iterator[Metric]:
    """The metric that a text is; none if it is a heading, or a text such as a machine's name."""
    name = path[-1]
    unit, factor = UNITS.get(name, "number"), 1.0
    if name.endswith("(%)"):
        unit, factor = "fraction", 0.01
    elif name.endswith(" Time"):
        unit = "seconds"
    elif any(part.endswith("GB/sec") for part in path):
        unit, factor = "bytes/second", 1e9
    match = _VALUE.fullmatch(text)
    if match:
        said = {"%": ("fraction", 0.01), "s": ("seconds", 1.0), "GB/s": ("bytes/second", 1e9)}
        unit, factor = said.get(match["unit"], (unit, factor))
        value = float(match["number"]) * factor
        if not math.isfinite(value):
            raise ValueError(f"{name}: {text!r} is too large")
        yield Metric(path, value, unit, text)
    elif text.startswith("N/A"):
        yield Metric(path, None, unit, text)


def _name(path: tuple[str, ...]) -> str:
    """``vtune_back_end_bound.memory_bound``: a point leads one level down. The unit in a name's brackets is left out."""
    parts = path[1:] if len(path) > 1 and path[0] == ROOT else path
    words = [re.sub(r"[^a-z0-9]+", "_", re.sub(r"\(%\)$|, GB/sec$", "", part).lower()).strip("_") for part in parts]
    return "vtune_" + ".".join(words)


COLLECTOR = Vtune
