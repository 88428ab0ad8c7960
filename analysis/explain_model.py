# SPDX-License-Identifier: GPL-2.0-or-later
"""What the modelled processor's numbers say, in words: as in `explain`, each look is at one pair of cases.

cycles per packet = instructions per packet x CPI. So the ratio of two cases' cycles splits exactly, in logarithms, into a part from
instructions and a part from CPI; CPI then splits into what the processor waited for. All of it is an estimate, and says so.
"""

import math
from collections.abc import Mapping

import pandas as pd

from vsprof.analysis import comparison, decompose, functions, looks, metrics, stats, style, vocabulary
from vsprof.analysis.comparison import Pair, measured, plain, times
from vsprof.analysis.figures.cpi_stack import CAUSES
from vsprof.analysis.load import Result
from vsprof.analysis.looks import Finding, Words
from vsprof.analysis.sources import MODEL
from vsprof.terms import units

TELLING = 0.1
"""A cause is named where it makes at least this share of all changes."""
GEOMETRIC = "the values are medians, the ratios of geometric means over repetitions, which multiply"
"""Why the ratios of a split are not the quotients of the values beside them."""
HOTTEST = 3
"""Functions named of each case."""


def markdown(result: Result) -> str:
    """The findings as a list, or why there are none."""
    if not MODEL.present(result):
        return f"Nothing to explain: {'; '.join(MODEL.missing(result, ()))}."
    return looks.explained(result, LOOKS, "No finding: the model's numbers are of one case alone.")


def sentences(result: Result, *, traffic: str, load: str) -> list[str]:
    """For each pair of cases, in plain text: who takes more cycles for this traffic, by how much, and what that is made of."""
    found = [_cycles(pair, traffic, load) for pair in comparison.pairs(result)]
    return [f"{one.claim} In {'; '.join(one.evidence[:2])}." for one in found if one]


@looks.in_rows
def cycles(pair: Pair) -> list[Finding]:
    """For each traffic: the ratio of cycles per unit of data, and its split into instructions and CPI."""
    return [finding for where in metrics.carrying(pair.result) if (finding := _cycles(pair, *where))]


def _cycles(pair: Pair, traffic: str, load: str) -> Finding | None:
    where, word, name = {"traffic": traffic, "load": load}, vocabulary.per_data()[traffic], style.traffic_name(traffic, load)
    parts = decompose.between((pair.result, pair.other), (pair.result, pair.base), source="model", **where)
    whole, instructions, cpi = (decompose.ratio(parts, cause) for cause in ("whole", "instructions", "cpi"))
    evidence = [
        f"that is {times(instructions)} the instructions ({{both.model_instructions_per_{word}}}) "
        f"at {times(cpi)} the CPI ({{both.model_cpi}}); {GEOMETRIC}"
    ]
    if changes := _changes(pair, word, where):
        evidence.append(f"the largest changes, in cycles per {word} by what they went to: {changes}")
    if roles := _roles(parts):
        evidence.append(f"by role, in parts that multiply to the whole: {roles}")
    look = looks.Row(
        of=f"model_cycles_per_{word}",
        topic=f"{name}: estimated cycles per {word}",
        claim=f"{name}: {{other}} takes {{more|fewer}} estimated cycles per {word} than {{base}}.",
        shown=f"cycles per {word}, {MODEL.label(pair.result)}",
        evidence=evidence,
        reason=[_parts(whole, instructions, cpi, word)] if whole.decided else [],
    )
    return look.at(pair, where, whole)


