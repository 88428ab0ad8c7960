# SPDX-License-Identifier: GPL-2.0-or-later
"""What the modelled processor's numbers say, in words: as in `explain`, each function looks at one pair of cases.

cycles per packet = instructions per packet x CPI. So the ratio of two cases' cycles splits exactly, in logarithms, into a part from
instructions and a part from CPI; CPI then splits into what the processor waited for. All of it is an estimate, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from analysis import causes, comparison, decompose, functions, metrics, model, stats, style, vocabulary
from analysis.comparison import Finding, Pair, measured, not_significant, share, times, undecided
from analysis.figures.cpi_stack import CAUSES
from analysis.load import Result
from analysis.sources import MODEL
from terms import units

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
    return comparison.numbered(findings(result), "No finding: the model's numbers are of one case alone.")


def findings(result: Result) -> list[Finding]:
    """Every finding of every pair of cases."""
    return comparison.findings(result, [lambda pair, look=look: look(pair.by(MODEL)) for look in LOOKS])


def sentences(result: Result, *, traffic: str, load: str) -> list[str]:
    """For each pair of cases, in plain text: who takes more cycles for this traffic, by how much, and what that is made of."""
    found = [_cycles(pair.by(MODEL), traffic, load) for pair in comparison.pairs(result)]
    return [f"{one.claim} In {'; '.join(one.evidence[:2])}." for one in found if one]


def cycles(pair: Pair) -> list[Finding]:
    """For each traffic: the ratio of cycles per unit of data, and its split into instructions and CPI."""
    return [finding for traffic, load in metrics.carrying(pair.result) if (finding := _cycles(pair, traffic, load))]


def _cycles(pair: Pair, traffic: str, load: str) -> Finding | None:
    where = {"traffic": traffic, "load": load}
    word = vocabulary.per_data()[traffic]
    parts = causes.split(pair.result, pair.other, pair.base, source="model", **where)
    whole, instructions, cpi = (decompose.ratio(parts, cause) for cause in ("whole", "instructions", "cpi"))
    if not measured(whole):
        return None
    base, other = pair.names()
    name = style.traffic_name(traffic, load)
    evidence = [
        f"cycles per {word}, {MODEL.label(pair.result)}: {pair.text(**where, metric=f'model_cycles_per_{word}')}: {times(whole)}",
        f"that is {times(instructions)} the instructions ({pair.text(**where, metric=f'model_instructions_per_{word}')}) "
        f"at {times(cpi)} the CPI ({pair.text(**where, metric='model_cpi')}); {GEOMETRIC}",
    ]
    if changes := _changes(pair, word, where):
        evidence.append(f"the largest changes, in cycles per {word} by what they went to: {changes}")
    if roles := _roles(parts):
        evidence.append(f"by role, in parts that multiply to the whole: {roles}")
    if why := undecided(whole):
        return Finding(not_significant(f"{name}: estimated cycles per {word}", base, other, why), tuple(evidence))
    more = "more" if whole.median > 1 else "fewer"
    claim = f"{name}: {other} takes {more} estimated cycles per {word} than {base}."
    return Finding(claim, tuple(evidence), _parts(whole, instructions, cpi, word))


def _parts(whole: stats.Estimate, instructions: stats.Estimate, cpi: stats.Estimate, word: str) -> str:
    """Which of the two factors the intervals allow to name, and the share of each."""
    work = _factor(instructions, f"more instructions per {word}", f"fewer instructions per {word}")
    price = _factor(cpi, "a higher CPI", "a lower CPI")
    if not work and not price:
        return "the intervals of both factors include 1: the numbers do not show which of the two it is."
    if not (work and price):
        other = "CPI" if work else f"instructions per {word}"
        return f"{work or price}; the difference in {other} is not significant."
    part = 100 * math.log(instructions.median) / math.log(whole.median)
    if 0 <= part <= 100:
        return f"{work} make {part:.0f} % of the ratio's logarithm and {price} {100 - part:.0f} %."
    against = (instructions.median > 1) != (whole.median > 1)
    stronger, weaker = (price, work) if against else (work, price)
    return f"{stronger}, though {weaker} work{'' if against else 's'} against it."


def _roles(parts: pd.DataFrame) -> str:
    """The roles that change the cycles by more than TELLING, the strongest first; only those whose interval excludes 1."""
    of_roles = parts[(parts["split"] == "role") & (parts["cause"] == "whole")]
    ratios = {role: decompose.ratio(parts, "whole", role) for role in of_roles["role"]}
    told = {role: one for role, one in ratios.items() if one.decided and abs(math.log(one.median)) > TELLING}
    order = sorted(told, key=lambda role: -abs(math.log(told[role].median)))
    return ", ".join(f"{role} {times(told[role])}" for role in order)


def _factor(ratio: stats.Estimate, above: str, below: str) -> str:
    return (above if ratio.median > 1 else below) if ratio.decided else ""


def _changes(pair: Pair, word: str, where: dict[str, str]) -> str:
    """The causes that changed most between the two cases, in cycles per unit of data, the largest first."""
    both = {name: pair.both(**where, metric=f"model_{counter}_per_{word}") for counter, name in CAUSES.items()}
    change = {name: abs(two[1].median - two[0].median) for name, two in both.items() if measured(*two)}
    told = [name for name in sorted(change, key=change.get, reverse=True) if change[name] > TELLING * sum(change.values())]
    return ", ".join(f"{name} {_plain(both[name][0])} to {_plain(both[name][1])}" for name in told[:4])


def miss_rates(pair: Pair) -> list[Finding]:
    """Misses per data access, with and without idle polling (T1 published ratios of them), beside misses per unit of data."""
    found = []
    for counter, metric, name in (
        ("l1d_misses", "model_l1d_miss_rate", "L1D"),
        ("dtlb_misses", "model_dtlb_miss_rate", "first-level DTLB"),
    ):
        rates = (_rate(pair, counter, metric, name, *where) for where in metrics.carrying(pair.result))
        finding = next(filter(None, rates), None)
        found += [finding] if finding else []
    return found


def _rate(pair: Pair, counter: str, metric: str, name: str, traffic: str, load: str) -> Finding | None:
    """Of the first traffic that has numbers."""
    where = {"traffic": traffic, "load": load}
    word = vocabulary.per_data()[traffic]
    plain, polling = (pair.ratio(metric=metric + end, **where) for end in ("", model.WITH_POLLING))
    data = pair.ratio(metric=f"model_{counter}_per_{word}", **where)
    if not measured(plain, polling, data):
        return None
    base, other = pair.names()
    evidence = [
        *pair.line(f"{style.traffic_name(traffic, load)}, misses per {word}", **where, metric=f"model_{counter}_per_{word}"),
        *pair.line("misses per data access", "fraction", **where, metric=metric),
    ]
    if not _same(plain, polling):
        evidence += pair.line("the same with idle polling counted in", "fraction", **where, metric=metric + model.WITH_POLLING)
    reason = _diluted(pair, plain, polling)
    if why := undecided(data):
        return Finding(not_significant(f"{name[:1].upper()}{name[1:]} misses per {word}", base, other, why), tuple(evidence), reason)
    claim = f"{other} has {'more' if data.median > 1 else 'fewer'} {name} misses per {word} than {base}, by the model."
    return Finding(claim, tuple(evidence), reason)


def _diluted(pair: Pair, plain: stats.Estimate, polling: stats.Estimate) -> str:
    """Where counting polls in changes the rate beyond both intervals, say what that means."""
    if None in (plain.low, polling.high) or not polling.high < plain.low:
        return ""
    return (
        f"{pair.names()[1]}'s empty polls touch the same few lines again and again and hit them: counted in, they lower the rate of misses "
        "without saving a packet one miss. A rate taken from a processor's counters over all of the time has them in."
    )


def polling(pair: Pair) -> list[Finding]:
    """How much of the poll-mode thread's cycles were polls that found nothing, and what such a poll costs."""
    shares = {
        style.traffic_name(*where): MODEL.estimate(
            pair.result, case_id=pair.other, traffic=where[0], load=where[1], metric="model_polling_share", role="switch"
        )
        for where in metrics.carrying(pair.result)
    }
    told = [f"{name}: {share(value)}" for name, value in shares.items() if measured(value)]
    if not told:
        return []
    names = ("model_cycles_per_empty_poll", "model_instructions_per_empty_poll", "model_l1d_misses_per_empty_poll")
    cost = [MODEL.estimate(pair.result, case_id=pair.other, metric=name, role="switch", **functions.profiled(pair.result)) for name in names]
    evidence = [f"of the poll-mode thread's estimated cycles, polls that found nothing took: {', '.join(told)}"]
    if measured(*cost):
        numbers = [_plain(one) for one in cost]
        evidence.append(f"such a poll costs {numbers[0]} cycles, {numbers[1]} instructions and {numbers[2]} L1D misses")
    return [
        Finding(f"{pair.names()[1]}'s idle polling is counted by itself, and taken out of all that is divided by data.", tuple(evidence))
    ]


