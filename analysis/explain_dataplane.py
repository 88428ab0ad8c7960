# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation in words of what the options of switches and endpoints change: packets carried, cycles per packet, and of which stage.

The rule is that of comparison.py: a claim that two cases differ needs a ratio whose interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from vsprof.analysis import comparison, metrics, stats
from vsprof.analysis.comparison import FLOOD, FORWARD, NEAR_ALL, Comparison, Finding, Pair, arrow, measured
from vsprof.analysis.source import samples
from vsprof.terms import units

BUSY = {**FLOOD, "metric": "pmd_busy"}
REACHED = {**FORWARD, "metric": "reached_endpoint"}


def _limit(*busy: stats.Estimate) -> str:
    if measured(*busy) and min(one.median for one in busy) > NEAR_ALL:
        return "the switch's thread had no time left in either case, so its cost per packet decides."
    if measured(*busy) and max(one.median for one in busy) <= NEAR_ALL:
        return "the switch's thread had cycles left in both cases: the endpoints, or the CPU that they share, are the limit."
    return ""


def _drops(*reached: stats.Estimate) -> str:
    """Frames come without end, so a switch's thread always finds some: whether the endpoint takes them all shows the limit."""
    if measured(*reached) and max(one.median for one in reached) < NEAR_ALL:
        return "the endpoint's ring was full again and again, so the endpoint is the limit in both cases; what it did not take was dropped."
    if measured(*reached) and min(one.median for one in reached) >= NEAR_ALL:
        return "the endpoint took nearly all that came, so the switch's thread is the limit in both cases."
    return ""


def _stages(pair: Pair) -> Iterator[str]:
    for stage, both in _by_stage(pair).items():
        if max(one.median for one in both) > 0:
            yield f"{stage} {arrow(both)}"
    yield from misses_by_stage(pair)


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


def _most(pair: Pair, ratio: stats.Estimate) -> str:
    """The stage that makes most of the difference, if it goes the way of the whole."""
    way = 1 if ratio.median > 1 else -1
    gained = {stage: way * (after.median - before.median) for stage, (before, after) in _by_stage(pair).items()}
    stage = max(gained, key=gained.get, default="")
    if not stage or not ratio.decided or gained[stage] <= 0:
        return ""
    return f"most of the difference lies in the stage {stage}: {units.significant(gained[stage])} cycles per packet."


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


LOOKS = (
    comparison.first(
        Comparison(
            {**FLOOD, "metric": "packet_rate_received"},
            topic="Packets delivered",
            claim="{other} delivers {way} of a flood's packets than {base}.",
            shown="received",
            unit="packets/s",
            evidence=lambda pair: pair.values("cycles in which the switch's thread found packets", "fraction", **BUSY),
            reason=lambda pair, _: _limit(*pair.both(**BUSY)),
        ),
        Comparison(
            {**FORWARD, "metric": "packet_rate_received"},
            topic="Packets there and back",
            claim="{other} brings back {way} packets than {base}.",
            shown="came back",
            unit="packets/s",
            evidence=lambda pair: pair.values("share of the frames that reached the endpoint", "fraction", **REACHED),
            reason=lambda pair, _: _drops(*pair.both(**REACHED)),
        ),
    ),
    # Of a flood alone: forwarding drops without end.
    Comparison(
        {**FLOOD, "metric": "pmd_cycles_per_packet"},
        topic="Cycles per packet",
        claim="A packet costs the switch's thread {way} cycles with {other} than with {base}.",
        shown="TSC cycles per packet in the switch's thread",
        evidence=_stages,
        reason=_most,
    ),
    looking,
)
markdown = partial(comparison.explained, looks=LOOKS)
"""The findings as a numbered list."""
