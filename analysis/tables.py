# SPDX-License-Identifier: GPL-2.0-or-later
"""A result's Parquet files, asked for some of their rows and columns."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vsprof.analysis import messages
from vsprof.terms import schema

ALL = 2**62
"""Rows: more than any table has."""


@dataclass(frozen=True)
class Asked:
    """A table that was not read yet. rows: how many it has. names: of its columns. path: its file; None: there is none."""

    path: Path | None
    rows: int
    names: tuple[str, ...]
    layout: pa.Schema

    def select(self, columns: Sequence[str] | None, without: dict[str, list], most: int = ALL, **where: object) -> pa.Table:
        """The rows whose columns equal `where` (a list: any of these) and have none of the values of `without`; all columns, or some.

        No more than `most` rows, whichever they are. Raises BadInput where the file's rows can't be read.
        """
        if self.path is None:
            return schema.table([], self.layout).select(list(columns or self.names))
        named = ", ".join(f'"{name}"' for name in columns) if columns else "*"
        return self._query(named, f"LIMIT {most:d}", without, where)

    def sums(self, columns: Sequence[str], without: dict[str, list], **where: object) -> pa.Table:
        """The sum of `value` over the same rows for each combination of `columns`: far fewer rows than the table has."""
        named = ", ".join(f'"{name}"' for name in columns)
        if self.path is None:
            return schema.table([], self.layout).select([*columns, "value"])
        return self._query(f"{named}, sum(value) AS value", "GROUP BY ALL", without, where)

    def _query(self, named: str, ending: str, without: dict[str, list], where: Mapping[str, object]) -> pa.Table:
        """Raises BadInput where the file's rows can't be read."""
        wanted = {name: value if isinstance(value, list) else [value] for name, value in where.items()}
        tests = [_test(name, how, some) for how, asked in (("IN", wanted), ("NOT IN", without)) for name, some in asked.items()]
        values = [value for one in (*wanted.values(), *without.values()) for value in one]
        asked = f"SELECT {named} FROM read_parquet(?, hive_partitioning = false) WHERE {' AND '.join(tests) or 'true'} {ending}"
        with duckdb.connect() as connection:
            try:
                return connection.sql(asked, params=[glob.escape(str(self.path)), *values]).to_arrow_table()
            except duckdb.Error as error:
                raise messages.unreadable_result(self.path, error) from None


def ask(path: Path, layout: pa.Schema) -> Asked:
    """The table in `path`, unread. Raises BadInput if it is not there, or lacks a column of schema.KEYS or of `layout`."""
    try:
        found = pq.ParquetFile(path)
    except FileNotFoundError:
        raise messages.no_result(path.parent, path.name) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise messages.unreadable_result(path, error) from None
    with found:
        names = tuple(found.schema_arrow.names)
        stamp = (found.schema_arrow.metadata or {}).get(b"vsprof_schema", b"none").decode()
        check_version(path, int(stamp) if stamp.isdigit() else stamp)
        if missing := [name for name in (*schema.KEYS.names, *layout.names) if name not in names]:
            raise messages.missing_columns(path, missing)
        return Asked(path, found.metadata.num_rows, names, layout)


def none(layout: pa.Schema) -> Asked:
    """A table without rows."""
    return Asked(None, 0, tuple(schema.table([], layout).column_names), layout)


def in_one_piece(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame, each column of words in one piece of memory: rows are taken 20 times slower from one joined of a hundred."""
    return pa.Table.from_pandas(frame, preserve_index=False).combine_chunks().to_pandas()


def check_version(path: Path, seen: object) -> None:
    """Raises BadInput if `path` was written with another schema than this one."""
    if seen != schema.VERSION:
        raise messages.wrong_schema(path, seen, schema.VERSION)


def _test(name: str, how: str, values: list) -> str:
    """SQL, with a mark for each value; a column that may be any of none is never right, and one that must not be is always."""
    return f'"{name}" {how} ({", ".join("?" * len(values))})' if values else str(how != "IN").lower()
