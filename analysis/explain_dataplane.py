# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation in words of what the options of switches and endpoints change: packets carried, cycles per packet, and of which stage;
and from which frame size on one value of an option is better than another.

The rule is that of looks.py: a claim that two cases differ needs a ratio whose interval excludes 1.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from vsprof.analysis import looks, metrics, model, stats
from vsprof.analysis.comparison import FLOOD, FORWARD, Pair, arrow, measured, times
from vsprof.analysis.load import Result, worded
from vsprof.analysis.looks import Finding, Words
from vsprof.analysis.source import samples
from vsprof.analysis.sources import MODEL, source_of
from vsprof.terms import units

MISSES = ("l1d_misses", "l2_misses", "llc_misses", "dtlb_misses")


@looks.in_rows
def stages(words: Words) -> Iterator[str]:
    for stage, both in _by_stage(words.pair).items():
        if max(one.median for one in both) > 0:
            yield f"{stage} {arrow(both)}"
    yield from misses_by_stage(words.pair)


def _by_stage(pair: Pair) -> dict[str, tuple[stats.Estimate, stats.Estimate]]:
    stages = {stage: pair.both(**FLOOD, metric=f"stage_{stage}_cycles_per_packet") for stage in metrics.STAGES}
    return {stage: both for stage, both in stages.items() if measured(*both)}


def misses_by_stage(pair: Pair) -> Iterator[str]:
    """Misses per packet by stage, where the switch had a PMU to count them."""
    table = metrics.stage_events(pair.result)
    for event in [name for name in table["metric"].unique() if name.endswith("misses")]:
        both = [stats.estimate(samples(table, case_id=case, metric=event, **FLOOD)) for case in (pair.base, pair.other)]
        if measured(*both):
            yield f"{event} per packet (hardware) {arrow(both)}"


@looks.in_rows
def most(words: Words) -> Iterator[str]:
    """The stage that makes most of the difference, if it goes the way of the whole."""
    way = 1 if words.ratio.median > 1 else -1
    gained = {stage: way * (after.median - before.median) for stage, (before, after) in _by_stage(words.pair).items()}
    stage = max(gained, key=gained.get, default="")
    if stage and words.ratio.decided and gained[stage] > 0:
        yield f"most of the difference lies in the stage {stage}: {units.significant(gained[stage])} cycles per packet."


@looks.in_rows
def looking(pair: Pair) -> Finding | None:
    """Switch against wire: what it takes to know where a frame goes. It is counted by itself, not as a difference of two cases."""
    if pair.result.differences(pair.base, pair.other) != {"forward"}:
        return None
    case = next(one for one in (pair.base, pair.other) if pair.result.varied[one]["forward"] == "switch")
    parts = {stage: pair.of(case, **FLOOD, metric=f"stage_{stage}_cycles_per_packet") for stage in ("parse", "lookup")}
    whole = pair.of(case, **FLOOD, metric="pmd_cycles_per_packet")
    if not measured(*parts.values(), whole):
        return None
    cycles = sum(part.median for part in parts.values())
    said = f"{units.significant(cycles)} cycles per packet, {units.significant(100 * cycles / whole.median)} % of all"
    claim = f"To know where a frame goes costs the switch {said}."
    return Finding(claim, tuple(f"{stage}: {part.shown('', 3)} TSC cycles per packet" for stage, part in parts.items()))


LOOKS = looks.of("options")
markdown = partial(looks.explained, looks=LOOKS)
"""The findings as a numbered list."""


@dataclass(frozen=True)
class Measure:
    """One way to say which of two is better. ``missed``: what it says of misses."""

    name: str
    verb: str
    what: str
    which: Mapping[str, str]
    traffics: tuple[Mapping[str, str], ...] = (FLOOD,)
    missed: Callable[[Pair], Iterable[str]] = lambda _: ()

    def ratio(self, pair: Pair) -> stats.Estimate:
        """Of the saturating traffic that both cases have."""
        where = next((one for one in (FLOOD, FORWARD) if measured(pair.ratio(**one, metric="packet_rate_received"))), None)
        return pair.ratio(**where, **self.which) if where in self.traffics else stats.NOTHING


