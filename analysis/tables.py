# SPDX-License-Identifier: GPL-2.0-or-later
"""A result's Parquet files, asked for some of their rows and columns."""

import functools
import glob
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import ColumnExpression, ConstantExpression, DuckDBPyRelation, Expression, FunctionExpression

from vsprof.analysis import messages
from vsprof.terms import schema

# DuckDB's types are quoted in annotations: there they would outlive its library, which reports leaks when a process ends.
ALL = 2**62
"""Rows: more than any table has."""


@dataclass(frozen=True)
class Asked:
    """A table that was not read yet, and is read anew, no more of it than is asked for: a long campaign's would not fit into memory.

    rows: how many it has. names: of its columns. path: its file; None: there is none. failed: runs whose numbers are kept out, for a
    switch that died half-way counts nothing that can be compared.
    """

    path: Path | None
    rows: int
    names: tuple[str, ...]
    layout: pa.Schema
    failed: tuple[str, ...] = ()

    def select(self, columns: Sequence[str] | None = None, *, most: int = ALL, **where: object) -> pd.DataFrame:
        """The rows whose columns equal `where` (a list: any of these); all columns, or some, with a `load` column in any case.

        No more than `most` rows, whichever they are. Raises BadInput where the file's rows can't be read.
        """
        names = list(columns or self.names)
        return self._read(names, where, lambda rows: rows.select(*map(ColumnExpression, names)).limit(most))

    def sums(self, columns: Sequence[str], **where: object) -> pd.DataFrame:
        """The sum of `value` over the same rows for each combination of `columns`: far fewer rows than the table has."""
        asked = [*map(ColumnExpression, columns), FunctionExpression("sum", ColumnExpression("value")).alias("value")]
        return self._read([*columns, "value"], where, lambda rows: rows.aggregate(asked))

    def _read(self, names: list[str], where: Mapping[str, object], asked: "Callable[[DuckDBPyRelation], DuckDBPyRelation]") -> pd.DataFrame:
        if self.path is None:
            return _filled(schema.table([], self.layout).select(names))
        try:
            rows = _connection().read_parquet(glob.escape(str(self.path)), hive_partitioning=False)
            for name, value in where.items():
                rows = rows.filter(_any_of(name, value if isinstance(value, list) else [value]))
            return _filled(asked(rows.filter(~_any_of("run_id", self.failed))).to_arrow_table())
        except duckdb.Error as error:
            raise messages.unreadable_result(self.path, error) from None


def ask(path: Path, layout: pa.Schema, failed: Sequence[str] = (), *, optional: bool = False) -> Asked:
    """The table in `path`, unread. Raises BadInput if it is not there, or lacks a column of schema.KEYS or of `layout`.

    `optional`: one that is not there has no rows. An earlier vsprof wrote none: the same as a result in which nobody counted such things.
    """
    if optional and not path.exists():
        return Asked(None, 0, tuple(schema.table([], layout).column_names), layout)
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
        return Asked(path, found.metadata.num_rows, names, layout, tuple(failed))


def in_one_piece(frame: pd.DataFrame) -> pd.DataFrame:
    """The same frame, each column of words in one piece of memory: rows are taken 20 times slower from one joined of a hundred."""
    return pa.Table.from_pandas(frame, preserve_index=False).combine_chunks().to_pandas()


def check_version(path: Path, seen: object) -> None:
    """Raises BadInput if `path` was written with another schema than this one."""
    if seen != schema.VERSION:
        raise messages.wrong_schema(path, seen, schema.VERSION)


@functools.cache
def _connection() -> "duckdb.DuckDBPyConnection":
    """One for the whole process: to make one takes four times as long as to read a small table."""
    return duckdb.connect()


def _any_of(name: str, values: Sequence[object]) -> "Expression":
    """Whether a column is one of these; it is none of no values."""
    return ColumnExpression(name).isin(*map(ConstantExpression, values)) if values else ConstantExpression(False)


def _filled(table: pa.Table) -> pd.DataFrame:
    frame = table.combine_chunks().to_pandas()
    if "load" not in frame:
        frame["load"] = ""
    # Null keys would fall out of every groupby: give them words.
    words = {key: frame[key].fillna("") for key in ("traffic", "load", "window", "role") if key in frame}
    return frame.assign(**words, **({"cpu": frame["cpu"].fillna(-1).astype(int)} if "cpu" in frame else {}))
