# SPDX-License-Identifier: GPL-2.0-or-later
"""What it changes on which NUMA node the switch's thread and its memory are: the answer, where all was, and the findings in words.

The rule is that of comparison.py: a claim that two cases differ needs a ratio whose interval excludes 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from vsprof.analysis import comparison, model
from vsprof.analysis.comparison import FLOOD, Comparison, Finding, Pair, as_many, measured, plain, times
from vsprof.analysis.describe import Table, Text
from vsprof.analysis.load import Result
from vsprof.analysis.published import pairs
from vsprof.analysis.sources import MODEL
from vsprof.terms import schema
from vsprof.terms.placement import FAR, NEAR

ALL_NEAR, ALL_FAR = ({"pmd_node": node, "memory_node": node} for node in (NEAR, FAR))
CYCLES, LOCAL, REMOTE = "model_cycles_per_packet", "model_memory_local_per_packet", "model_memory_remote_per_packet"
FROM = {"model_remote_cache_per_packet": "caches", REMOTE: "memory"}
"""What of another node a line came from; the caches were not told apart before vsprof's model knew of them."""
THREAD = {**FLOOD, "role": model.POLL_MODE}


def answer(result: Result) -> Text:
    """Two sentences on thread and memory both near against both far: cycles per packet of the thread, and lines from the other node."""
    found = [Pair(result, base, other, MODEL) for base, other in pairs(result, ALL_FAR, ALL_NEAR)]
    lines = [_compared(pair) for pair in found if measured(*pair.both(**THREAD, metric=CYCLES), *pair.both(**FLOOD, metric=REMOTE))]
    if not lines:
        return Text("This result can't answer the question: it has no two cases, all near and all far, that the model counted.")
    return Text("\n\n".join([*lines, f"*Cycles are {MODEL.label(result)}.*"]))


def _compared(pair: Pair) -> str:
    ratio = pair.ratio(**THREAD, metric=CYCLES)
    far, near = map(plain, pair.both(**THREAD, metric=CYCLES))
    doubt = "" if ratio.decided else " The difference is not significant."
    lines = []
    for metric, words in FROM.items():
        text = f"{{1}} lines from another node's {words}, instead of {{0}}"
        lines += comparison.told(text, *pair.both(**FLOOD, metric=metric), show=lambda one: one.shown(""))
    return (
        "With the poll-mode thread and its memory on the guests' NUMA node, a packet takes the thread (in user mode) "
        f"{as_many(ratio, 'estimated cycles', 'from the other node')}: {near} instead of {far}{_split(pair)}.{doubt} "
        f"Each packet's path then fills {'; and '.join(lines)}."
    )


def _split(pair: Pair) -> str:
    """The ratio's two factors: a placement changes the CPI; instructions, where it changes how many packets a poll finds."""
    found = [pair.ratio(**THREAD, metric=metric) for metric in ("model_instructions_per_packet", "model_cpi")]
    return "".join(comparison.told("; {} the instructions at {} the CPI", *found, show=times))


def placed(result: Result) -> Table | Text:
    """By case, on which node everything was found, by the kernel's and the switch's own words, in the last run of each case."""
    facts = (result.manifest.get("facts") or {}).get("cases") or {}
    labels = {case: label for case, label in result.cases["label"].items() if (facts.get(case) or {}).get("switch", {}).get("nodes")}
    if not labels:
        return Text("This result does not say where its threads and memory were: its testbed has one NUMA node.")
    rows = [{"case": label, **_found(facts[case]["switch"]["nodes"], facts[case]["endpoints"])} for case, label in labels.items()]
    return Table(pd.DataFrame(rows))


def _found(nodes: Mapping[str, Any], endpoints: Mapping[str, Any]) -> dict[str, str]:
    pages = {"hugepages of mbufs": nodes["mbuf_hugepages"]}
    pages |= {f"{name}'s": end["hugepages"] for name, end in endpoints.items() if "hugepages" in end}
    return {
        **{
            words: ", ".join(sorted({f"node {port[what]}" for port in nodes["ports"].values()}))
            for what, words in (("pmd", "poll-mode thread"), ("mbufs", "mbufs"), ("vhost", "vhost's own memory"))
        },
        **{whose: ", ".join(f"{count} on node {node}" for node, count in by_node.items()) for whose, by_node in pages.items()},
    }


def _waits(pair: Pair) -> Iterator[str]:
    """How much of the difference is waiting for memory."""
    for part, words in (("memory", "waiting for memory or another node's caches"), ("llc", "for the LLC or another core")):
        yield f"of these {words}: {pair.text(**THREAD, metric=f'model_cycles_{part}_per_packet')}"
    yield f"instructions: {pair.text(**THREAD, metric='model_instructions_per_packet')}{_split(pair)}"


COST = Comparison(
    {**THREAD, "metric": CYCLES},
    topic="The thread's cycles per packet",
    claim="A packet costs the thread {way} cycles with {other} than with {base}.",
    shown="estimated cycles per packet",
    evidence=_waits,
)


def fills(pair: Pair) -> Finding | None:
    """Which role fills lines from another node's memory and caches, with either placement."""
    base, other = pair.names()
    claims, evidence = [], [f"the whole path, from the own node's memory: {pair.text(**FLOOD, metric=LOCAL)}"]
    for metric, words in FROM.items():
        text = f"from another node's {words} {{1}} with {other}, {{0}} with {base}"
        claims += comparison.told(text, *pair.both(**FLOOD, metric=metric), show=lambda one: one.shown(""))
        for role in schema.ROLES if measured(*pair.both(**FLOOD, metric=metric)) else ():
            where = {**FLOOD, "role": role, "metric": metric}
            if max(one.median for one in pair.both(**where)) > 0:
                evidence += pair.values(f"role {role}, from another node's {words}", **where)
    return Finding(f"Lines that each packet's path fills: {'; '.join(claims)}.", tuple(evidence)) if claims else None


NONE = "No finding: the model counted no two cases that differ in one placement."
markdown = partial(comparison.explained, looks=(COST, fills), source=MODEL, none=NONE)
"""The findings as a numbered list."""
