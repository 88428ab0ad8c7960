# SPDX-License-Identifier: GPL-2.0-or-later
"""Why one case takes more cycles per unit of data than another: the ratio, split exactly into causes.

The whole ratio is a difference of logarithms, ln C' - ln C, where C is cycles per packet (megabit, reply). It splits three times, and
the parts of each split add up to the whole, whatever the numbers are:

1. C = I x CPI, instructions per packet times cycles per instruction, so ln(C'/C) = ln(I'/I) + ln(CPI'/CPI).
2. CPI is a sum over causes (what the processor waited for), so ln(CPI'/CPI) is the sum over causes k of (c'k - ck) / L(CPI', CPI), where
   ck is the cause's cycles per instruction and L(x, y) = (x - y) / ln(x/y) the logarithmic mean.
3. C is a sum over roles, so ln(C'/C) is the sum over roles r of (C'r - Cr) / L(C', C); each role's part is again split, as in 1, into its
   instructions and its CPI: wr ln(I'r/Ir) + wr ln(CPI'r/CPIr), wr = L(C'r, Cr) / L(C', C). A role that one case does not have (vhost
   workers with OVS-DPDK) has no CPI there: all of its part is one of instructions, done or not done.

2 and 3 are the logarithmic mean Divisia index (B. W. Ang, The LMDI approach to decomposition analysis: a practical guide, Energy Policy
33, 2005): no rest is left, exchanging the cases changes every sign, and units don't matter.

Levels are geometric means over repetitions, which multiply as medians don't; the shares of causes and roles are means over repetitions.
Intervals: `stats.resampled`, of repetitions and then windows; the two cases' repetitions are drawn together where they ran in turns.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vsprof.analysis import stats, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import PROCESSORS
from vsprof.terms import schema

WHOLE = ("path", "whole")
COLUMNS = ["split", "role", "cause", "part", "low", "high", "n"]
"""Of a decomposition: part, low and high are differences of logarithms; `split` is whole, factor, cause or role."""


@dataclass(frozen=True)
class Account:
    """Where the cycles of one case went.

    runs: one array a repetition, shape (windows, 1 + roles x (1 + causes)): the unit of data, then for each role its instructions and its
    cycles by cause.
    """

    roles: tuple[str, ...]
    causes: tuple[str, ...]
    runs: tuple[np.ndarray, ...]


class _Levels(NamedTuple):
    """Of one case, or of each of its resamples (then every array has these as first axis): ln C and ln I; and shares, which add up to 1:
    of C by cause, shape (…, causes), of C by role, and of I by role."""

    cycles: np.ndarray
    instructions: np.ndarray
    causes: np.ndarray
    roles: np.ndarray
    role_instructions: np.ndarray


@functools.cache
def between(case: tuple[Result, str], base: tuple[Result, str], *, source: str, traffic: str, load: str) -> pd.DataFrame:
    """How the cycles per unit of data of `case` differ from those of `base`, each a case of any result, repetition by repetition as the
    modelled processor, or the PMU, counted them, in COLUMNS; empty where nobody counted both."""
    told = PROCESSORS[source]
    where = {"word": vocabulary.per_data()[traffic], "traffic": traffic, "load": load}
    over, under = (told.account(result, case_id=one, **where) for result, one in (case, base))
    both = sorted(over.keys() & under.keys())
    # Cases of one repetition ran side by side: one that the other case lacks says nothing of their difference.
    paired = case[0] is base[0] and bool(case[0].order) and bool(both)
    chosen = [[runs[one] for one in (both if paired else sorted(runs))] for runs in (over, under)]
    return decompose(*(Account(schema.ROLES, tuple(told.causes), tuple(runs)) for runs in chosen), paired=paired)


def decompose(other: Account, base: Account, *, paired: bool = False) -> pd.DataFrame:
    """How ln(cycles per unit of data) of `other` differs from that of `base`, in COLUMNS; empty where either has no cycles.

    Both have the same roles and causes. `paired`: repetition i of both ran side by side, so that what moved both is no difference of
    theirs. ValueError where paired accounts have another number of repetitions with a number.
    """
    over, under = map(_counted, (other, base))
    if not (_countable(over) and _countable(under)):
        return pd.DataFrame(columns=COLUMNS)
    if paired and len(over.runs) != len(under.runs):
        raise ValueError(f"{len(over.runs)} and {len(under.runs)} repetitions are not in pairs")
    middle = _parts(_levels(_sums(over), over), _levels(_sums(under), under))
    table = _labels(base.roles, base.causes).assign(part=middle, low=np.nan, high=np.nan, n=min(len(over.runs), len(under.runs)))
    if len(over.runs) == 1 or len(under.runs) == 1:
        return table[COLUMNS]
    low, high = _interval(over, under, paired)
    # As in stats: an interval that excludes its own middle helps nobody.
    return table.assign(low=np.minimum(low, middle), high=np.maximum(high, middle))[COLUMNS]


def ratio(parts: pd.DataFrame, cause: str = "whole", role: str = "path") -> stats.Estimate:
    """By how much one part alone multiplies the cycles; the parts of a split multiply to the whole. NOTHING where there is no such part."""
    found = parts[(parts["cause"] == cause) & (parts["role"] == role)]
    if found.empty:
        return stats.NOTHING
    row = found.iloc[0]
    low, high = (None if np.isnan(bound) else float(np.exp(bound)) for bound in (row["low"], row["high"]))
    return stats.Estimate(float(np.exp(row["part"])), low, high, int(row["n"]))


def named(part: Any, causes: Mapping[str, str]) -> str:
    """What a part, a row in COLUMNS, is called where it stands below the whole. causes: the words of its source."""
    word = {"whole": "all cycles", "cpi": "CPI"}.get(part.cause, part.cause)
    if part.split == "role":
        return f"role: {part.role}" if part.cause == "whole" else f"  its {word}"
    return f"CPI: {causes.get(word, word)}" if part.split == "cause" else word


def _interval(over: Account, under: Account, paired: bool) -> tuple[np.ndarray, np.ndarray]:
    width = max(len(run) for run in (*over.runs, *under.runs))
    drawn = [_levels(stats.resampled(account.runs, width), account) for account in (over, under)]
    if not paired:
        # Both are drawn with one seed. Turned round, the draws of one are independent of the other's; and the same pairs meet when the
        # cases are exchanged, so that every sign changes exactly.
        drawn[1] = _Levels(*(level[::-1] for level in drawn[1]))
    return stats.tails(_parts(*drawn))


def _by_role(sums: np.ndarray, account: Account) -> np.ndarray:
    """Without the unit of data: shape (…, roles, 1 + causes)."""
    return sums[..., 1:].reshape(*sums.shape[:-1], len(account.roles), 1 + len(account.causes))


def _levels(sums: np.ndarray, account: Account) -> _Levels:
    """From sums over windows, shape (…, repetitions, columns)."""
    data, by_role = sums[..., 0], _by_role(sums, account)
    instructions, cycles = by_role[..., 0], by_role[..., 1:]
    all_instructions, all_cycles = instructions.sum(-1), cycles.sum((-1, -2))
    return _Levels(
        np.log(all_cycles / data).mean(-1),
        np.log(all_instructions / data).mean(-1),
        (cycles.sum(-2) / all_cycles[..., None]).mean(-2),
        (cycles.sum(-1) / all_cycles[..., None]).mean(-2),
        (instructions / all_instructions[..., None]).mean(-2),
    )


def _parts(over: _Levels, under: _Levels) -> np.ndarray:
    """All parts in the order of `_labels`, shape (…, parts)."""
    whole = over.cycles - under.cycles
    instructions = over.instructions - under.instructions
    # Everything below is a quotient: in the units of `under`, so that no exponential can overflow.
    ratio = np.exp(whole)[..., None]
    mean = log_mean(ratio, 1.0)
    cpi = np.exp(whole - instructions)[..., None]
    causes = (cpi * over.causes - under.causes) / log_mean(cpi, 1.0)
    roles = (ratio * over.roles - under.roles) / mean
    weight = log_mean(ratio * over.roles, under.roles) / mean
    done = weight * _log_ratio(np.exp(instructions)[..., None] * over.role_instructions, under.role_instructions)
    here = (over.roles > 0) & (under.roles > 0) & (over.role_instructions > 0) & (under.role_instructions > 0)
    role_instructions = np.where(here, done, roles)
    factors = np.stack([whole, instructions, whole - instructions], -1)
    return np.concatenate([factors, causes, roles, role_instructions, roles - role_instructions], -1)


def log_mean(x: np.ndarray | float, y: np.ndarray | float) -> np.ndarray:
    """The logarithmic mean (x - y) / ln(x/y); x where both are the same, 0 where one of them is 0."""
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    logs = _log_ratio(x, y)
    # Near x = y the quotient loses all its digits: there the arithmetic mean is the same to second order.
    near = np.abs(logs) < 1e-6
    with np.errstate(invalid="ignore"):
        found = np.where(near, (x + y) / 2, (x - y) / np.where(near, 1.0, logs))
    return np.where((x > 0) & (y > 0), found, 0.0)


def _log_ratio(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """ln(x/y); 0 where there is none."""
    both = (x > 0) & (y > 0)
    return np.log(np.where(both, x, 1.0) / np.where(both, y, 1.0))


def _labels(roles: Sequence[str], causes: Sequence[str]) -> pd.DataFrame:
    rows = [("whole", *WHOLE), ("factor", "path", "instructions"), ("factor", "path", "cpi")]
    rows += [("cause", "path", cause) for cause in causes]
    rows += [("role", role, part) for part in ("whole", "instructions", "cpi") for role in roles]
    return pd.DataFrame(rows, columns=["split", "role", "cause"])


def _sums(account: Account) -> np.ndarray:
    return np.array([run.sum(axis=0) for run in account.runs])


def _countable(account: Account) -> bool:
    """Whether each repetition has data, instructions and cycles: without them there is no logarithm."""
    if not account.runs:
        return False
    sums = _sums(account)
    by_role = _by_role(sums, account)
    return bool((sums[:, 0] > 0).all() and (by_role[..., 0].sum(1) > 0).all() and (by_role[..., 1:].sum((1, 2)) > 0).all())


def _counted(account: Account) -> Account:
    """The same without windows that have no number."""
    runs = (run[~np.isnan(run).any(axis=1)] for run in account.runs)
    return replace(account, runs=tuple(run for run in runs if len(run)))
