# SPDX-License-Identifier: GPL-2.0-or-later
"""A table that is asked for some of its rows and columns gives these, and no other."""

from pathlib import Path

import pytest

from vsprof.analysis import tables
from vsprof.terms import schema
from vsprof.terms.errors import BadInput

ROWS = [
    {"run_id": run, "case_id": "c1", "role": role, "function": name, "name": counted, "value": value}
    for run, role, name, counted, value in (
        ("r001", "switch", "it's", "instructions", 1.0),
        ("r001", "guest", "memcpy", "instructions", 2.0),
        ("r002", "switch", "memcpy", "l1d_misses", 3.0),
        ("r003", "vhost", "%_[x]", "instructions", 4.0),
    )
]


@pytest.fixture
def path(tmp_path) -> Path:
    # A name that would be a pattern, were it not quoted, and one that would be a column.
    path = tmp_path / "a [b]*?" / "role=guest" / "functions.parquet"
    path.parent.mkdir(parents=True)
    schema.write(path, ROWS, schema.FUNCTION)
    return path


@pytest.fixture
def asked(path) -> tables.Asked:
    return tables.ask(path, schema.FUNCTION)


@pytest.fixture
def none(tmp_path) -> tables.Asked:
    return tables.ask(tmp_path / "functions.parquet", schema.FUNCTION, optional=True)


@pytest.mark.parametrize(
    ("failed", "where", "left"),
    [
        ([], {}, [1.0, 2.0, 3.0, 4.0]),
        ([], {"role": "switch"}, [1.0, 3.0]),
        ([], {"role": ["switch", "vhost"], "name": "instructions"}, [1.0, 4.0]),
        (["r001"], {}, [3.0, 4.0]),
        (["r001", "r003"], {"role": "vhost"}, []),
        ([], {"function": ["it's", "%_[x]"]}, [1.0, 4.0]),
        ([], {"function": "%"}, []),
        ([], {"role": []}, []),
    ],
)
def test_rows_are_those_asked_for(path, failed, where, left):
    found = tables.ask(path, schema.FUNCTION, failed).select(["run_id", "value"], **where)
    assert list(found.columns) == ["run_id", "value", "load"]
    assert found["value"].to_list() == left


def test_without_columns_all_come(asked):
    assert tuple(asked.select().columns) == (*asked.names, "load")
    assert asked.rows == len(ROWS)


def test_in_none_nothing_is_found(none):
    assert (none.rows, len(none.select(["role"], role="switch"))) == (0, 0)
    assert tuple(none.select().columns) == (*none.names, "load")


def test_no_more_rows_than_are_wanted(asked):
    assert len(asked.select(["value"], most=2)) == 2


def test_rows_that_are_broken_are_told_with_their_file(asked):
    """What `ask` reads, the end of the file, is whole."""
    whole = asked.path.read_bytes()
    asked.path.write_bytes(whole[:4] + bytes(len(whole) // 4) + whole[4 + len(whole) // 4 :])
    with pytest.raises(BadInput, match=r"functions\.parquet"):
        asked.select()


def test_sums_of_what_is_asked_for(path, asked, none):
    found = tables.ask(path, schema.FUNCTION, ["r003"]).sums(["role"])
    assert sorted(zip(found["role"], found["value"], strict=True)) == [("guest", 2.0), ("switch", 4.0)]
    assert asked.sums(["role"], name="nothing").empty
    assert list(none.sums(["role", "name"]).columns) == ["role", "name", "value", "load"]


def test_no_annotation_keeps_a_type_of_duckdb():
    """It would outlive DuckDB's library, which then reports leaks when the process ends."""
    functions = [*vars(tables).values(), *vars(tables.Asked).values()]
    kept = [kind for one in functions for kind in getattr(one, "__annotations__", {}).values() if not isinstance(kind, str)]
    assert kept
    assert not [kind for kind in kept if "duckdb" in repr(kind)]
