# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions in which the modelled processor missed most, as a table."""

from __future__ import annotations

import pandas as pd

from analysis import functions, messages, vocabulary
from analysis.describe import Table, Text
from analysis.load import Result
from analysis.sources import MODEL
from terms import units

SHOWN = 5
HEADER = "per packet (modelled)"
"""Short: functions need the room."""
KINDS = {"l1d_misses": "L1D misses", "llc_misses": "LLC misses", "dtlb_walks": "DTLB walks", "branch_misses": "branch misses"}


def misses(result: Result) -> Table | Text:
    """For each kind of miss and case the functions that have most of them per packet, at saturation.

    A cell has the misses per packet, their share of all, the function and the role of the thread; the first row of a kind has the sum
    over all functions, those that were not kept among them.
    """
    where = functions.profiled(result)
    rows = [row for counter, words in KINDS.items() for row in _rows(result, counter, words, where)] if where else []
    if not rows:
        return Text(f"*{messages.not_shown('functions by misses', functions.missing(result))}*")
    return Table(pd.DataFrame(rows, columns=[HEADER, *result.cases["label"]]))


def _rows(result: Result, counter: str, words: str, where: dict[str, str]) -> list[list[str]]:
    """Of one kind: the sums, then the functions by rank."""
    found = {case: functions.hottest(result, case, counter, SHOWN, **where) for case in result.cases.index}
    if all(one.empty for one in found.values()):
        return []
    metric = f"model_{counter}_per_{vocabulary.per_data()[where['traffic']]}"
    sums = [_sum(MODEL.estimate(result, case_id=case, metric=metric, **where).median) for case in found]
    ranks = range(max(len(one) for one in found.values()))
    ranked = [[f"{place + 1}.", *(_cell(one, place) for one in found.values())] for place in ranks]
    return [[words, *sums], *ranked]


def _sum(value: float) -> str:
    return f"{units.significant(value)} in all" if pd.notna(value) else "–"


def _cell(found: pd.DataFrame, place: int) -> str:
    if place >= len(found):
        return "–"
    row = found.iloc[place]
    share = f" ({units.significant(100 * row['share_of_all'], 2)} %)" if pd.notna(row["share_of_all"]) else ""
    return f"{units.significant(row['median'])}{share}: {functions.named(row['object'], row['function'])}, {row['role']}"
