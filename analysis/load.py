# SPDX-License-Identifier: GPL-2.0-or-later
"""Read one result directory: the way in to everything else here.

Nothing but manifest.json and the tables beside it (terms/schema.py) is read, so a result can be analysed
years later, on a laptop that has no switch.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vsprof.analysis import messages, tables, vocabulary
from vsprof.terms import schema
from vsprof.terms.schema import ACCESSES

COORDINATES = {"switch", "access", "topology", "testbed", "traffic", "load"}
"""Values of a case that are shown as something of their own, and so are no part of its `setting`."""
SIZES = ("flows", "frame_bytes")
"""Values that make another question of the same kind. What else varies (switch, access, options) is what is compared."""


@dataclass(frozen=True, eq=False)
class Result:
    """One result.

    manifest: what manifest.json says. failed: the manifest's entries of the runs that failed.
    measurements: every number, unread (see `frame`).
    functions, stacks, timeline: what was counted in single functions and call stacks, and what happened when, unread: they have far more
    rows, or none where nobody wrote them down.
    """

    path: Path
    manifest: dict[str, Any]
    failed: list[dict[str, Any]]
    measurements: tables.Asked
    functions: tables.Asked
    stacks: tables.Asked
    timeline: tables.Asked

    @functools.cached_property
    def frame(self) -> pd.DataFrame:
        """Every number of the finished runs, in the schema's columns, with a `load` column in any case. Read when first asked for."""
        return self.measurements.select()

    @property
    def testbed(self) -> str:
        return self.manifest.get("testbed") or str(self.frame["testbed"].iloc[0])

    @property
    def emulated(self) -> bool:
        """True where wall-clock rates are an emulator's. Under KVM the lab's are a processor's, though a virtual machine's."""
        return self.testbed == "lab" and self.manifest.get("host_options", {}).get("accel") != "kvm" and not self.modelled

    @functools.cached_property
    def modelled(self) -> str | None:
        """The processor as modelled in whose time rates were measured, or several; None where time was real, or the emulator's."""
        clocks = [run["clock"] for run in self.manifest.get("runs", []) if run.get("clock")] or [self.clock()]
        return ", ".join(dict.fromkeys(clock["cpu_name"] for clock in clocks if clock.get("cpu_name"))) or None

    def clock(self, case: str | None = None) -> dict[str, Any]:
        """Of the modelled processor in whose time a case was run: cpu_name, frequency_hz [Hz], …; empty where there is none."""
        own = (run["clock"] for run in self.manifest.get("runs", []) if run.get("clock") and run["case_id"] == case)
        return next(own, self.manifest.get("facts", {}).get("clock") or {})

    @functools.cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """By case, what the manifest knows of it: its switch, its endpoints, its kernel and processor where these are factors."""
        return (self.manifest.get("facts") or {}).get("cases") or {}

    @functools.cached_property
    def numbers(self) -> pd.DataFrame:
        """The part of `frame` that may share an axis: one testbed, software counters, no own windows.

        In modelled time, what software counters say of time is of source `model`.
        """
        sources = ["software", "model"] if self.modelled else ["software"]
        here = self.frame[self.frame["testbed"] == self.testbed]
        return here[here["source"].isin(sources) & ~_in_own_window(here)]

    @functools.cached_property
    def own_numbers(self) -> pd.DataFrame:
        """What was counted in collectors' own windows, by them, beside them and by the traffic: one testbed, all sources.

        Unless time was modelled, the host was slowed down there: no rate of these windows compares with one of `numbers`.
        """
        here = self.frame[self.frame["testbed"] == self.testbed]
        return here[_in_own_window(here)]

    @functools.cached_property
    def values(self) -> dict[str, dict[str, Any]]:
        """By case, all its values by name, in the manifest's order, which is that of the experiment."""
        here = set(self.frame["case_id"].unique())
        given = {case["case_id"]: case.get("values", {}) for case in self.manifest.get("cases", []) if case["case_id"] in here}
        return {**given, **{case: {} for case in here - given.keys()}}

    @functools.cached_property
    def varied(self) -> dict[str, dict[str, Any]]:
        """By case, what differs between cases beside switch and access: sizes first, then options, each by name. What a case does not have
        is not in it."""
        names = {name for values in self.values.values() for name in values} - COORDINATES
        varied = [name for name in names if len({str(values.get(name)) for values in self.values.values()}) > 1]
        varied.sort(key=lambda name: (name not in SIZES, name))
        return {case: {name: values[name] for name in varied if values.get(name) is not None} for case, values in self.values.items()}

    @functools.cached_property
    def changes(self) -> list[dict[str, Any]]:
        """The experiment's `changes`, but for the one that changes nothing."""
        return [change for change in (self.manifest.get("experiment") or {}).get("changes", []) if change]

    @functools.cached_property
    def changed(self) -> dict[str, dict[str, Any]]:
        """By case, what of `changes` it has. The first case that has an option, whether it was run or not, has it unchanged."""
        named, unchanged = set().union(*self.changes), {}
        for case in reversed(self.manifest.get("cases", [])):
            unchanged.update(case.get("values", {}))
        return {
            case: {name: value for name, value in values.items() if name in named and unchanged.get(name) != value}
            for case, values in self.values.items()
        }

    @functools.cached_property
    def told(self) -> dict[str, dict[str, Any]]:
        """What is said of a case: what of `varied` is no part of `changes`, and what is `changed`."""
        named = set().union(*self.changes)
        return {
            case: {name: value for name, value in values.items() if name not in named} | self.changed[case]
            for case, values in self.varied.items()
        }

    @functools.cached_property
    def cases(self) -> pd.DataFrame:
        """One row a case, in the order of all figures; index `case_id`.

        Columns: switch, access, topology, arm (`kernel-ovs · vhost-net`), setting (the other varied values,
        empty if none varies) and label (both, or the setting alone where all cases have one arm).
        """
        first = self.frame.groupby("case_id")[["switch", "access", "topology"]].first()
        first["arm"] = first["switch"] + " · " + first["access"].fillna("–")
        first["setting"] = [worded(self.told[case]) for case in first.index]
        # Where all cases have the same switch and access, what tells them apart is said alone.
        alone = first["arm"].nunique() == 1
        labels = zip(first["arm"], first["setting"], strict=True)
        first["label"] = [more if more and alone else f"{arm}, {more}" if more else arm for arm, more in labels]
        # Of changes, the experiment's own order is the one in which they are told.
        places = {case: (place,) for place, case in enumerate(self.values)} if self.changes else _places(self.varied)
        first["_order"] = [
            ((vocabulary.switch(row.switch).rank, row.switch), _index(ACCESSES, row.access), places[row.Index])
            for row in first.itertuples()
        ]
        return first.sort_values("_order", kind="stable").drop(columns="_order")

    def cpu_roles(self, case: str) -> dict[int, str]:
        """What each CPU was for in a case, by the manifest."""
        runs = (run for run in self.manifest.get("runs", []) if run["case_id"] == case and run.get("cpu_roles"))
        return {int(cpu): role for cpu, role in next(runs, {"cpu_roles": {}})["cpu_roles"].items()}

    def differences(self, one: str, other: str) -> set[str]:
        """What tells two cases apart: `arm` (switch or access), and each varied value that both have."""
        here, there = self.varied[one], self.varied[other]
        found = {name for name in here.keys() & there.keys() if here[name] != there[name]}
        return found | ({"arm"} if self.cases.loc[one, "arm"] != self.cases.loc[other, "arm"] else set())

    @functools.cached_property
    def repetitions(self) -> int:
        """The smallest number of finished repetitions that any case has."""
        return int(self.frame[["case_id", "run_id"]].drop_duplicates().groupby("case_id").size().min())

    @property
    def doubt(self) -> str:
        """What stands below an answer that no interval supports, or nothing."""
        return messages.ONCE if self.repetitions == 1 else ""

    @functools.cached_property
    def order(self) -> list[list[str]]:
        """The cases of each repetition in the order in which they ran; empty where some ran among those of another repetition on the same
        machine, or it was not recorded."""
        runs = [run for run in self.manifest.get("runs", []) if run.get("started") and run["case_id"] in self.values]
        runs.sort(key=lambda run: (run["started"], run.get("order", 0)))
        for server in {run.get("server") for run in runs}:
            there = [run["repetition"] for run in runs if run.get("server") == server]
            if there != sorted(there):
                return []
        return [[run["case_id"] for run in runs if run["repetition"] == one] for one in sorted({run["repetition"] for run in runs})]

    def limits(self) -> list[str]:
        """What a reader must know before trusting the numbers: failed runs, what was left out, too few repetitions."""
        runs = self.manifest.get("runs", [])
        others = sorted(set(self.frame["testbed"].dropna().unique()) - {self.testbed})
        texts = [messages.failed_run(run["run_id"], run.get("error") or "no reason recorded") for run in self.failed]
        if self.manifest.get("status") == "partial":
            planned = len(self.manifest.get("cases", [])) * int(self.manifest.get("experiment", {}).get("repetitions") or 1)
            done = sum(run.get("status") == "done" for run in runs)
            texts.append(messages.partial_result(done, max(len(runs), planned)))
        if others:
            texts.append(messages.left_out_testbeds(others, self.testbed))
        if self.repetitions < 6:
            texts.append(messages.too_few_repetitions(self.repetitions))
        return texts + [finding["text"] for finding in self.manifest.get("findings", [])]


