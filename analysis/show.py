# SPDX-License-Identifier: GPL-2.0-or-later
"""A result in a few lines, for `vsprof show RUN` (text) and `vsprof show RUN --json` (summary)."""

from dataclasses import asdict
from typing import Any

import pandas as pd

from vsprof.analysis import describe, explain, explain_model, functions, model
from vsprof.analysis.load import Result
from vsprof.analysis.sources import HARDWARE, MODEL, SOFTWARE
from vsprof.terms import units


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
        "model": model.names(result) if MODEL.present(result) else None,
        "hardware": HARDWARE.label(result) if HARDWARE.present(result) else None,
        "cases": [_case(result, case) for case in result.cases.index],
        "answer": explain.answer(result),
        "limits": describe.all_limits(result),
    }


def text(result: Result) -> str:
    """The same for people: plain text, one table of cases."""
    title = f"{result.path.name}: {result.manifest.get('status', '–')}, testbed {result.testbed}"
    parts = [title, _table(describe.headlines(result).frame), explain.answer(result).replace("**", "").replace("*", "")]
    if MODEL.present(result):
        parts.insert(2, _table(at_saturation(describe.headlines(result, MODEL).frame)))
        parts += explain_model.sentences(result, **where) if (where := functions.profiled(result)) else []
    if HARDWARE.present(result):
        parts.append(_table(at_saturation(describe.headlines(result, HARDWARE).frame)))
    return "\n\n".join([*parts, "\n".join(f"- {limit}" for limit in describe.all_limits(result))]).rstrip() + "\n"


def at_saturation(frame: pd.DataFrame) -> pd.DataFrame:
    """What a switch costs where it limits; the report and ``--json`` have the rest."""
    return frame[frame.iloc[:, 0].str.contains("saturation")]


def _case(result: Result, case: str) -> dict[str, Any]:
    row = result.cases.loc[case]
    named = {key: row[key] or None for key in ("switch", "access", "topology", "setting")}
    sources = {"metrics": SOFTWARE, "model_metrics": MODEL, "hardware_metrics": HARDWARE}
    return {"case_id": case, **named, **{key: _numbers(describe.estimates(result, case, source)) for key, source in sources.items()}}


def _numbers(estimates: dict) -> list[dict[str, Any]]:
    keys = ("traffic", "load", "metric")
    return [
        {**dict(zip(keys, key, strict=True)), **{name: units.finite(value) for name, value in asdict(one).items()}, "unit": unit}
        for key, (one, unit) in estimates.items()
    ]


def _table(frame: pd.DataFrame) -> str:
    rows = [list(map(str, row)) for row in (frame.columns, *frame.to_numpy().tolist())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])
