# SPDX-License-Identifier: GPL-2.0-or-later
"""From which frame size on one value of an option is better than another: by what each carries, by what a packet costs the switch's thread,
and by what it costs there on the modelled processor, with what is missed for it. A size counts where the ratio's interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analysis import model, stats
from analysis.comparison import FLOOD, FORWARD, Pair, measured, times
from analysis.explain_dataplane import misses_by_stage, saturating
from analysis.load import Result, worded
from analysis.sources import MODEL
from terms import units

MISSES = ("l1d_misses", "l2_misses", "llc_misses", "dtlb_misses")
SWITCH = "switch"


@dataclass(frozen=True)
class Measure:
    """One way to say which of two is better."""

    metric: str
    name: str
    verb: str
    what: str
    modelled: bool = False
    traffics: tuple[Mapping[str, str], ...] = (FLOOD,)

    def ratio(self, pair: Pair) -> stats.Estimate:
        where = saturating(pair)
        if where not in self.traffics:
            return stats.NOTHING
        if self.modelled:
            return MODEL.ratio(pair.result, pair.other, pair.base, metric=self.metric, role=SWITCH, **where)
        return pair.ratio(metric=self.metric, **where)


# Forwarding drops without end: what a packet costs there is that of the dropped ones, too (see explain_dataplane.cost).
MEASURES = (
    Measure("packet_rate_received", "packets delivered", "delivers", "packets", traffics=(FLOOD, FORWARD)),
    Measure("pmd_cycles_per_packet", "the thread's TSC cycles", "takes", "TSC cycles of the switch's thread per packet"),
    Measure("model_cycles_per_packet", "the switch's cycles", "takes", "estimated cycles of the switch per packet", modelled=True),
)


def markdown(result: Result, option: str, base: str, other: str) -> str:
    """By each measure that was counted where ``option`` = ``other`` crosses ``base``: a sentence, and a row for each frame size."""
    pairs = _pairs(result, option, base, other)
    parts = [_by(measure, pairs, worded({option: other}), worded({option: base})) for measure in MEASURES]
    said = [part for part in parts if part]
    return "\n\n".join(said) if said else f"No crossover can be found: this result has no pair of cases with {option} {base} and {other}."


def _pairs(result: Result, option: str, base: str, other: str) -> dict[int, Pair]:
    """By frame size, the two cases that differ in nothing else."""
    values = {case: result.values[case] for case in result.cases.index}
    found = {}
    for case, here in values.items():
        alike = next((one for one, there in values.items() if there == {**here, option: base}), None)
        if here.get(option) == other and alike is not None:
            found[int(here["frame_bytes"])] = Pair(result, alike, case)
    return dict(sorted(found.items()))


def _by(measure: Measure, pairs: Mapping[int, Pair], other: str, base: str) -> str:
    ratios = {size: ratio for size, pair in pairs.items() if measured(ratio := measure.ratio(pair))}
    if not ratios:
        return ""
    rows = [f"- {size} B: {times(ratio)}{_why(measure, pairs[size], ratio)}" for size, ratio in ratios.items()]
    label = f", {MODEL.label(next(iter(pairs.values())).result)}" if measure.modelled else ""
    return "\n".join([f"In {measure.name}{label}, {_sentence(measure, ratios, other, base)}", "", *rows])


def _sentence(measure: Measure, ratios: Mapping[int, stats.Estimate], other: str, base: str) -> str:
    more = [size for size, ratio in ratios.items() if ratio.decided and ratio.median > 1]
    fewer = [size for size, ratio in ratios.items() if ratio.decided and ratio.median < 1]
    does, than = f"{other} {measure.verb}", f"{measure.what} than {base}"
    if not more and not fewer:
        why = f"at no frame size does the interval of the ratio exclude 1 ({other} over {base})"
        return f"**no crossover can be found**: {why}."
    if not more or not fewer:
        word, sizes = ("more", more) if more else ("fewer", fewer)
        return f"**no crossover is seen: {does} {word} {than}** wherever the difference is significant ({_listed(sizes)})."
    for (small, below), (large, above) in ((("fewer", fewer), ("more", more)), (("more", more), ("fewer", fewer))):
        if max(below) < min(above):
            where = f"**the crossover lies between {max(below)} B and {min(above)} B**"
            return f"{where}: {does} {small} {than} below, and {large} above."
    return f"**there is no one crossover**: {does} more {than} at {_listed(more)}, and fewer at {_listed(fewer)}."


def _why(measure: Measure, pair: Pair, ratio: stats.Estimate) -> str:
    """What else tells of the ratio: that it decides nothing; the misses behind cycles."""
    undecided = "" if ratio.decided else ", which is not significant"
    missed = _missed(pair) if measure.modelled else misses_by_stage(pair, FLOOD) if measure.verb == "takes" else []
    return undecided + "".join(f"; {one}" for one in missed)


def _missed(pair: Pair) -> list[str]:
    """Misses per packet of the modelled switch, in both cases."""
    found = []
    for name in MISSES:
        where = {**FLOOD, "metric": f"model_{name}_per_packet", "role": SWITCH}
        both = [MODEL.estimate(pair.result, case_id=case, **where) for case in (pair.base, pair.other)]
        if measured(*both):
            found.append(f"{model.MISSES[name]} {' → '.join(units.significant(one.median) for one in both)}")
    return [f"misses per packet: {', '.join(found)}"] if found else []


def _listed(sizes: list[int]) -> str:
    return ", ".join(f"{size} B" for size in sizes)
