# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections of a report, one method each: a heading, a few words, and what shows it.

In a notebook each call displays its section below the cell; a cell can have several. What one notebook alone needs stands in its own
cells, and is displayed by `show`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.display import Markdown, display

from vsprof.analysis import (
    describe,
    differential,
    everything,
    explain_dataplane,
    explain_model,
    figures,
    read,
    roofline,
    stacks,
    vocabulary,
)
from vsprof.analysis.figures import counts, pmd_batches
from vsprof.analysis.load import Result, load
from vsprof.analysis.sources import HARDWARE, MODEL

WORDS: dict[str, str] = read(__file__)
NOTES: dict[str, Any] = read(Path(__file__).with_name("reading"))
"""What the words of a report mean, by what has them."""
[EQUAL_BUDGET], [TSC] = NOTES["equal budget"], NOTES["TSC"]


def begin(result_dir: str | Path, answer: Callable[[Result], object] = lambda _: None, run: str = "") -> "Report":
    """Load a result; show its question, and what `answer` says. Most reports go on with the numbers and with what was run, which `run`
    is about; the others show both where they want them. Raises BadInput where the result can't be read."""
    report = Report(load(result_dir))
    said = answer(report.result)
    show(describe.question(report.result), said, "" if said is None else report.result.doubt)
    if run:
        report.headlines()
        report.what_was_run(run)
    return report


def headed(heading: str) -> str:
    """A heading, and what usually stands below it."""
    return f"## {heading}\n{WORDS[heading]}"


def show(*parts: object) -> None:
    """Display each part: a text is Markdown; anything else is what Jupyter can show. None, and an empty text, is left out."""
    display(*(Markdown(part) if isinstance(part, str) else part for part in parts if part is not None and part != ""))


def _section(heading: str, *parts: Callable[[Result], object] | str) -> Callable[..., None]:
    """A section that shows these parts, or figures of these names, below the words that a notebook has for it, else the usual ones."""

    def section(report: "Report", words: str = WORDS.get(heading, "")) -> None:
        shown = (figures.show(report.result, part) if isinstance(part, str) else part(report.result) for part in parts)
        show(f"## {heading}\n{words}", *shown)

    return section


@dataclass(frozen=True)
class Report:
    """A report on a result: each method displays a section."""

    result: Result

    published = _section("Published beside ours", "published")
    throughput = _section("Throughput", "throughput")
    stages = _section("Cycles by stage", "stages")
    context_switches = _section("Context switches", "context_switches")
    latency = _section("Latency", "latency")
    cpu_use = _section("Where the time goes", "cpu_use", stacks.show)
    headlines = _section("Headline numbers", describe.headlines)
    bounds = _section("What bounds each switch", roofline.answer, "roofline")
    what_was_run = _section("What was run", describe.what, describe.where)

    def figures(self, *names: str) -> None:
        show(*(figures.show(self.result, name) for name in names))

    def timeline(self) -> None:
        """A moment of each case; nothing where nobody wrote down what happened when, as in a result of an earlier vsprof."""
        if not self.result.timeline.select(["kind"], most=1).empty:
            show(headed("Who wakes whom"), figures.show(self.result, "timeline"))

    def throughput_and_loss(self, words: str) -> None:
        show(f"## Throughput and loss\n{words}", figures.show(self.result, "throughput"), figures.show(self.result, "loss_per_hop"))
        self.no_drop()

    def polling(self) -> None:
        """What a poll-mode thread finds; in what batches, where Open vSwitch's histograms were read."""
        batches = figures.show(self.result, "pmd_batches") if set(pmd_batches.NEEDS) <= set(self.result.numbers["name"]) else None
        show(headed("The poll-mode thread"), figures.show(self.result, "pmd"), batches)

    def no_drop(self) -> None:
        """Rates without loss; nothing where none was searched, found or not."""
        if (self.result.numbers["name"] == "search_ended").any():
            show("## Rates without loss\n" + "\n\n".join(_needed(NOTES["rates without loss"], self.result)))
            show(figures.show(self.result, "no_drop"), describe.searches(self.result))

    def cycles(self) -> None:
        """Where the cycles of a packet went, by the model and by this machine's counters."""
        result = self.result
        show(headed("Why: where the cycles of a packet went"), describe.modelled_processor(result), describe.headlines(result, MODEL))
        show(*self._counted("decomposition", "cpi_stack", "misses", "model_roles"))
        if MODEL.present(result):
            show(WORDS["functions"], figures.show(result, "functions"), WORDS["misses"], describe.misses(result))
            if pictures := differential.graphs(result, differential.SWITCH):
                show(WORDS["difference"], *pictures)
            show(explain_model.markdown(result))
        self._hardware("hardware_decomposition", "hardware_per_packet", "hardware_misses")

    def _hardware(self, *names: str) -> None:
        show(describe.hardware_heading(self.result), describe.headlines(self.result, HARDWARE), *self._counted(*names))

    def explanation(self, *texts: str, words: str = WORDS["Explanation"]) -> None:
        show(f"## Explanation\n{words}", *texts)

    def rest(self, *notes: str) -> None:
        """What ends every report: all numbers, how to read it (`notes`: what this report alone needs for that), and its limits."""
        asked = figures.show(self.result, "counts") if counts.names(self.result) else None
        show(headed("Everything that was counted"), asked, everything.show(self.result))
        limits = describe.limits(self.result)
        needed = "\n".join(f"- {note}" for note in (*notes, *_needed(NOTES, self.result)))
        show("## How to read this", needed, "These limits hold for this result:", limits)

    def of_options(self, *notes: str) -> None:
        """What ends a report on options of switches and endpoints: what the CPUs do, what a packet costs in the switch's own thread (the
        shorter form of `cycles`), what each option changes, and the rest."""
        self.polling()
        self.cpu_use()
        show(headed("Misses and instructions per packet"))
        self._hardware("hardware_per_packet", "hardware_misses")
        explained = explain_model.markdown(self.result) if MODEL.present(self.result) else None
        show(describe.headlines(self.result, MODEL), *self._counted("cpi_stack", "misses"), explained)
        self.explanation(explain_dataplane.markdown(self.result))
        self.rest(TSC, *notes)

    def _counted(self, *names: str) -> list[object]:
        """Figures, but for those whose processor counted nothing here."""
        return [figures.show_counted(self.result, name) for name in names]


def _needed(texts: Mapping[str, Sequence[str]], result: Result) -> list[str]:
    kinds, model = {vocabulary.traffic(name).kind for name in result.frame["traffic"].unique()}, MODEL.present(result)
    needed = {
        "always": True,
        "TCP": "stream" in kinds,
        "single frames": "frames" in kinds,
        "restart": "restart" in kinds,
        "emulated": result.emulated,
        "modelled": model,
        "modelled time": result.modelled is not None,
        "slowed": model and result.modelled is None,
        "split": model or HARDWARE.present(result),
        "last": True,
    }
    return [text for name, wanted in needed.items() if wanted for text in texts.get(name, ())]
