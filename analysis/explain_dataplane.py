# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation in words of what the options of switches and endpoints change: packets carried, cycles per packet, and of which stage.

The rule is that of explain.py: a claim that two cases differ needs a ratio whose interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis import comparison, explain_model, metrics, stats
from analysis.comparison import FLOOD, FORWARD, Comparison, Finding, Pair, measured
from analysis.load import Result
from analysis.source import samples
from analysis.sources import MODEL
from terms import units

NEARLY_ALL = 0.95
"""A share of the frames above which an endpoint took nearly all."""
NOTHING_LEFT = 0.95
"""A share of its cycles above which a poll-mode thread is called the limit."""


def markdown(result: Result) -> str:
    """The findings as a numbered list."""
    found = comparison.findings(result, LOOKS)
    return comparison.numbered(found, "No finding: this result has no two cases with a common number.")


def modelled(result: Result) -> str:
    """What the modelled processor says, where it counted."""
    return explain_model.markdown(result) if MODEL.present(result) else ""


def _busy(pair: Pair) -> Iterator[str]:
    if measured(*pair.both(**FLOOD, metric="pmd_busy")):
        yield f"cycles in which the switch's thread found packets: {pair.text('fraction', **FLOOD, metric='pmd_busy')}"


def _reached(pair: Pair) -> Iterator[str]:
    if measured(*pair.both(**FORWARD, metric="reached_endpoint")):
        yield f"share of the frames that reached the endpoint: {pair.text('fraction', **FORWARD, metric='reached_endpoint')}"


def _limit(*busy: stats.Estimate) -> str:
    if not measured(*busy):
        return ""
    if min(one.median for one in busy) > NOTHING_LEFT:
        return "the switch's thread had no time left in either case, so its cost per packet decides."
    if max(one.median for one in busy) <= NOTHING_LEFT:
        return "the switch's thread had cycles left in both cases: the endpoints, or the CPU that they share, are the limit."
    return ""


def _drops(*reached: stats.Estimate) -> str:
    """Frames come without end, so a switch's thread always finds some: whether the endpoint takes them all shows the limit."""
    if not measured(*reached):
        return ""
    if max(one.median for one in reached) < NEARLY_ALL:
        return "the endpoint's ring was full again and again, so the endpoint is the limit in both cases; what it did not take was dropped."
    if min(one.median for one in reached) >= NEARLY_ALL:
        return "the endpoint took nearly all that came, so the switch's thread is the limit in both cases."
    return ""


def _stages(pair: Pair) -> Iterator[str]:
    for stage, (before, after) in _by_stage(pair).items():
        if max(before.median, after.median) > 0:
            yield f"{stage} {units.significant(before.median)} → {units.significant(after.median)}"
    yield from misses_by_stage(pair, FLOOD)


def _by_stage(pair: Pair) -> dict[str, tuple[stats.Estimate, stats.Estimate]]:
    stages = {stage: pair.both(**FLOOD, metric=f"stage_{stage}_cycles_per_packet") for stage in metrics.STAGES}
    return {stage: both for stage, both in stages.items() if measured(*both)}


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


def misses_by_stage(pair: Pair, where: Mapping[str, str]) -> list[str]:
    """Misses per packet by stage, where the switch had a PMU to count them."""
    table = metrics.stage_events(pair.result)
    said = []
    for event in [name for name in table["metric"].unique() if name.endswith("misses")]:
        cases = [stats.estimate(samples(table, case_id=case, metric=event, **where)) for case in (pair.base, pair.other)]
        if measured(*cases):
            said.append(f"{event} per packet (hardware) {' → '.join(units.significant(one.median) for one in cases)}")
    return said


def _most(pair: Pair, ratio: stats.Estimate) -> str:
    """The stage that makes most of the difference, if it goes the way of the whole."""
    gained = {stage: after.median - before.median for stage, (before, after) in _by_stage(pair).items()}
    if not gained or not ratio.decided:
        return ""
    stage = max(gained, key=lambda one: gained[one] * (1 if ratio.median > 1 else -1))
    if gained[stage] * (ratio.median - 1) <= 0:
        return ""
    return f"most of the difference lies in the stage {stage}: {units.significant(abs(gained[stage]))} cycles per packet."


def saturating(pair: Pair) -> dict[str, str] | None:
    """The saturating traffic that both cases have."""
    return next((where for where in (FLOOD, FORWARD) if measured(pair.ratio(**where, metric="packet_rate_received"))), None)


RATES = (
    Comparison(
        where=FLOOD,
        metric="packet_rate_received",
        unit="packets/s",
        topic="Packets delivered",
        claim="{other} delivers {way} of a flood's packets than {base}.",
        ways=("more", "fewer"),
        shown="received",
        evidence=_busy,
        reason=lambda pair, _: _limit(*pair.both(**FLOOD, metric="pmd_busy")),
    ),
    Comparison(
        where=FORWARD,
        metric="packet_rate_received",
        unit="packets/s",
        topic="Packets there and back",
        claim="{other} brings back {way} packets than {base}.",
        ways=("more", "fewer"),
        shown="came back",
        evidence=_reached,
        reason=lambda pair, _: _drops(*pair.both(**FORWARD, metric="reached_endpoint")),
    ),
)
COST = Comparison(
    where=FLOOD,
    metric="pmd_cycles_per_packet",
    unit="",
    topic="Cycles per packet",
    claim="A packet costs the switch's thread {way} cycles with {other} than with {base}.",
    ways=("more", "fewer"),
    shown="TSC cycles per packet in the switch's thread",
    evidence=_stages,
    reason=_most,
)
"""Of a flood alone: forwarding drops without end."""
LOOKS = (lambda pair: comparison.first(pair, RATES), lambda pair: comparison.find(pair, COST), looking)
