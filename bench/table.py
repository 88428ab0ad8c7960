# SPDX-License-Identifier: GPL-2.0-or-later
"""What every benchmark prints and keeps: name, value, 95 % interval, unit."""

import json
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from vsprof.analysis.stats import Estimate

MORE_COLUMNS = 90
"""Characters of a row beside its name."""
FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench"


def report(target: str, found: Mapping[str, tuple[Estimate, str]]) -> Path:
    """Print ``found`` (by name: estimate and unit), write it to build/bench/<target>.json, and return that path."""
    table = Table("name", "median", "95 % interval", "unit", "n")
    for name, (one, unit) in found.items():
        interval = "–" if one.low is None or one.high is None else f"{one.low:.4g} to {one.high:.4g}"
        table.add_row(name, f"{one.median:.4g}", interval, unit, str(one.n))
    # Names are what scripts look for: none may be cut.
    Console(width=max(120, *(len(name) + MORE_COLUMNS for name in found))).print(table)
    return write(target, found)


def show(frame: pd.DataFrame) -> None:
    """Print a table of texts."""
    table = Table(*map(str, frame.columns))
    for row in frame.itertuples(index=False):
        table.add_row(*row)
    # An interval is no markup.
    Console(width=120, markup=False).print(table)


def write(target: str, found: Mapping[str, tuple[Estimate, str]]) -> Path:
    """Write ``found`` to build/bench/<target>.json, and return that path."""
    rows = [{"name": name, "value": one.median, "low": one.low, "high": one.high, "unit": unit} for name, (one, unit) in found.items()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{target}.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")
    return path
