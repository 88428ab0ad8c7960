# SPDX-License-Identifier: GPL-2.0-or-later
"""How full each CPU was, in modelled time: the part of a window in which it worked, as the model counted its cycles.

A poll-mode thread never rests: what its polls took that found nothing is no work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis import model, stats
from analysis.load import Result
from analysis.source import samples, select

EMPTY = f"{model.EMPTY}_cycles"


@dataclass(frozen=True)
class Cpu:
    """A CPU of one case, under one traffic."""

    number: int
    role: str
    full: stats.Estimate
    """The part of the time in which it worked, 0 to 1; a sender that spins works all the time."""


def of(result: Result, case_id: str, **where: object) -> list[Cpu]:
    """The CPUs of a case, the fullest first; none where time was not modelled, or was idle."""
    frequency = (result.manifest.get("facts", {}).get("clock") or {}).get("frequency_hz")
    rows = select(result.own_numbers, case_id=case_id, name=["cycles", EMPTY], source="model", **where)
    rows = rows[rows["cpu"].notna() & rows["value"].notna()]
    if not frequency or rows.empty:
        return []
    signed = rows.assign(part=np.where(rows["name"] == "cycles", rows["value"], -rows["value"]), per=rows["enabled_s"] * frequency)
    windows = signed.groupby(["run_id", "window", "cpu"], as_index=False).agg(part=("part", "sum"), per=("per", "max"))
    roles = _roles(result, case_id)
    found = [Cpu(int(cpu), roles.get(int(cpu), ""), stats.estimate(samples(one))) for cpu, one in windows.groupby("cpu")]
    return sorted(found, key=lambda one: -one.full.median)


def _roles(result: Result, case_id: str) -> dict[int, str]:
    """What each CPU is for, as the manifest has it."""
    for run in result.manifest.get("runs", []):
        if run["case_id"] == case_id and run.get("cpu_roles"):
            return {int(cpu): role for cpu, role in run["cpu_roles"].items()}
    return {}
