# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampled call stacks of a result, and their flame graphs: one a case, and one for each pair of cases that differ in the switch; the
same for each event, where events were sampled.

All windows and repetitions of a case are summed. Samples of idle CPUs are not among the stacks. A PMU's samples and a clock's never
meet in one graph.
"""

import html
import itertools
from dataclasses import dataclass

from vsprof.analysis import flamegraph, profiles, style
from vsprof.analysis.load import SIZES, Result
from vsprof.analysis.profiles import Profile

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
    drawn = _drawn(result)
    if not drawn:
        return None
    caption = f"{CAPTION} Traffic: {_traffic(drawn)}. Testbed: {result.testbed}. Sampled by {_sampler(drawn)}, in own windows."
    if result.emulated:
        caption += " Emulated lab: shares of time are the emulator's; which function calls which carries over."
    return Shown(of(result), html.escape(caption))


def of(result: Result) -> list[Graph]:
    """First one a case, in the order of all figures, then the differences: of cases that differ in one thing that is compared (switch and
    access, or an option)."""
    drawn = _drawn(result)
    events = dict.fromkeys(one.event for one in drawn)
    return [graph for event in events for graph in _of_event(result, [one for one in drawn if one.event == event])]


def _of_event(result: Result, drawn: list[Profile]) -> list[Graph]:
    switches = result.cases.loc[[one.case for one in drawn], "switch"].astype(str)
    # The switch alone where that tells the case.
    short = switches.mask(switches.duplicated(keep=False), switches.index.to_series())
    event = drawn[0].event
    named, of = ("", "") if event == NAME else (f"{event}-", f": {event}")
    traffic, stacks = _traffic(drawn) + of, {one.case: one.folded() for one in drawn}
    graphs = [Graph(f"flame-{named}{short[one.case]}", f"{one.label}, {traffic}", stacks[one.case], one.unit) for one in drawn]
    for one, other in itertools.combinations(drawn, 2):
        if len(differences := result.differences(one.case, other.case)) == 1 and not differences & set(SIZES):
            name, both = f"flame-diff-{named}{short[one.case]}-{short[other.case]}", (one.label, other.label)
            graphs.append(Graph(name, f"{' → '.join(both)}, {traffic}", stacks[one.case], one.unit, (stacks[other.case], both)))
    return graphs


def _sampler(drawn: list[Profile]) -> str:
    software = drawn[0].source == "software"
    if {one.event for one in drawn} == {NAME}:
        return "the kernel's clock (software)" if software else "the PMU's cycles (hardware)"
    return "the kernel's own events (software)" if software else "the PMU's events (hardware)"


def _drawn(result: Result) -> list[Profile]:
    """The samples of one traffic and one source: with both, of the one that most cases have."""
    found = profiles.usual(one for one in profiles.stored(result) if one.calls and one.collector == COLLECTOR)
    cases = {source: len({one.case for one in found if one.source == source}) for source in sorted({one.source for one in found})}
    return [one for one in found if one.source == max(cases, key=cases.__getitem__)]


def _traffic(drawn: list[Profile]) -> str:
    return style.traffic_name(drawn[0].traffic, drawn[0].load)