def load(run_dir: str | Path) -> Result:
    """Read the result in `run_dir`; BadInput if it is none, was written with another schema, or has no finished run."""
    path = Path(run_dir).resolve()
    manifest = _manifest(path / "manifest.json")
    failed = [run for run in manifest.get("runs", []) if run.get("status") == "failed"]
    left_out = [run["run_id"] for run in failed]
    asked = {
        name: tables.ask(path / f"{name}.parquet", layout, left_out, optional=name != "measurements")
        for name, layout in schema.TABLES.items()
    }
    if asked["measurements"].select(["run_id"], most=1).empty:
        raise messages.no_finished_run(path, len(failed))
    return Result(path, manifest, failed, **asked)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        tables.check_version(path, manifest.get("schema_version"))
        vocabulary.learn(manifest)
    except (FileNotFoundError, NotADirectoryError):
        raise messages.no_result(path.parent, path.name) from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise messages.unreadable_result(path, error) from None
    return manifest


def _in_own_window(frame: pd.DataFrame) -> pd.Series:
    return frame["window"].isin([window for window in frame["window"].unique() if schema.window_owner(window)])


def worded(values: Mapping[str, Any]) -> str:
    """Varied values as every figure, table and text names them: `64 B, dequeue=copy`."""
    return ", ".join(_worded(name, value) for name, value in values.items())


def _places(cases: dict[str, dict[str, Any]]) -> dict[str, tuple]:
    """What to sort cases by: numbers by size; words in the order in which the experiment gives them, which is that of the cases."""
    names = list(dict.fromkeys(name for values in cases.values() for name in values))
    words = {name: list(dict.fromkeys(values[name] for values in cases.values() if name in values)) for name in names}
    return {case: tuple(_sortable(values.get(name), words[name]) for name in names) for case, values in cases.items()}


def _sortable(value: Any, words: list[Any]) -> tuple[int, float]:
    try:
        return 0, float(value)
    except (TypeError, ValueError):
        return 1, _index(words, value)


def _worded(name: str, value: Any) -> str:
    if name == "frame_bytes":
        return f"{value} B"
    if name == "flows":
        return f"{int(value):,} flow{'s' if int(value) != 1 else ''}"
    return f"{name}={value}"


def _index(order: Sequence[Any], word: Any) -> int:
    return order.index(word) if word in order else len(order)
