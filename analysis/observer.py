# SPDX-License-Identifier: GPL-2.0-or-later
"""What vsprof itself took of the windows: their probes run on the host that they watch, and on a slow one for longer than the window."""

from __future__ import annotations

import pandas as pd

from analysis import messages
from analysis.load import Result

WORTH_TELLING = 0.2
"""Share of the windows' time. A switch's thread that shares the probes' CPU may have lost as much of its own."""


def shares(result: Result) -> pd.Series:
    """By switch, the median share of its windows' time (0 to 1) in which probes were read, at either end: what a probe's interval has
    beyond the window's seconds is others' reading. Empty where nothing but traffic was counted, or the seconds are not known."""
    seconds = (result.manifest.get("experiment") or {}).get("windows", {}).get("seconds")
    probes = result.numbers[["switch", "run_id", "traffic", "load", "window", "collector", "enabled_s"]]
    probes = probes[(probes["collector"] != probes["traffic"]) & probes["window"].str.fullmatch(r"w\d+") & (probes["enabled_s"] > 0)]
    if probes.empty or not seconds:
        return pd.Series(dtype=float)
    lasted = probes.groupby(["switch", "run_id", "traffic", "load", "window"], observed=True, dropna=False)["enabled_s"].median()
    return (1 - seconds / lasted).clip(lower=0).groupby("switch", observed=True).median()


def limits(result: Result) -> list[str]:
    """A sentence, where the share is worth telling."""
    told = shares(result)
    told = told[told > WORTH_TELLING]
    return [messages.observed(dict(told))] if len(told) else []
