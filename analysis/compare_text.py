# SPDX-License-Identifier: GPL-2.0-or-later
"""How `vsprof compare` shows a comparison: a table for a terminal, JSON for scripts, a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Column, Table

from vsprof.analysis import compare, decompose, messages, style
from vsprof.analysis.compare import Comparison, decided
from vsprof.analysis.figures import ratios
from vsprof.analysis.sources import PROCESSORS
from vsprof.terms import units

WIDTH = 260
TELLING = 0.02
"""Parts of a decomposition that change the cycles by less than this part are left out of the short table."""
INDENTS = {"whole": "", "factor": "  ", "cause": "    ", "role": "  "}
"""Each split's parts below what they add up to."""
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
    if left := len(found.table) - len(table):
        console.print(f"{left} more (single roles, and differences that are not significant): --all", highlight=False)


def short(table: pd.DataFrame) -> pd.DataFrame:
    """The metrics of the whole path (of the switch, where they are of nothing else) that differ, but those of each part of a part."""
    return compare.of_path(table[table["verdict"].isin(["more", "less"])], table)


def to_json(found: Comparison) -> dict[str, Any]:
    """Values in SI units, ratios b / a; parts are differences of logarithms."""
    sides = {
        side: {"result": str(one.result.path), "case_id": one.case, "label": one.name} for side, one in (("a", found.a), ("b", found.b))
    }
    return {**sides, "verdict": found.verdict, "metrics": _records(found.table), "parts": _records(found.parts)}


def draw(found: Sequence[Comparison], path: Path) -> None:
    """The ratios of each comparison, drawn into one file, whose ending names the format. Raises BadInput where that can't be written."""
    tables = [ratios.of_comparison(short(one.table), one.title) for one in found]
    figure = ratios.plot(pd.concat(tables, ignore_index=True))
    try:
        figure.savefig(path, facecolor="white")
    except (OSError, ValueError) as error:
        raise messages.figure_not_written(path, error) from error


def write(path: Path, text: str) -> None:
    """Raises BadInput where it can't be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise messages.not_written(path, error) from error


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A row each; None where there is no number."""
    return [{name: units.finite(value) for name, value in row.items()} for row in table.to_dict("records")]


def _parts(key: tuple[str, str, str], parts: pd.DataFrame) -> Table:
    source, traffic, load = key
    whole = parts[parts["split"] == "whole"].iloc[0]
    shares = decided(whole)
    table = Table("what", "cycles ×", "95 % interval", *(["of the whole"] if shares else []))
    table.title = f"what the cycles of {style.traffic_name(traffic, load)} differ by ({source}{'; estimated' if source == 'model' else ''})"
    telling = parts[(parts["part"].abs() > TELLING) | (parts["split"].isin(["whole", "factor"]))]
    for split, indent in INDENTS.items():
        for row in _by_role(telling[telling["split"] == split]).itertuples():
            share = [f"{100 * row.part / whole.part:.0f} %"] if shares else []
            low, part, high = (units.significant(float(np.exp(log))) for log in (row.low, row.part, row.high))
            interval = "" if np.isnan(row.low) else f"{low} to {high}"
            name = indent + decompose.named(row, PROCESSORS[source].causes)
            table.add_row(name, part, interval, *share, style="" if decided(row) else "dim")
        table.add_section()
    return table


def _by_role(parts: pd.DataFrame) -> pd.DataFrame:
    """Each role's own parts below it; roles stay in their order, the largest first."""
    wholes = list(dict.fromkeys([*parts.loc[parts["cause"] == "whole", "role"], *parts["role"]]))
    place = pd.DataFrame({"place": [wholes.index(role) for role in parts["role"]], "own": parts["cause"] != "whole"}, index=parts.index)
    return parts.loc[place.sort_values(["place", "own"], kind="stable").index]


def _metrics(table: pd.DataFrame, found: Comparison) -> Table:
    shown = Table(Column("metric", no_wrap=True), "traffic", "source", found.a.name, found.b.name, "ratio", "95 % interval", "verdict")
    for name, row in zip(compare.names(table), table.itertuples(), strict=True):
        interval = "" if row.low is None or np.isnan(row.low) else f"{units.significant(row.low)} to {units.significant(row.high)}"
        numbers = [units.si(value, "" if row.unit.startswith(UNPREFIXED) else row.unit) for value in (row.a, row.b)]
        traffic = style.traffic_name(row.traffic, row.load)
        verdict = row.verdict
        if row.better and verdict in ("more", "less"):
            # The metric's plug-in says which direction is better.
            verdict += " (better)" if verdict == row.better else " (worse)"
        shown.add_row(name, traffic, row.source, *numbers, units.significant(row.ratio), interval, verdict)
    return shown
