# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampled call stacks of a result, and their flame graphs: one a case, and one for each pair of cases that differ in the switch; the
same for each event, where events were sampled.

All windows and repetitions of a case are summed. Samples of idle CPUs are not among the stacks. A PMU's samples and a clock's never
meet in one graph.
"""

from __future__ import annotations

import html
import itertools
from dataclasses import dataclass

import pandas as pd

from vsprof.analysis import flamegraph, style, vocabulary
from vsprof.analysis.load import SIZES, Result

NAME = "samples"
"""Of the clock or of cycles; any other name is that of an event."""
COLLECTOR = "perf_record"
CAPTION = (
    "Where the CPUs were, or where events happened, by call stack: a box is a function as wide as its share, and stands on its caller; "
    "below are the thread's name and its role. Samples of idle CPUs are left out. Of user programs the callers may be missing; code that "
    "runs with interrupts off is seen where they are switched on again, unless the PMU took the samples."
)


@dataclass(frozen=True)
class Graph:
    """One flame graph: what it shows, and the file's name without its ending."""

    name: str
    title: str
    stacks: dict[str, float]
    unit: str = NAME
    against: tuple[dict[str, float], tuple[str, str]] | None = None
    """For a difference: the second profile, and the names of both."""

    def svg(self, *, interactive: bool) -> str:
        if self.against is None:
            return flamegraph.draw(self.stacks, self.title, self.unit, interactive=interactive)
        second, names = self.against
        return flamegraph.differ(self.stacks, second, self.title, names, interactive=interactive)


@dataclass(frozen=True)
class Shown:
    """The graphs in a notebook."""

    graphs: list[Graph]
    caption: str

    def _repr_html_(self) -> str:
        images = "".join(f"<figure>{graph.svg(interactive=False)}</figure>" for graph in self.graphs)
        files = ", ".join(f"{graph.name}.svg" for graph in self.graphs)
        return f"{images}<p><small>{self.caption} The same to zoom into, beside this report: {html.escape(files)}.</small></p>"


def show(result: Result) -> Shown | None:
    """All graphs of the result; None where no stacks were recorded, which is no fault: an experiment must ask for them."""
    graphs = of(result)
    if not graphs:
        return None
    rows = _drawn(result)
    clock = _sampler(rows)
    caption = f"{CAPTION} Traffic: {_traffic(rows)}. Testbed: {result.testbed}. Sampled by {clock}, in own windows."
    if result.emulated:
        caption += " Emulated lab: shares of time are the emulator's; which function calls which carries over."
    return Shown(graphs, html.escape(caption))


def of(result: Result) -> list[Graph]:
    """First one a case, in the order of all figures, then the differences: of cases that differ in one thing that is compared (switch and
    access, or an option)."""
    rows = _drawn(result)
    if rows.empty:
        return []
    return [graph for event, part in rows.groupby("name", sort=False) for graph in _of_event(result, str(event), part)]


def _of_event(result: Result, event: str, rows: pd.DataFrame) -> list[Graph]:
    cases = result.cases[result.cases.index.isin(rows["case_id"])]
    # The switch alone where that tells the case.
    short = cases["switch"].astype(str).mask(cases["switch"].duplicated(keep=False), cases.index.to_series())
    named, of = ("", "") if event == NAME else (f"{event}-", f": {event}")
    traffic, label, unit = _traffic(rows) + of, cases["label"], str(rows["unit"].iloc[0])
    folded = rows["role"].replace("", "no role") + ";" + rows["stack"]
    profiles = {case: part.groupby(folded)["value"].sum().to_dict() for case, part in rows.groupby("case_id")}
    graphs = [Graph(f"flame-{named}{short[case]}", f"{label[case]}, {traffic}", profiles[case], unit) for case in cases.index]
    for a, b in itertools.combinations(cases.index, 2):
        if len(differences := result.differences(a, b)) == 1 and not differences & set(SIZES):
            title, both = f"{label[a]} → {label[b]}, {traffic}", (label[a], label[b])
            graphs.append(Graph(f"flame-diff-{named}{short[a]}-{short[b]}", title, profiles[a], unit, (profiles[b], both)))
    return graphs


def _sampler(rows: pd.DataFrame) -> str:
    software = rows["source"].iloc[0] == "software"
    if set(rows["name"]) == {NAME}:
        return "the kernel's clock (software)" if software else "the PMU's cycles (hardware)"
    return "the kernel's own events (software)" if software else "the PMU's events (hardware)"


def _drawn(result: Result) -> pd.DataFrame:
    """The samples of one traffic and one source: with both, of the one that most cases have."""
    rows = result.stacks.select(collector=COLLECTOR, testbed=result.testbed)
    if rows.empty:
        return rows
    sent = style.traffics(rows)
    traffic, load = (vocabulary.at_saturation(sent) or sent)[0]
    rows = rows[(rows["traffic"] == traffic) & (rows["load"] == load)]
    return rows[rows["source"] == rows.groupby("source")["case_id"].nunique().sort_index().idxmax()]


def _traffic(rows: pd.DataFrame) -> str:
    return style.traffic_name(rows["traffic"].iloc[0], rows["load"].iloc[0])