def _missed(pair: Pair) -> Iterator[str]:
    """Misses per packet of the modelled switch, in both cases."""
    both = {name: pair.both(**FLOOD, metric=f"model_{name}_per_packet", role="switch") for name in MISSES}
    if found := [f"{model.MISSES[name]} {arrow(two)}" for name, two in both.items() if measured(*two)]:
        yield f"misses per packet: {', '.join(found)}"


# Forwarding drops without end: what a packet costs there is that of the dropped ones, too.
MEASURES = (
    Measure("packets delivered", "delivers", "packets", {"metric": "packet_rate_received"}, traffics=(FLOOD, FORWARD)),
    Measure(
        "the thread's TSC cycles",
        "takes",
        "TSC cycles of the switch's thread per packet",
        {"metric": "pmd_cycles_per_packet"},
        missed=misses_by_stage,
    ),
    Measure(
        "the switch's cycles",
        "takes",
        "estimated cycles of the switch per packet",
        {"metric": "model_cycles_per_packet", "role": "switch"},
        missed=_missed,
    ),
)


def crossover(result: Result, option: str, base: str, other: str) -> str:
    """From which frame size on one value of an option is better than another, by each measure that was counted: where ``option`` =
    ``other`` crosses ``base`` in a sentence, and a row for each frame size. A size counts where the ratio's interval excludes 1."""
    values, pairs = result.values, {}
    for one, case in itertools.permutations(result.cases.index, 2):
        if values[case].get(option) == other and values[one] == {**values[case], option: base}:
            pairs[int(values[case]["frame_bytes"])] = Pair(result, one, case)
    parts = [_by(measure, dict(sorted(pairs.items())), worded({option: other}), worded({option: base})) for measure in MEASURES]
    none = f"No crossover can be found: this result has no pair of cases with {option} {base} and {other}."
    return "\n\n".join(filter(None, parts)) or none


def _by(measure: Measure, pairs: Mapping[int, Pair], other: str, base: str) -> str:
    ratios = {size: ratio for size, pair in pairs.items() if measured(ratio := measure.ratio(pair))}
    if not ratios:
        return ""
    rows = []
    for size, ratio in ratios.items():
        doubt = "" if ratio.decided else ", which is not significant"
        rows.append(f"- {size} B: {'; '.join([times(ratio) + doubt, *measure.missed(pairs[size])])}")
    label = f", {MODEL.label(pairs[size].result)}" if source_of(measure.which["metric"]) is MODEL else ""
    return "\n".join([f"In {measure.name}{label}, {_sentence(measure, ratios, other, base)}", "", *rows])


def _sentence(measure: Measure, ratios: Mapping[int, stats.Estimate], other: str, base: str) -> str:
    more, fewer = ([size for size, one in ratios.items() if one.decided and (one.median > 1) == above] for above in (True, False))
    does, than = f"{other} {measure.verb}", f"{measure.what} than {base}"
    listed = {word: ", ".join(f"{size} B" for size in sizes) for word, sizes in (("more", more), ("fewer", fewer)) if sizes}
    if not listed:
        why = f"at no frame size does the interval of the ratio exclude 1 ({other} over {base})"
        return f"**no crossover can be found**: {why}."
    if len(listed) == 1:
        [(word, sizes)] = listed.items()
        return f"**no crossover is seen: {does} {word} {than}** wherever the difference is significant ({sizes})."
    for small, below, large, above in (("fewer", fewer, "more", more), ("more", more, "fewer", fewer)):
        if max(below) < min(above):
            where = f"**the crossover lies between {max(below)} B and {min(above)} B**"
            return f"{where}: {does} {small} {than} below, and {large} above."
    return f"**there is no one crossover**: {does} more {than} at {listed['more']}, and fewer at {listed['fewer']}."