def hottest(pair: Pair) -> list[Finding]:
    """The functions in which each case spends the largest parts of its instructions per unit of data."""
    where = functions.profiled(pair.result)
    found = [functions.hottest(pair.result, case, "instructions", HOTTEST, **where) for case in (pair.base, pair.other) if where]
    if not found or any(one.empty for one in found):
        return []
    word = vocabulary.per_data()[where["traffic"]]
    most = "; ".join(f"with {name} in {_functions(one)}" for name, one in zip(pair.names(), found, strict=True))
    claim = f"{style.traffic_name(**where)}: the largest parts of a {word}'s instructions are spent, {most}."
    whole = pair.text(**where, metric=f"model_instructions_per_{word}")
    return [Finding(claim, (f"shares of all instructions per {word} ({whole}), estimated from samples",))]


def _functions(found: pd.DataFrame) -> str:
    """`a` (12 %), `b` (8.0 %) and `c` (5.1 %), each with where it is."""
    each = [f"`{functions.named(row.object, row.function)}` ({_percent(row.share_of_all)})" for row in found.itertuples()]
    return " and ".join(part for part in (", ".join(each[:-1]), each[-1]) if part)


LOOKS: tuple[Callable[[Pair], list[Finding]], ...] = (cycles, miss_rates, hottest, polling)


# -- helpers ----------------------------------------------------------------------------------------------------


def _plain(value: stats.Estimate) -> str:
    return units.si(value.median, "")


def _percent(part: float) -> str:
    return f"{units.significant(100 * part, 2)} %"


def _same(one: stats.Estimate, other: stats.Estimate) -> bool:
    return one.median == other.median
