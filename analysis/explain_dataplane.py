# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation in words of what the options of switches and endpoints change: packets carried, cycles per packet, and of which stage;
and from which frame size on one value of an option is better than another."""

import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from vsprof.analysis import looks, metrics, stats
from vsprof.analysis.comparison import Pair, arrow, doubt, measured, sent, times
from vsprof.analysis.load import Result, worded
from vsprof.analysis.looks import Finding, Words
from vsprof.analysis.source import samples
from vsprof.analysis.sources import MODEL, source_of
from vsprof.terms import units


@looks.in_rows
def stages(words: Words) -> Iterator[str]:
    for stage, both in _by_stage(words.pair).items():
        if max(one.median for one in both) > 0:
            yield f"{stage} {arrow(both)}"


def _by_stage(pair: Pair) -> dict[str, tuple[stats.Estimate, stats.Estimate]]:
    flood = sent(pair.result, "flood")
    stages = {stage: pair.both(**flood, metric=f"stage_{stage}_cycles_per_packet") for stage in metrics.STAGES}
    return {stage: both for stage, both in stages.items() if measured(*both)}


@looks.in_rows
def misses_by_stage(words: Words) -> Iterator[str]:
    """Misses per packet by stage, where the switch had a PMU to count them."""
    pair, flood = words.pair, sent(words.pair.result, "flood")
    table = metrics.stage_events(pair.result)
    for event in [name for name in table["metric"].unique() if name.endswith("misses")]:
        both = [stats.estimate(samples(table, case_id=case, metric=event, **flood)) for case in (pair.base, pair.other)]
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
    flood = sent(pair.result, "flood")
    parts = {stage: pair.of(case, **flood, metric=f"stage_{stage}_cycles_per_packet") for stage in ("parse", "lookup")}
    whole = pair.of(case, **flood, metric="pmd_cycles_per_packet")
    if not measured(*parts.values(), whole):
        return None
    cycles = sum(part.median for part in parts.values())
    said = f"{units.significant(cycles)} cycles per packet, {units.significant(100 * cycles / whole.median)} % of all"
    claim = f"To know where a frame goes costs the switch {said}."
    return Finding(claim, tuple(f"{stage}: {part.shown()} TSC cycles per packet" for stage, part in parts.items()))


markdown = partial(looks.explained, looks=looks.of("options"))


def crossover(result: Result, option: str, base: str, other: str) -> str:
    """From which frame size on one value of an option is better than another, by each measure that was counted: where ``option`` =
    ``other`` crosses ``base`` in a sentence, and a row for each frame size. A size counts where the ratio's interval excludes 1."""
    values, pairs = result.values, {}
    for one, case in itertools.permutations(result.cases.index, 2):
        if values[case].get(option) == other and values[one] == {**values[case], option: base}:
            pairs[int(values[case]["frame_bytes"])] = Pair(result, one, case)
    sorted_pairs, names = dict(sorted(pairs.items())), (worded({option: other}), worded({option: base}))
    parts = [_by(measure, sorted_pairs, *names) for measure in looks.ROWS["crossover"]]
    none = f"No crossover can be found: this result has no pair of cases with {option} {base} and {other}."
    return "\n\n".join(filter(None, parts)) or none


def _by(measure: Mapping[str, Any], pairs: Mapping[int, Pair], other: str, base: str) -> str:
    ratios = {size: ratio for size, pair in pairs.items() if measured(ratio := _ratio(measure, pair))}
    if not ratios:
        return ""
    rows = []
    for size, ratio in ratios.items():
        missed = Words(pairs[size], sent(pairs[size].result, "flood")).sentences(measure.get("misses", ()))
        rows.append(f"- {size} B: {'; '.join([times(ratio) + doubt(ratio), *missed])}")
    label = f", {MODEL.label(pairs[size].result)}" if source_of(measure["of"]) is MODEL else ""
    return "\n".join([f"In {measure['name']}{label}, {_sentence(measure, ratios, other, base)}", "", *rows])


def _ratio(measure: Mapping[str, Any], pair: Pair) -> stats.Estimate:
    """Of the first traffic that both cases have."""
    tried = (sent(pair.result, one) for one in measure["traffics"])
    both = (one for one in tried if measured(pair.ratio(**one, metric="packet_rate_received")))
    return next((pair.ratio(**looks.named(pair.result, measure["of"], one)) for one in both), stats.NOTHING)


def _sentence(measure: Mapping[str, Any], ratios: Mapping[int, stats.Estimate], other: str, base: str) -> str:
    more, fewer = ([size for size, one in ratios.items() if one.decided and (one.median > 1) == above] for above in (True, False))
    does, than = f"{other} {measure['verb']}", f"{measure['what']} than {base}"
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
