# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened when, as a trace for Perfetto: `vsprof timeline RESULT`. For each case a run, of each of its traffics what was written down
in its first window, on tracks by CPU: who has it, what its kernel does, what its polls find, and what goes on in its guest."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from vsprof.analysis import messages, style
from vsprof.analysis.load import Result
from vsprof.analysis.perfetto import Slice, Trace
from vsprof.terms import files

NAME = "timeline.pftrace"
TRACKS = {
    "threads": ("task", "guest", "sleep", "wake"),
    "kernel": ("irq", "softirq", "work", "upcall", "ipi"),
    "polls": ("poll", "empty_polls"),
}
"""A CPU's tracks, and what is on each. A guest's own kernel has two more, of the first two."""
COUNTED = {"poll": "frames", "empty_polls": "polls", "ipi": "to CPU", "softirq": "packets"}
"""By kind, what its value means."""
GUEST = "guest"
Arrows = Mapping[Any, tuple[int, ...]]


def trace(result: Result, run_id: str | None = None) -> tuple[bytes, list[dict[str, Any]]]:
    """The file, and what is in it, JSON-ready. Raises BadInput where no run that is asked for has a timeline."""
    made, said = Trace(), []
    for case, run in _runs(result, run_id).items():
        spans = result.timeline.select(run_id=[run])
        for traffic, load in style.traffics(spans):
            for window, part in spans[(spans["traffic"] == traffic) & (spans["load"] == load)].groupby("window"):
                name = f"{result.cases.loc[case, 'label']}: {style.traffic_name(traffic, load)}"
                _write(made, made.track(name), part)
                said.append({"run_id": run, "case_id": case, "traffic": traffic, "load": load, "window": window, **described(part)})
    return made.data, said


def write(result: Result, path: Path, run_id: str | None = None) -> list[dict[str, Any]]:
    """Write the trace into a file, and say what is in it. Raises BadInput where it can't be written, too."""
    data, said = trace(result, run_id)
    try:
        files.replace(path, lambda partial: partial.write_bytes(data))
    except OSError as error:
        raise messages.can_not_write_timeline(path, error) from None
    return said


def text(said: Iterable[Mapping[str, Any]]) -> str:
    """The same for people, a line each."""
    return "\n".join(
        f"{one['run_id']} {style.traffic_name(one['traffic'], one['load'])}: {1e3 * one['seconds']:.2f} ms of {one['cpus']} CPUs, "
        f"{one['spans']:,} events" + "".join(f"; {messages.timeline_cut(cpu, why)}" for cpu, why in one["cut"].items())
        for one in said
    )


def described(part: pd.DataFrame) -> dict[str, Any]:
    """How much of a window is known, of how many CPUs, and which CPUs' parts ended early. Seconds: the longest."""
    known = part[part["kind"] == "recorded"]
    cut = {int(row.cpu): row.name for row in known.itertuples() if row.name}
    return {"cpus": len(known), "spans": len(part) - len(known), "seconds": int(known["duration_ns"].max()) / 1e9, "cut": cut}


def _runs(result: Result, run_id: str | None) -> dict[str, str]:
    """By case the run that is shown: the first that has a timeline, or the one that was asked for."""
    known = result.timeline.select(["run_id", "case_id", "kind"], kind=["recorded"]).drop_duplicates("run_id").sort_values("run_id")
    if known.empty:
        raise messages.no_timeline(result.path)
    asked = known if run_id is None else known[known["run_id"] == run_id]
    if asked.empty:
        raise messages.no_timeline_of_run(run_id, list(known["run_id"]))
    first = asked.drop_duplicates("case_id").set_index("case_id")["run_id"]
    return {case: first[case] for case in result.cases.index if case in first}


def _write(made: Trace, top: int, part: pd.DataFrame) -> None:
    arrows = _arrows(made, part)
    known = part[part["kind"] == "recorded"].sort_values("cpu")
    for of in known.itertuples():
        own = made.track(f"CPU {of.cpu}{f' ({of.role})' if of.role else ''}", top)
        for name, spans in _tracks(part[part["cpu"] == of.cpu]):
            made.slices(made.track(name, own), [_slice(row, *arrows) for row in spans.itertuples()])
        if of.name:
            end = int(of.time_ns + of.duration_ns)
            made.slices(made.track("record", own), [Slice(end, end, f"ends here: {of.name}", of.kind)])


def _tracks(of_cpu: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Those that have anything on them."""
    for mode, prefix in ((False, ""), (True, "guest's ")):
        here = of_cpu[(of_cpu["mode"] == GUEST) == mode]
        for name, kinds in TRACKS.items():
            spans = here[here["kind"].isin(kinds)]
            if not spans.empty:
                yield prefix + name, spans


def _arrows(made: Trace, part: pd.DataFrame) -> tuple[Arrows, Arrows]:
    """From each waking to the next time that its thread gets a CPU: by row those that begin there, and those that end there. Threads of a
    guest are other threads than the host's."""
    starts, ends, woken = {}, {}, {}
    # A guest is on one CPU; its number tells it from another one, whose threads have the same ids.
    spans = part[part["kind"].isin(["wake", "task"])].sort_values(["time_ns"])
    for row in spans.itertuples():
        who = (row.cpu if row.mode == GUEST else "host", row.thread)
        if row.kind == "wake":
            woken.setdefault(who, row.Index)
        elif who in woken:
            starts[woken.pop(who)] = ends[row.Index] = (made.arrow(),)
    return starts, ends


def _slice(row: Any, starts: Arrows, ends: Arrows) -> Slice:
    begin, end = int(row.time_ns), int(row.time_ns + row.duration_ns)
    value = None if pd.isna(row.value) else int(row.value)
    details: dict[str, int | str] = {} if pd.isna(row.thread) else {"thread": int(row.thread)}
    name = _words(row.kind, row.name, value)
    if row.kind in COUNTED and value is not None:
        details[COUNTED[row.kind]] = value
    return Slice(begin, end, name, row.kind, details, starts.get(row.Index, ()), ends.get(row.Index, ()))


def _words(kind: str, name: str, value: int | None) -> str:
    """What a slice is called."""
    said = {
        "guest": f"in the guest, left by: {name}" if name else "in the guest",
        "sleep": "sleeps",
        "irq": f"interrupt: {name}",
        "softirq": f"softirq: {name}{f', {value} packet' if value else ''}{'s' if (value or 0) > 1 else ''}",
        "wake": f"wakes {name}",
        "poll": f"{value} frame{'s' if value != 1 else ''}",
        "empty_polls": f"{value} empty poll{'s' if value != 1 else ''}",
        "ipi": f"interrupts CPU {value}",
    }
    return said.get(kind, name) or kind
