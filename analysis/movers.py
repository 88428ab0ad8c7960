# SPDX-License-Identifier: GPL-2.0-or-later
"""What the modelled processors that move a switch's packets did: its poll-mode threads', or else all of the path but its ends."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vsprof.analysis import model, stats
from vsprof.analysis.load import Result
from vsprof.analysis.model import MODEL
from vsprof.analysis.source import WINDOW, samples

ENDS = ("guest", "host-other")
"""Roles that are not the switch's: what is left of the path is what its processors do, where no thread polls."""


def processor(result: Result, case: str) -> Mapping[str, Any]:
    """The profile that a case ran on: its own where the processor is a factor, else the campaign's; empty where none was modelled."""
    return result.facts.get(case, {}).get("processor") or model.profile(result)


def per_packet(result: Result, counter: str, **where: object) -> stats.Sample:
    """A counter of a packet that arrived."""
    rows = _rows(result, f"{model.PREFIX}{counter}_per_packet", where)
    # Divided by the same packets in each role.
    return samples(rows.groupby([*WINDOW, "per"], as_index=False, observed=True)["part"].sum(min_count=1))


def cpi(result: Result, **where: object) -> stats.Sample:
    """Cycles per instruction."""
    rows = _rows(result, f"{model.PREFIX}cpi", where)
    return samples(rows.groupby(WINDOW, as_index=False, observed=True)[["part", "per"]].sum(min_count=1))


def _rows(result: Result, metric: str, where: Mapping[str, object]) -> pd.DataFrame:
    rows = MODEL.rows(result, metric=metric, role=model.POLL_MODE, **where)
    if rows.empty:
        rows = MODEL.of_roles(result, [metric], **where)
        rows = rows[~rows["role"].isin(ENDS)]
    return rows
