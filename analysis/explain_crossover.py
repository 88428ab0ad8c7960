# SPDX-License-Identifier: GPL-2.0-or-later
"""From which frame size on one value of an option is better than another: by what each carries, by what a packet costs the switch's thread,
and by what it costs there on the modelled processor, with what is missed for it. A size counts where the ratio's interval excludes 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from vsprof.analysis import model, stats
from vsprof.analysis.comparison import FLOOD, FORWARD, Pair, arrow, measured, times
from vsprof.analysis.explain_dataplane import misses_by_stage
from vsprof.analysis.load import Result, worded
from vsprof.analysis.source import Source
from vsprof.analysis.sources import MODEL, SOFTWARE

MISSES = ("l1d_misses", "l2_misses", "llc_misses", "dtlb_misses")


@dataclass(frozen=True)
class Measure:
    """One way to say which of two is better. ``missed``: what it says of misses."""

    name: str
    verb: str
    what: str
    which: Mapping[str, str]
    source: Source = SOFTWARE
    traffics: tuple[Mapping[str, str], ...] = (FLOOD,)
    missed: Callable[[Pair], Iterable[str]] = lambda _: ()

    def ratio(self, pair: Pair) -> stats.Estimate:
        """Of the saturating traffic that both cases have."""
        where = next((one for one in (FLOOD, FORWARD) if measured(pair.ratio(**one, metric="packet_rate_received"))), None)
        return pair.by(self.source).ratio(**where, **self.which) if where in self.traffics else stats.NOTHING


def _missed(pair: Pair) -> Iterator[str]:
    """Misses per packet of the modelled switch, in both cases."""
    both = {name: pair.by(MODEL).both(**FLOOD, metric=f"model_{name}_per_packet", role="switch") for name in MISSES}
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
        source=MODEL,
        missed=_missed,
    ),
)


def markdown(result: Result, option: str, base: str, other: str) -> str:
    """By each measure that was counted where ``option`` = ``other`` crosses ``base``: a sentence, and a row for each frame size."""
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
    label = f", {MODEL.label(pairs[size].result)}" if measure.source is MODEL else ""
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
