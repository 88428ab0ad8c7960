# SPDX-License-Identifier: GPL-2.0-or-later
"""What it changes on which NUMA node the switch's thread and its memory are: the answer, where all was, and the findings in words.

The rule is that of explain.py: a claim that two cases differ needs a ratio whose interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis import explain, model, stats
from analysis.describe import Table, Text
from analysis.explain import FLOOD, Finding, Pair, can_tell, measured, times
from analysis.load import Result
from analysis.published import pairs
from analysis.sources import MODEL
from terms import schema, units
from terms.placement import FAR, NEAR

ALL_NEAR, ALL_FAR = ({"pmd_node": node, "memory_node": node} for node in (NEAR, FAR))
CYCLES, LOCAL, REMOTE = "model_cycles_per_packet", "model_memory_local_per_packet", "model_memory_remote_per_packet"
INSTRUCTIONS = "model_instructions_per_packet"
CACHES = "model_remote_cache_per_packet"
FROM = {CACHES: "caches", REMOTE: "memory"}
"""What of another node a line came from; the caches were not told apart before vsprof's model knew of them."""
THREAD = {**FLOOD, "role": model.POLL_MODE}


def answer(result: Result) -> Text:
    """Two sentences on thread and memory both near against both far: cycles per packet of the thread, and lines from the other node."""
    found = [Pair(result, base, other) for base, other in pairs(result, ALL_FAR, ALL_NEAR)]
    lines = [f"{_cycles(pair)} {_lines(pair)}" for pair in found if measured(*_both(pair, CYCLES, THREAD), *_both(pair, REMOTE, FLOOD))]
    if not lines:
        return Text("This result can't answer the question: it has no two cases, all near and all far, that the model counted.")
    return Text("\n\n".join([*lines, f"*Cycles are {MODEL.label(result)}.*"]))


def _cycles(pair: Pair) -> str:
    ratio = MODEL.ratio(pair.result, pair.other, pair.base, **THREAD, metric=CYCLES)
    far, near = (units.si(one.median, "") for one in _both(pair, CYCLES, THREAD))
    doubt = "" if ratio.decided else ", which can't be told apart"
    return (
        "With the poll-mode thread and its memory on the guests' NUMA node, a packet takes the thread "
        f"(in user mode) {times(ratio)} the estimated cycles that it takes from the other node "
        f"({near} instead of {far}{_split(pair)}){doubt}."
    )


def _split(pair: Pair) -> str:
    """The ratio's two factors: a placement changes the CPI; instructions, where it changes how many packets a poll finds."""
    found = [MODEL.ratio(pair.result, pair.other, pair.base, **THREAD, metric=metric) for metric in (INSTRUCTIONS, "model_cpi")]
    if not measured(*found):
        return ""
    return f": {times(found[0])} the instructions at {times(found[1])} the CPI"


def _lines(pair: Pair) -> str:
    """Of both kinds of lines that come from another node, with both placements."""
    told = []
    for metric, words in FROM.items():
        if measured(*(both := _both(pair, metric, FLOOD))):
            far, near = (one.shown("") for one in both)
            told.append(f"{near} lines from another node's {words}, instead of {far}")
    return f"On a packet's way are then filled {'; and '.join(told)}."


def placed(result: Result) -> Table | Text:
    """By case, on which node everything was found, by the kernel's and the switch's own words, in the last run of each case."""
    facts = (result.manifest.get("facts") or {}).get("cases") or {}
    rows = {
        label: _found(facts[case])
        for case, label in result.cases["label"].items()
        if (facts.get(case) or {}).get("switch", {}).get("nodes")
    }
    if not rows:
        return Text("This result does not say where its threads and memory were: its testbed has one NUMA node.")
    return Table(pd.DataFrame.from_dict(rows, orient="index").rename_axis("case").reset_index())


def _found(facts: Mapping[str, Any]) -> dict[str, str]:
    ports = facts["switch"]["nodes"]["ports"].values()
    said = {
        words: ", ".join(sorted({f"node {port[what]}" for port in ports}))
        for what, words in (("pmd", "poll-mode thread"), ("mbufs", "mbufs"), ("vhost", "vhost's own memory"))
    }
    guests = {name: _pages(end["hugepages"]) for name, end in facts["endpoints"].items() if "hugepages" in end}
    return {
        **said,
        "hugepages of mbufs": _pages(facts["switch"]["nodes"]["mbuf_hugepages"]),
        **{f"{name}'s": text for name, text in guests.items()},
    }


def _pages(by_node: Mapping[str, int]) -> str:
    return ", ".join(f"{count} on node {node}" for node, count in by_node.items())


def markdown(result: Result) -> str:
    """The findings as a numbered list."""
    found = (finding for pair in explain.pairs(result) for look in (cost, fills) if (finding := look(pair)))
    return explain.numbered(found, "No finding: the model counted no two cases that differ in one placement.")


def cost(pair: Pair) -> Finding | None:
    """What a packet costs the switch's thread by one placement against the other, and how much of the difference is waiting for memory."""
    ratio = MODEL.ratio(pair.result, pair.other, pair.base, **THREAD, metric=CYCLES)
    if not measured(ratio):
        return None
    base, other = pair.names()
    evidence = [f"cycles per packet, {MODEL.label(pair.result)}: {_named(pair, CYCLES, THREAD)}: {times(ratio)}"]
    for part, words in (("memory", "waiting for memory or another node's caches"), ("llc", "for the LLC or another core")):
        evidence.append(f"of these {words}: {_named(pair, f'model_cycles_{part}_per_packet', THREAD)}")
    evidence.append(f"instructions: {_named(pair, INSTRUCTIONS, THREAD)}{_split(pair)}")
    if why := can_tell(ratio):
        return Finding(
            f"{_setting(pair)}Can't tell the thread's cycles per packet with {other} from those with {base}: {why}.", tuple(evidence)
        )
    more = "more" if ratio.median > 1 else "fewer"
    return Finding(f"{_setting(pair)}A packet costs the thread {more} cycles with {other} than with {base}.", tuple(evidence))


def fills(pair: Pair) -> Finding | None:
    """Which role fills lines from another node's memory and caches, with either placement."""
    base, other = pair.names()
    claims, evidence = [], [f"the whole path, from the own node's memory: {_named(pair, LOCAL, FLOOD)}"]
    for metric, words in FROM.items():
        if not measured(*(both := _both(pair, metric, FLOOD))):
            continue
        claims.append(f"from another node's {words} {both[1].shown('')} with {other}, {both[0].shown('')} with {base}")
        evidence += _by_role(pair, metric, words)
    return Finding(f"{_setting(pair)}Lines that a packet's way fills: {'; '.join(claims)}.", tuple(evidence)) if claims else None


def _by_role(pair: Pair, metric: str, words: str) -> list[str]:
    """The roles that fill any line so."""
    told = []
    for role in schema.ROLES:
        where = {**FLOOD, "role": role}
        if measured(*(both := _both(pair, metric, where))) and max(one.median for one in both) > 0:
            told.append(f"role {role}, from another node's {words}: {_named(pair, metric, where)}")
    return told


def _setting(pair: Pair) -> str:
    return f"{pair.setting}: " if pair.setting else ""


def _both(pair: Pair, metric: str, where: Mapping[str, str]) -> tuple[stats.Estimate, stats.Estimate]:
    base, other = (MODEL.estimate(pair.result, case_id=case, metric=metric, **where) for case in (pair.base, pair.other))
    return base, other


def _named(pair: Pair, metric: str, where: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {units.si(one.median, '')}" for name, one in zip(pair.names(), _both(pair, metric, where), strict=True))
