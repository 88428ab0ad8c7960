# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether counts can be true at all. What a packet costs a CPU, times the packets each second, are the cycles that the CPU spent each
second, and it has no more than its clock gives. Where they are more, the one who counted cycles and the one who counted packets did not
mean the same packets: such a fault changes every number per packet, and no interval shows it.

It is found where the two counted packets apart: the model, by what it saw received, and a poll-mode thread, by itself; the rate is the
traffic's. A PMU's counts are divided by the traffic's own rate, so that their product is what was counted each second, whatever the rate.
A CPU that works less than half of its time hides a count that is wrong by two.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from vsprof.analysis import messages, metrics, model, style, vocabulary
from vsprof.analysis.load import Result
from vsprof.analysis.source import WINDOW

TOLERANCE = 0.05
"""Beside it, by how much the window of one count is longer than the other's: what came in between is in one of them alone."""
FEWEST = 100
"""Packets (megabits, replies) of a window below which one more or less, at an end, is too much of them."""
WHERE = ["case_id", "traffic", "load", "who"]


def limits(result: Result) -> list[str]:
    """A sentence for each role and traffic whose cycles are more than its CPUs have."""
    found = pd.concat(
        [_modelled(result), *(_polling(result, *one) for one in metrics.poll_mode(result.numbers).items())], ignore_index=True
    )
    return list(_told(result, found)) if len(found) else []


def _told(result: Result, windows: pd.DataFrame) -> Iterator[str]:
    windows = windows[(windows["data"] >= FEWEST) & (windows["rate"] > 0)]
    each, apart = windows["cycles"] / windows["data"], windows["seconds"] / windows["around_s"]
    needed, longer = each * windows["rate"], np.maximum(apart, 1 / apart)
    windows = windows.assign(each=each, needed=needed, excess=needed / windows["had"] / (longer + TOLERANCE))
    typical = windows.groupby(WHERE, sort=False, dropna=False)[["each", "rate", "needed", "had", "excess"]].median()
    for (case, traffic, load, who), one in typical[typical["excess"] > 1].iterrows():
        where = f"{result.cases.loc[case, 'label']}, {style.traffic_name(traffic, load)}"
        per = vocabulary.per_data()[traffic]
        yield messages.more_cycles_than_there_are(where, who, one["each"], per, one["rate"], one["needed"], one["had"])


def _modelled(result: Result) -> pd.DataFrame:
    """By window and role of CPUs: the model's cycles and data, the traffic's rate around it, and the cycles that the CPUs had each second.
    Empty where time was not modelled: an emulator's rates are of no clock."""
    rows = result.own_numbers
    rows = rows[(rows["source"] == "model") & (rows["name"] == "cycles") & (rows["cpu"] >= 0) & rows["value"].notna()]
    parts = []
    for case, counted in rows.groupby("case_id", sort=False, observed=True):
        frequency, roles = result.clock(str(case)).get("frequency_hz"), result.cpu_roles(str(case))
        if frequency and roles:
            cpus = pd.Series(roles).value_counts()
            own = counted.assign(role=counted["cpu"].map(roles)).dropna(subset="role").groupby([*WINDOW, "role"], sort=False, observed=True)
            sums = own.agg(cycles=("value", "sum"), seconds=("enabled_s", "max")).reset_index()
            who = [messages.cpus_of(role, [f"CPU {cpu}" for cpu, of in roles.items() if of == role]) for role in sums["role"]]
            parts.append(sums.assign(who=who, had=frequency * sums["role"].map(cpus)))
    if not parts:
        return pd.DataFrame()
    found = pd.concat(parts, ignore_index=True).merge(model.windows(result)[[*WINDOW, "data"]], on=WINDOW)
    found["around"] = "w" + found["window"].str.rpartition("-")[2]
    return found.merge(_rates(result).rename(columns={"window": "around"}), on=[*WINDOW[:-1], "around"])


def _polling(result: Result, collector: str, packets: str) -> pd.DataFrame:
    """By run: what poll-mode threads say of themselves. They count all the time, busy or idle, so their sum is what they had."""
    counted = metrics.pmd_cycles(result.numbers, collector, packets)
    if counted.empty:
        return pd.DataFrame()
    keys = WINDOW[:-1]
    rates = _rates(result).groupby(keys, sort=False).agg(rate=("rate", "mean"), around_s=("around_s", "sum")).reset_index()
    found = counted.merge(rates, on=keys)
    # What they count are packets, whatever the traffic is counted in.
    found = found[found["traffic"].map(vocabulary.per_data()) == "packet"]
    return found.assign(who=messages.THREADS, cycles=found["pmd_busy_cycles"], data=found[packets], had=found["tsc_per_second"])


def _rates(result: Result) -> pd.DataFrame:
    """Of each of the traffic's windows its seconds and what came in each of them."""
    return metrics.data_rates(result.numbers).rename(columns={"data_rate": "rate", "window_seconds": "around_s"})
