# SPDX-License-Identifier: GPL-2.0-or-later
"""What an interval can't show: a case whose numbers drift, or lie in two groups, an order of runs that favours a case, and what vsprof
itself took of the windows: its probes run on the host that they watch, and on a slow one for longer than the window.

Each check says which run. None of them takes a number away: a median of two groups, or of a drift, is a median still, but its reader
must know.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from vsprof.analysis import messages, metrics, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.sources import SOFTWARE

LOADS = ("saturation", "paced")
"""Whose series are looked at. A rate that was searched is one number a run."""
MATTERS = 0.1
"""A drift or a gap below this part of the median is not worth a reader's time."""
FEWEST = 6
"""Values below which neither check can tell anything."""
SURE = 0.01
"""How often a series without drift is flagged; the gap's threshold is chosen alike (see `two_groups`)."""
GAPS = {6: 9.0, 7: 7.3, 8: 6.0, 9: 4.8, 10: 4.3, 12: 3.5, 15: 3.0}
"""By the number of values, the quantile 0.99 of the quotient of `two_groups` in 8,000 series of normal values; for more values it goes on
falling, and 3 is kept, for windows are not normal. tests/analysis/test_series.py checks it."""
WORTH_TELLING = 0.2
"""Share of the windows' time. A switch's thread that shares the probes' CPU may have lost as much of its own."""


def flags(result: Result) -> list[str]:
    """A sentence for every drifting or two-fold series of what traffics are judged by, window by window in the order in which they were
    measured."""
    started = {run["run_id"]: run.get("started") or "" for run in result.manifest.get("runs", [])}
    found = []
    for (traffic, load), metric in judged(result).items():
        rows = SOFTWARE.rows(result, traffic=traffic, load=load, metric=metric)
        rows = rows[rows["per"] != 0].assign(started=lambda t: t["run_id"].map(started))
        for case, windows in rows.groupby("case_id", sort=False):
            in_order = windows.sort_values(["started", "run_id", "window"], kind="stable")
            where = f"{result.cases.loc[case, 'label']}, {style.traffic_name(traffic, load)}, {metric}"
            found += [f"{where}: {text}." for text in _found(in_order)]
    return found


def limits(result: Result) -> list[str]:
    """What probes took, the flags as sentences, and what the order of runs leaves open."""
    return [*observed(result), *flags(result), *order(result)]


def probing(result: Result) -> pd.Series:
    """By switch, the median share of its windows' time (0 to 1) in which probes were read, at either end: what a probe's interval has
    beyond the window's seconds is others' reading. Empty where nothing but traffic was counted, or the seconds are not known."""
    seconds = (result.manifest.get("experiment") or {}).get("windows", {}).get("seconds")
    probes = result.numbers[["switch", "run_id", "traffic", "load", "window", "collector", "enabled_s"]]
    probes = probes[(probes["collector"] != probes["traffic"]) & probes["window"].str.fullmatch(r"w\d+") & (probes["enabled_s"] > 0)]
    if probes.empty or not seconds:
        return pd.Series(dtype=float)
    lasted = probes.groupby(["switch", "run_id", "traffic", "load", "window"], observed=True, dropna=False)["enabled_s"].median()
    return (1 - seconds / lasted).clip(lower=0).groupby("switch", observed=True).median()


def observed(result: Result) -> list[str]:
    """What probes took of a switch's windows in a sentence, where it is worth telling."""
    told = probing(result)
    told = told[told > WORTH_TELLING]
    return [messages.observed(dict(told))] if len(told) else []


def order(result: Result) -> list[str]:
    """Whether some case ran before another in each repetition: then an effect of the order can't be told from one of the case."""
    blocks = result.order
    if not blocks:
        return [messages.ORDER_NOT_KNOWN]
    if len(blocks) < 2:
        return []
    label, cases = result.cases["label"], result.cases.index
    always = {
        (one, other)
        for one, other in itertools.permutations(cases, 2)
        if all(one in block and other in block and block.index(one) < block.index(other) for block in blocks)
    }
    # What follows from two others is not said.
    shortest = [pair for pair in always if not any((pair[0], between) in always and (between, pair[1]) in always for between in cases)]
    found = [f"{label[one]} ran before {label[other]}" for one, other in sorted(shortest, key=lambda pair: [*map(list(cases).index, pair)])]
    return [messages.always_before(len(blocks), found)] if found else []


def drift(values: Sequence[float]) -> float:
    """The change from the first to the last of a series, as a part of its median, by the median of all slopes (P. K. Sen, Journal of the
    American Statistical Association 63, 1968); 0 where Kendall's test does not tell it from chance (at SURE), or there are too few values.
    """
    values = np.asarray(values, float)
    middle = np.median(values) if values.size else 0.0
    if values.size < FEWEST or middle == 0 or np.ptp(values) == 0:
        return 0.0
    # Half a second to import, and half of what a report's libraries take: few results have as many repetitions.
    from scipy.stats import kendalltau, theilslopes  # noqa: PLC0415

    places = np.arange(values.size)
    if kendalltau(places, values).pvalue >= SURE:
        return 0.0
    return float(theilslopes(values, places).slope * (values.size - 1) / abs(middle))


def two_groups(values: Sequence[float]) -> np.ndarray | None:
    """Which values (True) lie in the smaller of two groups; None where they are one.

    The two are parted at the widest gap that leaves two values on each side. They are two where the gap is wider than so many times the
    spread within the groups (root mean square about their own means) as GAPS says for as many values: of normal values fewer than one
    series in a hundred is.
    """
    values = np.asarray(values, float)
    if values.size < FEWEST:
        return None
    ordered = np.sort(values)
    gaps = np.diff(ordered)[1:-1]
    place = int(np.argmax(gaps)) + 2
    below, above = ordered[:place], ordered[place:]
    spread = np.sqrt((below.var() * below.size + above.var() * above.size) / values.size)
    wide = above[0] - below[-1]
    if wide <= np.interp(values.size, list(GAPS), list(GAPS.values())) * spread or wide <= MATTERS * abs(np.median(values)):
        return None
    return values <= below[-1] if below.size <= above.size else values >= above[0]


def judged(result: Result) -> dict[tuple[str, str], str]:
    """By (traffic, load), the first of its headlines. Looking at all numbers would flag one in twenty for nothing."""
    first: dict[tuple[str, str], str] = {}
    for traffic, load, metric, _ in vocabulary.headlines(metrics.carrying(result)):
        if load in LOADS:
            first.setdefault((traffic, load), metric)
    return first


def _found(rows: pd.DataFrame) -> Iterator[str]:
    """What is flagged of one series, in the order of its windows."""
    sums = rows.groupby("run_id", sort=False)[["part", "per"]].sum()
    # Windows of one run are not independent: a drift is one only over runs.
    if change := drift(sums["part"] / sums["per"]):
        yield messages.drifts(100 * change, sums.index[0], sums.index[-1])
    values = (rows["part"] / rows["per"]).to_numpy(float)
    if (apart := two_groups(values)) is not None:
        smaller, larger = np.median(values[apart]), np.median(values[~apart])
        yield messages.two_groups(int(apart.sum()), values.size, smaller / larger, list(rows["run_id"][apart].unique()))
