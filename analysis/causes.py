# SPDX-License-Identifier: GPL-2.0-or-later
"""`decompose` for two cases of a result: what the modelled processor, or the PMU, counted of each, repetition by repetition."""

from __future__ import annotations

import functools

import pandas as pd

from analysis import decompose, vocabulary
from analysis.load import Result
from analysis.sources import PROCESSORS
from terms import schema


def split(result: Result, case: str, base: str, **where: str) -> pd.DataFrame:
    """How the cycles per unit of data of `case` differ from those of `base`: `between` two cases of one result."""
    return between((result, case), (result, base), **where)


@functools.cache
def between(case: tuple[Result, str], base: tuple[Result, str], *, source: str, traffic: str, load: str) -> pd.DataFrame:
    """The same of two cases of any results, in decompose.COLUMNS; empty where nobody counted both."""
    told = PROCESSORS[source]
    where = {"word": vocabulary.per_data()[traffic], "traffic": traffic, "load": load}
    over, under = (told.account(result, case_id=one, **where) for result, one in (case, base))
    both = sorted(over.keys() & under.keys())
    # Cases of one repetition ran side by side: one that the other case lacks says nothing of their difference.
    paired = case[0] is base[0] and bool(case[0].order) and bool(both)
    chosen = [[runs[one] for one in (both if paired else sorted(runs))] for runs in (over, under)]
    accounts = [decompose.Account(schema.ROLES, tuple(told.causes), tuple(runs)) for runs in chosen]
    return decompose.decompose(*accounts, paired=paired)
