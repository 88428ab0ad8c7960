# SPDX-License-Identifier: GPL-2.0-or-later
"""What it changes on which NUMA node the switch's thread and its memory are: the answer, where all was, and the findings in words."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from vsprof.analysis import looks, model
from vsprof.analysis.comparison import Pair, as_many, doubt, measured, sent
from vsprof.analysis.describe import Table
from vsprof.analysis.load import Result
from vsprof.analysis.looks import Finding, Words
from vsprof.analysis.published import pairs
from vsprof.analysis.sources import MODEL
from vsprof.terms import schema
from vsprof.terms.placement import FAR, NEAR

ALL_NEAR, ALL_FAR = ({"pmd_node": node, "memory_node": node} for node in (NEAR, FAR))
CYCLES, LOCAL, REMOTE = "model_cycles_per_packet", "model_memory_local_per_packet", "model_memory_remote_per_packet"
FROM = {"model_remote_cache_per_packet": "caches", REMOTE: "memory"}
"""What of another node a line came from; the caches were not told apart before vsprof's model knew of them."""


def answer(result: Result) -> str:
    """Two sentences on thread and memory both near against both far: cycles per packet of the thread, and lines from the other node."""
    found = [Pair(result, base, other) for base, other in pairs(result, ALL_FAR, ALL_NEAR)]
    flood = sent(result, "flood")
    counted = {CYCLES: {**flood, "role": model.POLL_MODE}, REMOTE: flood}
    lines = [_compared(pair) for pair in found if all(measured(*pair.both(**one, metric=name)) for name, one in counted.items())]
    if not lines:
        return "This result can't answer the question: it has no two cases, all near and all far, that the model counted."
    return "\n\n".join([*lines, f"*Cycles are {MODEL.label(result)}.*"])


def _compared(pair: Pair) -> str:
    thread = {**sent(pair.result, "flood"), "role": model.POLL_MODE}
    ratio = pair.ratio(**thread, metric=CYCLES)
    words = Words(pair, thread, ratio)
    # The ratio's two factors: a placement changes the CPI; instructions, where it changes how many packets a poll finds.
    split = "".join(words.sentences(["; {ratio.model_instructions_per_packet} the instructions at {ratio.model_cpi} the CPI"]))
    unsure = doubt(ratio, " The difference is not significant.")
    texts = [
        f"{{other.flood.{metric}:interval}} lines from another node's {what}, instead of {{base.flood.{metric}:interval}}"
        for metric, what in FROM.items()
    ]
    return (
        "With the poll-mode thread and its memory on the guests' NUMA node, a packet takes the thread (in user mode) "
        f"{as_many(ratio, 'estimated cycles', 'from the other node')}: {words.say(f'{{other.{CYCLES}}} instead of {{base.{CYCLES}}}')}"
        f"{split}.{unsure} Each packet's path then fills {'; and '.join(words.sentences(texts))}."
    )


def placed(result: Result) -> Table | str:
    """By case, on which node everything was found, by the kernel's and the switch's own words, in the last run of each case."""
    facts = result.facts
    labels = {case: label for case, label in result.cases["label"].items() if (facts.get(case) or {}).get("switch", {}).get("nodes")}
    if not labels:
        return "This result does not say where its threads and memory were: its testbed has one NUMA node."
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


@looks.in_rows
def fills(pair: Pair) -> Finding | None:
    """Which role fills lines from another node's memory and caches, with either placement."""
    flood, claims = sent(pair.result, "flood"), []
    words = Words(pair, flood)
    evidence = [f"the whole path, from the own node's memory: {{both.{LOCAL}}}"]
    for metric, what in FROM.items():
        claims.append(f"from another node's {what} {{other.{metric}:interval}} with {{other}}, {{base.{metric}:interval}} with {{base}}")
        for role in schema.ROLES:
            if max(one.median for one in pair.both(**flood, metric=metric, role=role)) > 0:
                evidence.append(f"role {role}, from another node's {what}: {{both.{metric}.{role}}}")
    said = "; ".join(words.sentences(claims))
    return Finding(f"Lines that each packet's path fills: {said}.", tuple(words.sentences(evidence))) if said else None


NONE = "No finding: the model counted no two cases that differ in one placement."
markdown = partial(looks.explained, looks=looks.of("placement"), none=NONE)
