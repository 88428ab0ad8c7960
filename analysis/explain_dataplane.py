# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation in words of what the options of switches and endpoints change: packets carried, cycles per packet, and of which stage.

The rule is that of explain.py: a claim that two cases differ needs a ratio whose interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis import explain, explain_model, metrics, stats
from analysis.explain import FLOOD, FORWARD, Finding, Pair, can_tell, measured, share, times
from analysis.load import Result
from analysis.source import samples
from analysis.sources import MODEL
from terms import units

WORDS = {"udp_flood": ("delivers", "a flood's packets"), "forward": ("carries", "packets there and back")}
NEARLY_ALL = 0.95
"""A share of the frames above which an endpoint took nearly all."""
NOTHING_LEFT = 0.95
"""A share of its cycles above which a poll-mode thread is called the limit."""


def markdown(result: Result) -> str:
    """The findings as a numbered list."""
    return explain.numbered(findings(result), "No finding: this result has no two cases with a common number.")


def modelled(result: Result) -> str:
    """What the modelled processor says, where it counted."""
    return explain_model.markdown(result) if MODEL.present(result) else ""


def findings(result: Result) -> list[Finding]:
    found = []
    for pair in explain.pairs(result):
        setting = f"{pair.setting}: " if pair.setting else ""
        for look in (carried, cost, looking):
            if finding := look(pair):
                found.append(Finding(setting + finding.claim, finding.evidence, finding.reason))
    return found


def carried(pair: Pair) -> Finding | None:
    """Who carries more, and whether the switch's thread was the limit."""
    where = saturating(pair)
    if where is None:
        return None
    base, other = pair.names()
    ratio = pair.ratio(**where, metric="packet_rate_received")
    rates = pair.both(**where, metric="packet_rate_received")
    evidence = [f"{base} {units.si(rates[0].median, 'packets/s')}, {other} {units.si(rates[1].median, 'packets/s')}: {times(ratio)}"]
    if where == FORWARD:
        reached = pair.both(**where, metric="reached_endpoint")
        if measured(*reached):
            evidence.append(f"of what came in, {share(reached[0])} and {share(reached[1])} reached the endpoint")
        reason = _drops(reached)
    else:
        busy = pair.both(**where, metric="pmd_busy")
        if measured(*busy):
            evidence.append(f"the switch's thread found packets in {share(busy[0])} and {share(busy[1])} of its cycles")
        reason = _limit(busy)
    verb, what = WORDS[where["traffic"]]
    if why := can_tell(ratio):
        return Finding(f"Packets carried: can't tell {other} from {base}: {why}.", tuple(evidence), reason)
    return Finding(f"{other} {verb} {'more' if ratio.median > 1 else 'fewer'} of {what} than {base}.", tuple(evidence), reason)


def _limit(busy: tuple[stats.Estimate, stats.Estimate]) -> str:
    if not measured(*busy):
        return ""
    if min(one.median for one in busy) > NOTHING_LEFT:
        return "the switch's thread had nothing left in either case, so what a packet costs it decides."
    if max(one.median for one in busy) <= NOTHING_LEFT:
        return "the switch's thread had cycles left in both cases: the endpoints, or the CPU that they share, are the limit."
    return ""


def _drops(reached: tuple[stats.Estimate, stats.Estimate]) -> str:
    """Frames come without end, so a switch's thread always finds some: whether the endpoint takes them all tells the limit."""
    if not measured(*reached):
        return ""
    if max(one.median for one in reached) < NEARLY_ALL:
        return "the endpoint's ring was full time and again, so the endpoint is the limit in both cases; what it did not take was dropped."
    if min(one.median for one in reached) >= NEARLY_ALL:
        return "the endpoint took nearly all that came, so the switch's thread is the limit in both cases."
    return ""


def cost(pair: Pair) -> Finding | None:
    """What a packet costs the switch's thread, and which stages make the difference. Of a flood alone: forwarding drops without end."""
    where = FLOOD
    base, other = pair.names()
    ratio = pair.ratio(**where, metric="pmd_cycles_per_packet")
    if not measured(ratio):
        return None
    whole = pair.both(**where, metric="pmd_cycles_per_packet")
    said = [f"{name} {units.significant(one.median)}" for name, one in zip((base, other), whole, strict=True)]
    evidence = [f"TSC cycles per packet in the switch's thread: {', '.join(said)}: {times(ratio)}"]
    stages = {stage: pair.both(**where, metric=f"stage_{stage}_cycles_per_packet") for stage in metrics.STAGES}
    counted = {stage: both for stage, both in stages.items() if measured(*both)}
    for stage, (before, after) in counted.items():
        if max(before.median, after.median) > 0:
            evidence.append(f"{stage} {units.significant(before.median)} → {units.significant(after.median)}")
    evidence += misses_by_stage(pair, where)
    if why := can_tell(ratio):
        return Finding(f"Cycles per packet: can't tell {other} from {base}: {why}.", tuple(evidence))
    claim = f"A packet costs the switch's thread {'more' if ratio.median > 1 else 'fewer'} cycles with {other} than with {base}."
    return Finding(claim, tuple(evidence), _most(counted, ratio))


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


def _most(counted: Mapping[str, tuple[stats.Estimate, stats.Estimate]], ratio: stats.Estimate) -> str:
    """The stage that makes most of the difference, if it pulls the way of the whole."""
    gained = {stage: after.median - before.median for stage, (before, after) in counted.items()}
    if not gained:
        return ""
    stage = max(gained, key=lambda one: gained[one] * (1 if ratio.median > 1 else -1))
    if gained[stage] * (ratio.median - 1) <= 0:
        return ""
    return f"most of the difference lies in the stage {stage}: {units.significant(abs(gained[stage]))} cycles per packet."


def saturating(pair: Pair) -> dict[str, str] | None:
    """The saturating traffic that both cases have."""
    return next((where for where in (FLOOD, FORWARD) if measured(pair.ratio(**where, metric="packet_rate_received"))), None)
