# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampled call stacks of a result, and their flame graphs: one a case, and one for each pair of cases that differ in the switch.

All windows and repetitions of a case are summed. Samples of idle CPUs are not among the stacks. A PMU's samples and a clock's never
meet in one graph.
"""

from __future__ import annotations

import html
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import flamegraph, style, vocabulary
from analysis.load import SIZES, Result

NAME = "samples"
CAPTION = (
    "Where the CPUs were, by call stack: a box is a function as wide as its share of the samples, and stands on its caller; below are the "
    "thread's name and its role. Samples of idle CPUs are left out. Of user programs the callers may be missing; code that runs with "
    "interrupts off is seen where they are switched on again, unless the PMU took the samples."
)


@dataclass(frozen=True)
class Graph:
    """One flame graph: what it shows, and the file's name without its ending."""

    name: str
    title: str
    stacks: dict[str, float]
    against: tuple[dict[str, float], tuple[str, str]] | None = None
    """For a difference: the second profile, and the names of both."""

    def svg(self, *, interactive: bool) -> str:
        if self.against is None:
            return flamegraph.draw(self.stacks, self.title, interactive=interactive)
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
    traffic, load, source = _chosen(result)
    clock = "the kernel's clock (software)" if source == "software" else "the PMU's cycles (hardware)"
    caption = f"{CAPTION} Traffic: {style.traffic_name(traffic, load)}. Testbed: {result.testbed}. Sampled by {clock}, in own windows."
    if result.emulated:
        caption += " Emulated lab: shares of time are the emulator's; which function calls which carries over."
    return Shown(graphs, html.escape(caption))


def write(result: Result) -> list[Path]:
    """Write each graph into the result's folder, to be opened by a browser; return the files."""
    paths = []
    for graph in of(result):
        path = result.path / f"{graph.name}.svg"
        partial = path.with_name(path.name + ".partial")
        partial.write_text(graph.svg(interactive=True), encoding="utf-8")
        os.replace(partial, path)
        paths.append(path)
    return paths


def of(result: Result) -> list[Graph]:
    """First one a case, in the order of all figures, then the differences."""
    rows = _rows(result)
    if rows.empty:
        return []
    cases = result.cases.loc[[case for case in result.cases.index if case in set(rows["case_id"])]]
    traffic = style.traffic_name(*_chosen(result)[:2])
    profiles = {case: _profile(rows[rows["case_id"] == case]) for case in cases.index}
    short = {case: _short(cases, case) for case in cases.index}
    single = [Graph(f"flame-{short[case]}", f"{cases.loc[case, 'label']}, {traffic}", profiles[case]) for case in cases.index]
    return single + [
        Graph(f"flame-diff-{short[a]}-{short[b]}", f"{label_a} → {label_b}, {traffic}", profiles[a], (profiles[b], (label_a, label_b)))
        for a, b in _pairs(result, cases)
        for label_a, label_b in [(cases.loc[a, "label"], cases.loc[b, "label"])]
    ]


def _pairs(result: Result, cases: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Cases that differ in one thing that is compared: switch and access, or an option."""
    for pair in itertools.combinations(cases.index, 2):
        if len(differences := result.differences(*pair)) == 1 and not differences & set(SIZES):
            yield pair


def _short(cases: pd.DataFrame, case: str) -> str:
    """The switch alone where that tells the case."""
    switch = str(cases.loc[case, "switch"])
    return switch if (cases["switch"] == switch).sum() == 1 else case


def _profile(rows: pd.DataFrame) -> dict[str, float]:
    """Samples by role and folded stack."""
    stacks = rows["role"].replace("", "no role") + ";" + rows["stack"]
    return rows.groupby(stacks)["value"].sum().to_dict()


def _chosen(result: Result) -> tuple[str, str, str]:
    rows = _sampled(result)
    sent = style.traffics(rows)
    traffic, load = (vocabulary.at_saturation(sent) or sent)[0]
    here = rows[(rows["traffic"] == traffic) & (rows["load"] == load)]
    # With both, the one that most cases have.
    source = here.groupby("source")["case_id"].nunique().sort_index().idxmax()
    return traffic, load, str(source)


def _sampled(result: Result) -> pd.DataFrame:
    rows = result.stacks
    return rows[(rows["name"] == NAME) & (rows["testbed"] == result.testbed)]


def _rows(result: Result) -> pd.DataFrame:
    rows = _sampled(result)
    if rows.empty:
        return rows
    traffic, load, source = _chosen(result)
    return rows[(rows["traffic"] == traffic) & (rows["load"] == load) & (rows["source"] == source)]