def _parts(whole: stats.Estimate, instructions: stats.Estimate, cpi: stats.Estimate, word: str) -> str:
    """Which of the two factors the intervals allow to name, and the share of each."""
    work = f"{'more' if instructions.median > 1 else 'fewer'} instructions per {word}"
    price = f"a {'higher' if cpi.median > 1 else 'lower'} CPI"
    if not instructions.decided and not cpi.decided:
        return "the intervals of both factors include 1: the numbers do not show which of the two it is."
    if not cpi.decided:
        return f"{work}; the difference in CPI is not significant."
    if not instructions.decided:
        return f"{price}; the difference in instructions per {word} is not significant."
    part = 100 * math.log(instructions.median) / math.log(whole.median)
    if 0 <= part <= 100:
        return f"{work} make {part:.0f} % of the ratio's logarithm and {price} {100 - part:.0f} %."
    if (instructions.median > 1) == (whole.median > 1):
        return f"{work}, though {price} works against it."
    return f"{price}, though {work} work against it."


def _roles(parts: pd.DataFrame) -> str:
    """The roles that change the cycles by more than TELLING, the strongest first; only those whose interval excludes 1."""
    of_roles = parts[(parts["split"] == "role") & (parts["cause"] == "whole")]
    ratios = {role: decompose.ratio(parts, "whole", role) for role in of_roles["role"]}
    strength = {role: abs(math.log(one.median)) for role, one in ratios.items() if one.decided}
    order = sorted((role for role in strength if strength[role] > TELLING), key=strength.get, reverse=True)
    return ", ".join(f"{role} {times(ratios[role])}" for role in order)


def _changes(pair: Pair, word: str, where: Mapping[str, str]) -> str:
    """The causes that changed most between the two cases, in cycles per unit of data, the largest first."""
    both = {name: pair.both(**where, metric=f"model_{counter}_per_{word}") for counter, name in CAUSES.items()}
    change = {name: abs(two[1].median - two[0].median) for name, two in both.items() if measured(*two)}
    most = [name for name in sorted(change, key=change.get, reverse=True) if change[name] > TELLING * sum(change.values())]
    return ", ".join(f"{name} {' to '.join(map(plain, both[name]))}" for name in most[:4])


@looks.in_rows
def polling(pair: Pair) -> Finding | None:
    """How much of the poll-mode thread's cycles were polls that found nothing, and what such a poll costs."""
    said = []
    for traffic, load in metrics.carrying(pair.result):
        said += Words(pair, {"traffic": traffic, "load": load}).sentences(["{traffic}: {other.model_polling_share.switch}"])
    if not said:
        return None
    names = (f"model_{counter}_per_empty_poll.switch" for counter in ("cycles", "instructions", "l1d_misses"))
    cost = "such a poll costs {{other.{}}} cycles, {{other.{}}} instructions and {{other.{}}} L1D misses".format(*names)
    evidence = [f"of the poll-mode thread's estimated cycles, polls that found nothing took: {', '.join(said)}"]
    evidence += Words(pair, functions.profiled(pair.result)).sentences([cost])
    claim = f"{pair.names()[1]}'s idle polling is counted by itself, and taken out of all that is divided by data."
    return Finding(claim, tuple(evidence))


@looks.in_rows
def hottest(pair: Pair) -> Finding | None:
    """The functions in which each case spends the largest parts of its instructions per unit of data."""
    where = functions.profiled(pair.result)
    found = {name: functions.hottest(pair.result, case, "instructions", HOTTEST, **where) for case, name in pair.named if where}
    if not found or any(one.empty for one in found.values()):
        return None
    said = []
    for name, one in found.items():
        shares = zip(map(functions.named, one["object"], one["function"]), one["share_of_all"], strict=True)
        each = [f"`{of}` ({units.significant(100 * share, 2)} %)" for of, share in shares]
        said.append(f"with {name} in {' and '.join(filter(None, (', '.join(each[:-1]), each[-1])))}")
    words = Words(pair, where)
    claim = words.say(f"{{traffic}}: the largest parts of the instructions per {{data}} are spent, {'; '.join(said)}.")
    evidence = words.say("shares of all instructions per {data} ({both.model_instructions_per_data}), estimated from samples")
    return Finding(claim, (evidence,))


LOOKS = looks.of("model")
