# SPDX-License-Identifier: GPL-2.0-or-later
"""A result in a few lines, for `vsprof show RUN` (text) and `vsprof show RUN --json` (summary)."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from analysis import describe, explain, explain_model, functions, model
from analysis.load import Result
from analysis.sources import HARDWARE, MODEL


def summary(result: Result) -> dict[str, Any]:
    """The headline metrics of each case, JSON-ready: values in SI units, `low` and `high` null without an interval."""
    return {
        "result": str(result.path),
        "name": result.manifest.get("name"),
        "status": result.manifest.get("status"),
        "testbed": result.testbed,
        "emulated": result.emulated,
        "repetitions": result.repetitions,
        "failed_runs": [run["run_id"] for run in result.failed],
        "model": model.profile(result).get("name") if MODEL.present(result) else None,
        "hardware": HARDWARE.label(result) if HARDWARE.present(result) else None,
        "cases": [_case(result, case) for case in result.cases.index],
        "answer": explain.answer(result),
        "limits": describe.all_limits(result),
    }


def text(result: Result) -> str:
    """The same for people: plain text, one table of cases."""
    title = f"{result.path.name}: {result.manifest.get('status', '–')}, testbed {result.testbed}"
    plain = explain.answer(result).replace("**", "").replace("*", "")
    table = describe.headlines(result).frame
    parts = [title, _table(table), plain]
    if MODEL.present(result):
        parts[2:2] = [_table(_at_saturation(describe.model_headlines(result).frame))]
        parts += explain_model.sentences(result, **where) if (where := functions.profiled(result)) else []
    if HARDWARE.present(result):
        parts.append(_table(_at_saturation(describe.hardware_headlines(result).frame)))
    return "\n\n".join([*parts, "\n".join(f"- {limit}" for limit in describe.all_limits(result))]).rstrip() + "\n"


def _at_saturation(frame: pd.DataFrame) -> pd.DataFrame:
    """What a switch costs where it limits; the report and ``--json`` have the rest."""
    return frame[frame.iloc[:, 0].str.contains("saturation")]


def _case(result: Result, case: str) -> dict[str, Any]:
    row = result.cases.loc[case]
    named = {key: row[key] or None for key in ("switch", "access", "topology", "setting")}
    sources = {"metrics": describe.estimates, "model_metrics": describe.model_estimates, "hardware_metrics": describe.hardware_estimates}
    return {"case_id": case, **named, **{key: _numbers(look(result, case)) for key, look in sources.items()}}


def _numbers(estimates: dict) -> list[dict[str, Any]]:
    return [
        {
            "traffic": traffic,
            "load": load,
            "metric": metric,
            "median": _finite(found.median),
            "low": _finite(found.low),
            "high": _finite(found.high),
            "n": found.n,
            "unit": unit,
        }
        for (traffic, load, metric), (found, unit) in estimates.items()
    ]


def _finite(value: float | None) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if value is not None and math.isfinite(value) else None


def _table(frame: pd.DataFrame) -> str:
    return _aligned([list(frame.columns), *frame.to_numpy().tolist()])


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
