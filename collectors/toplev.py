# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the pipeline's slots of each CPU went, by Intel's top-down method: toplev of pmu-tools, on Intel's processors only.

toplev measures for a given time and rotates groups of events meanwhile, so it has windows of its own. It is installed by
`make toplev`, which also fetches its lists of events from a clone of Intel's perfmon; nothing is fetched at run time. Not run here:
the project's machines have no Intel processor. docs/collectors/toplev.md says what was tried.
"""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors import intel, messages
from vsprof.collectors.base import Apart, Recorded
from vsprof.terms import places, units
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import Testbed

BUILD = places.BUILD
PACKAGES = BUILD / "toplev"
"""Where `make toplev` puts pmu-tools: Python alone, so that any python3 of the testbed runs it."""
EVENTS = BUILD / "toplev-events"
"""The lists of events. toplev looks nowhere else, so that a list which is not there can't be asked of the net."""
FOLDER = "/run/vsprof-toplev"
LEVELS = (1, 3)
ALLOWANCE_S = 120
NODE_UNIT = re.compile(r"% (?P<of>[A-Za-z_]+)")
_TITLE = re.compile(r"(?:CPU(?P<cpu>\d+))|(?:S(?P<package>\d+))?-?(?:C(?P<core>\d+))?(?:-T(?P<thread>\d+))?")
Place = tuple[int, int]
"""Package and core."""


class Toplev(Apart):
    words = "toplev (top-down method)"
    source = "hardware"
    says: ClassVar[Mapping[str, NumberWords]] = {"toplev_*": NumberWords("toplev's metric of this node of the top-down tree")}
    automatic = False
    options: ClassVar[dict[str, str]] = {"level": "how deep into the tree of bottlenecks: 1 (not multiplexed), 2 or 3"}

    def __init__(self, host: Testbed, level: int = 2) -> None:
        super().__init__(host)
        self.level = level

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        level = given.get("level", LEVELS[0])
        if type(level) is not int or not LEVELS[0] <= level <= LEVELS[1]:
            raise messages.bad_level(level, *LEVELS)

    def unavailable(self) -> str | None:
        if why := intel.refused(self.host, "toplev"):
            return why
        lacking = [str(path) for path in (PACKAGES, EVENTS) if self.host.run(f"test -e {path}", check=False).status]
        if lacking:
            return messages.toplev_not_installed(lacking)
        tried = self.host.run(script(1, 0.1), check=False)
        return messages.toplev_fails(" ".join(tried.stderr.split())[-300:]) if tried.status else None

    def facts(self) -> dict[str, Any]:
        asked = self.host.run(
            f"PYTHONPATH={PACKAGES} python3 -c 'import importlib.metadata as m; print(m.version(\"pmu_tools\"))'", check=False
        )
        return {"level": self.level, "pmu_tools": asked.stdout.strip()}

    def measure(self, seconds: float) -> str:
        done = self.host.run(script(self.level, seconds), timeout=seconds + ALLOWANCE_S)
        return f"{done.stdout}--- messages\n{done.stderr}"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        seconds, cpuinfo, counted, table = intel.sections(recorded.end, "seconds", "cpuinfo", "perf", "toplev")
        cpus, uncounted = Cpus(cpuinfo), _uncounted(counted)
        for row in rows(table):
            where = cpus.of(row.get("CPUs") or "")
            lacking = sorted({event for cpu in cpus.neighbours(where) for event in uncounted[cpu]})
            roles = {recorded.placement.role_of_cpu(cpu) for cpu in where}
            cpu = where[0] if len(where) == 1 else None
            # What two CPUs of different roles share belongs to neither.
            role = roles.pop() if len(roles) == 1 else None
            value, unit, notes = _value(row)
            if lacking:
                value, notes = None, [messages.taken_for_zero(lacking)]
            if cpu is None and row.get("CPUs"):
                notes.append(f"of {row['CPUs']}")
            enabled = float(seconds)
            yield Number(_name(row["Area"]), value, unit, role, cpu, "all", enabled, enabled * _share(row), "; ".join(notes))


def script(level: int, seconds: float) -> str:
    """The shell script that measures all CPUs for ``seconds`` and prints the record.

    -v keeps what is below the threshold. -A and --per-thread give each CPU its rows, on every processor and with SMT or without.
    """
    environment = f"env LC_ALL=C PYTHONPATH={PACKAGES} CACHEDIR={EVENTS} PERFMONDIR=file://{EVENTS}"
    return f"""set -e
rm -rf {FOLDER}; mkdir -p {FOLDER}; cd {FOLDER}
{environment} python3 -m toplev -l{level} -v -q --no-desc -a -A --per-thread -x, -o toplev --perf-output perf -- sleep {seconds} >&2
echo --- seconds; echo {seconds}
echo --- cpuinfo; grep -E '^(processor|physical id|core id)' /proc/cpuinfo
echo --- perf; cat perf
echo --- toplev; cat toplev
"""


