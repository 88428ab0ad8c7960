# SPDX-License-Identifier: GPL-2.0-or-later
"""SQL over one result: its tables as they lie on disk, and its runs and cases as the manifest has them."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from vsprof.analysis import messages
from vsprof.analysis.load import Result
from vsprof.terms import schema

MANIFEST = ("runs", "cases")
"""Lists of the manifest that are tables, too."""


def query(result: Result, sql: str) -> pa.Table:
    """What `sql` (DuckDB's) selects; a file is read as far as that needs. Raises BadInput on SQL that asks for what is not there."""
    with duckdb.connect() as connection:
        try:
            # One that the result does not have is no table.
            for name in schema.TABLES:
                if (path := result.path / f"{name}.parquet").exists():
                    connection.read_parquet(str(path)).create_view(name)
            for name in MANIFEST:
                connection.register(name, pa.Table.from_pylist([_flat(one) for one in result.manifest.get(name, [])]))
            found = connection.sql(sql)
            return pa.table({}) if found is None else found.to_arrow_table()
        except duckdb.Error as error:
            raise messages.bad_query(str(error), (*schema.TABLES, *MANIFEST)) from None


def text(found: pa.Table) -> str:
    """As a table for a terminal, with the middle of many rows left out."""
    with duckdb.connect() as connection:
        return str(connection.from_arrow(found)).rstrip() if found.num_columns else ""


def rows(found: pa.Table) -> list[dict[str, Any]]:
    """For JSON: a dict a row."""
    return json.loads(json.dumps(found.to_pylist(), default=str))


def write(found: pa.Table, path: Path) -> None:
    """As CSV or Parquet, by the ending of its name. Raises BadInput where it can't be written."""
    with duckdb.connect() as connection:
        relation = connection.from_arrow(found)
        try:
            relation.write_parquet(str(path)) if path.suffix == ".parquet" else relation.write_csv(str(path))
        except duckdb.Error as error:
            raise messages.not_written(path, str(error)) from None


def _flat(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry with the values of a case as columns of its own, and what is no plain value as JSON."""
    flat = {**entry, **entry.get("values", {})}
    flat.pop("values", None)
    return {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in flat.items()}
