# SPDX-License-Identifier: GPL-2.0-or-later
"""How `vsprof compare` shows a comparison: a table for a terminal, JSON for scripts, a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from analysis import messages, style
from analysis.compare import Comparison, decided
from analysis.figures import ratios
from analysis.sources import PROCESSORS
from terms import units

WIDTH = 190
TELLING = 0.02
"""Parts of a decomposition that change the cycles by less than this part are left out of the short table."""
UNPREFIXED = ("events", "instructions", "cycles", "slots", "fraction")


def show(found: Comparison, *, everything: bool = False, console: Console | None = None) -> None:
    """Print it. Without `everything`, metrics of single roles, and differences that are not significant, are only counted."""
    # Wide enough for every name: none may be cut, and a pipe has no width.
    console = console or Console(width=max(Console().width, WIDTH))
    console.print(f"[bold]{found.title}[/bold]\n{found.verdict}\n", highlight=False)
    for key, parts in found.parts.groupby(["source", "traffic", "load"], sort=False):
        console.print(_parts(key, parts))
    table = found.table if everything else short(found.table)
    console.print(_metrics(table, found))
    if len(table) < len(found.table):
        console.print(
            f"{len(found.table) - len(table)} more (single roles, and differences that are not significant): --all", highlight=False
        )


def short(table: pd.DataFrame) -> pd.DataFrame:
    """The metrics of the whole path (of the switch, where they are of nothing else) that differ, but those of each part of a part."""
    of_path = table["role"].isin(["all", "path"]) | ~table["metric"].isin(table.loc[table["role"].isin(["all", "path"]), "metric"])
    doubled = (table["role"] == "all") & table["metric"].isin(table.loc[table["role"] == "path", "metric"])
    return table[of_path & ~doubled & table["verdict"].isin(["more", "less"])]


def to_json(found: Comparison) -> dict[str, Any]:
    """Values in SI units, ratios b / a; parts are differences of logarithms."""
    return {
        "a": {"result": str(found.a.result.path), "case_id": found.a.case, "label": found.a.name},
        "b": {"result": str(found.b.result.path), "case_id": found.b.case, "label": found.b.name},
        "verdict": found.verdict,
        "metrics": _records(found.table),
        "parts": _records(found.parts),
    }


def draw(found: Sequence[Comparison], path: Path) -> None:
    """The ratios of each comparison, drawn into one file, whose ending names the format. Raises BadInput where that can't be written."""
    tables = [ratios.of_comparison(short(one.table), one.title) for one in found]
    figure = ratios.plot(pd.concat(tables, ignore_index=True))
    try:
        figure.savefig(path, facecolor="white")
    except (OSError, ValueError) as error:
        raise messages.figure_not_written(path, error) from error


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{name: _finite(value) for name, value in one.items()} for one in table.to_dict("records")]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parts(key: tuple[str, str, str], parts: pd.DataFrame) -> Table:
    source, traffic, load = key
    whole = parts[parts["split"] == "whole"].iloc[0]
    shares = decided(whole)
    table = Table("what", "cycles ×", "95 % interval", *(["of the whole"] if shares else []))
    table.title = f"what the cycles of {style.traffic_name(traffic, load)} differ by ({source}{'; estimated' if source == 'model' else ''})"
    telling = parts[(parts["part"].abs() > TELLING) | (parts["split"].isin(["whole", "factor"]))]
    for split in ("whole", "factor", "cause", "role"):
        for row in _by_role(telling[telling["split"] == split]).itertuples():
            interval = "" if np.isnan(row.low) else f"{_times(row.low)} to {_times(row.high)}"
            share = [f"{100 * row.part / whole.part:.0f} %"] if shares else []
            table.add_row(_what(row, source), _times(row.part), interval, *share, style="" if row.low > 0 or row.high < 0 else "dim")
        table.add_section()
    return table


def _by_role(parts: pd.DataFrame) -> pd.DataFrame:
    """Each role's own parts below it; roles stay in their order, the largest first."""
    wholes = list(dict.fromkeys([*parts.loc[parts["cause"] == "whole", "role"], *parts["role"]]))
    place = pd.DataFrame({"place": [wholes.index(role) for role in parts["role"]], "own": parts["cause"] != "whole"}, index=parts.index)
    return parts.loc[place.sort_values(["place", "own"], kind="stable").index]


def _what(row: Any, source: str) -> str:
    if row.split == "role":
        return f"  role: {row.role}" if row.cause == "whole" else f"    its {_word(row.cause)}"
    word = PROCESSORS[source].causes.get(row.cause, row.cause)
    return {"whole": "all cycles", "factor": f"  {_word(row.cause)}", "cause": f"    CPI: {word}"}[row.split]


def _word(cause: str) -> str:
    return "CPI" if cause == "cpi" else cause


def _times(part: float) -> str:
    return units.significant(float(np.exp(part)))


def _metrics(table: pd.DataFrame, found: Comparison) -> Table:
    shown = Table("metric", "traffic", "source", found.a.name, found.b.name, "ratio", "95 % interval", "verdict")
    for row in table.itertuples():
        interval = "" if row.low is None or np.isnan(row.low) else f"{units.significant(row.low)} to {units.significant(row.high)}"
        role = "" if row.role in ("all", "path") else f" ({row.role})"
        numbers = [_number(row.a, row.unit), _number(row.b, row.unit)]
        traffic = style.traffic_name(row.traffic, row.load)
        shown.add_row(row.metric + role, traffic, row.source, *numbers, units.significant(row.ratio), interval, _verdict(row))
    return shown


def _verdict(row: Any) -> str:
    """`more (worse)`, where the metric's plug-in says which direction is better."""
    if not row.better or row.verdict not in ("more", "less"):
        return row.verdict
    return f"{row.verdict} ({'better' if row.verdict == row.better else 'worse'})"


def _number(value: float, unit: str) -> str:
    return units.si(value, "" if unit.startswith(UNPREFIXED) else unit)