class Cpus:
    """Which CPUs toplev's titles mean: ``CPU3``, ``C1-T0``, ``S0-C1-T0``, ``C1`` (all of a core), ``S0`` (all of a package)."""

    def __init__(self, cpuinfo: str) -> None:
        self.places: dict[int, Place] = {}
        cpu, package = -1, 0
        for line in cpuinfo.splitlines():
            key, _, value = line.partition(":")
            match key.strip():
                case "processor":
                    cpu, package = int(value), 0
                case "physical id":
                    package = int(value)
                case "core id":
                    self.places[cpu] = (package, int(value))

    def of(self, title: str) -> Sequence[int]:
        """The CPUs of a title; none for no title. Raises ``ValueError`` on anything else."""
        match = _TITLE.fullmatch(title)
        if not match:
            raise ValueError(f"not a CPU of toplev: {title[:40]!r}")
        if match["cpu"]:
            return (int(match["cpu"]),)
        if not title:
            return ()
        package, core, thread = (None if match[part] is None else int(match[part]) for part in ("package", "core", "thread"))
        found = [cpu for cpu, place in self.places.items() if package in (None, place[0]) and core in (None, place[1])]
        # A core's threads are numbered in the order in which /proc/cpuinfo lists them.
        found = found if thread is None else found[thread : thread + 1]
        if not found:
            raise ValueError(f"no CPU of this host is {title[:40]!r}")
        return found

    def neighbours(self, cpus: Iterable[int]) -> set[int]:
        """The CPUs and those that share a core with them, whose counts toplev may have added."""
        cpus = set(cpus)
        places = {self.places[cpu] for cpu in cpus if cpu in self.places}
        return cpus | {cpu for cpu, place in self.places.items() if place in places}


def rows(table: str) -> Iterable[dict[str, str]]:
    """The lines of toplev's table by its headings. Raises ``ValueError`` if it is none, or a line has too few fields."""
    reader = csv.DictReader((line for line in table.splitlines() if line and not line.startswith("#")), strict=True)
    try:
        if not {"Area", "Value", "Unit", "Multiplex"} <= set(reader.fieldnames or ()):
            raise ValueError(f"not a table of toplev: {table[:80]!r}")
        for row in reader:
            if None in row or None in row.values():
                raise ValueError(f"a line of toplev's table has the wrong number of fields: {row}")
            yield row
    except csv.Error as error:
        raise ValueError(f"not a table of toplev: {error}") from error


def _uncounted(text: str) -> Mapping[int, set[str]]:
    """The events of each CPU that perf did not count, as perf itself printed them: toplev takes such an event for 0."""
    found: dict[int, set[str]] = defaultdict(set)
    for line in text.splitlines():
        fields = line.split(";")
        if len(fields) > 3 and fields[1].startswith("<") and re.fullmatch(r"CPU\d+", fields[0]):
            found[int(fields[0][3:])].add(fields[3])
    return found


def _name(area: str) -> str:
    """``Backend_Bound.Memory_Bound`` -> ``toplev_backend_bound.memory_bound``: a point leads one level down."""
    return "toplev_" + re.sub(r"[^a-z0-9.]+", "_", area.lower())


def _value(row: Mapping[str, str]) -> tuple[float | None, str, list[str]]:
    """Value, unit, and remarks. Percent become fractions. Raises ``ValueError`` if the value is no number."""
    unit = row["Unit"].removesuffix("<").strip()
    notes = [messages.below_threshold()] if row["Unit"].endswith("<") else []
    percent = unit.startswith("%")
    if match := NODE_UNIT.fullmatch(unit):
        unit = "fraction of " + match["of"].lower().replace("_", " ")
    else:
        unit = "fraction" if percent else unit.lower() if unit.lower() in units.KNOWN else "number"
    value = float(row["Value"] or "nan")
    if not math.isfinite(value):
        return None, unit, [messages.no_value(row["Value"])]
    value = value / 100 if percent else value
    if percent and not 0 <= value <= 1:
        notes.append(messages.out_of_range())
    if row.get("Idle") == "Y":
        notes.append("idle")
    return value, unit, notes


def _share(row: Mapping[str, str]) -> float:
    """The part of the time in which the events were counted."""
    share = float(row["Multiplex"] or 100) / 100
    if not 0 <= share <= 1:
        raise ValueError(f"Multiplex: {row['Multiplex']!r} is no percentage")
    return share


COLLECTOR = Toplev
