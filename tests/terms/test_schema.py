# SPDX-License-Identifier: GPL-2.0-or-later
"""The one table of every number: what goes in comes out, and nothing half-said goes in."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.terms import schema
from vsprof.terms.schema import FunctionCount, Number

WHERE = {
    "experiment": "vm2vm", "run_id": "r001", "case_id": "c", "repetition": 1, "window": "w1", "testbed": "lab", "switch": "kernel-ovs",
    "access": "vhost-net", "topology": "vm2vm", "traffic": "udp_flood", "frame_bytes": 64, "flows": 1,
}  # fmt: skip

finite = st.floats(allow_nan=False)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.builds(
    Number,
    name=texts,
    value=finite,
    unit=texts,
    role=st.none() | st.sampled_from(schema.ROLES),
    cpu=st.none() | st.integers(0, 1000),
    mode=st.sampled_from(schema.MODES),
    enabled_s=st.none() | finite,
    running_s=st.none() | finite,
    note=texts,
)
functions = st.builds(
    FunctionCount,
    name=texts,
    value=finite,
    unit=texts,
    object=texts,
    function=texts,
    role=st.none() | st.sampled_from(schema.ROLES),
    cpu=st.none() | st.integers(0, 1000),
    mode=st.sampled_from(schema.MODES),
)


def row_of(number: Number, **more: object) -> dict[str, object]:
    return schema.row({**WHERE, **more}, "softirqs", "software", number)


@settings(max_examples=40, deadline=None)
@given(st.lists(numbers, max_size=5))
def test_a_written_table_reads_back_unrounded(tmp_path_factory, measured):
    path = tmp_path_factory.mktemp("table") / "measurements.parquet"
    rows = [row_of(number) for number in measured]
    schema.write(path, rows)
    assert schema.read(path).to_pylist() == rows


@settings(max_examples=40, deadline=None)
@given(st.lists(functions, max_size=5))
def test_what_functions_did_reads_back_unrounded(tmp_path_factory, counted):
    path = tmp_path_factory.mktemp("table") / "functions.parquet"
    rows = [schema.row(WHERE, "perf_record", "hardware", one) for one in counted]
    schema.write(path, rows, schema.FUNCTION)
    assert schema.read(path).to_pylist() == rows
    assert schema.read(path).column_names == [*schema.KEYS.names, *schema.FUNCTION.names]


@pytest.mark.parametrize("wrong", [{"role": "boss"}, {"mode": "kern"}, {"function": 7}, {"object": None}])
def test_a_function_without_words_is_refused(wrong):
    with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
        FunctionCount(**{"name": "n", "value": 1.0, "unit": "events", "object": "kernel", "function": "fdget"} | wrong)


def test_tables_are_joined_with_all_their_varied_values_in_order(tmp_path):
    parts = []
    for place, varied in enumerate(({"zeta": 1}, {}, {"load": "equal"})):
        parts.append(tmp_path / f"{place}.parquet")
        schema.write(parts[-1], [row_of(Number("n", float(place), "events"), **varied)])
    schema.join(tmp_path / "whole.parquet", parts)
    whole = schema.read(tmp_path / "whole.parquet")
    assert whole.column_names == [*schema.KEYS.names, "load", "zeta", *schema.NUMBER.names]
    assert whole.select(["value", "load", "zeta"]).to_pylist() == [
        {"value": 0.0, "load": None, "zeta": "1"},
        {"value": 1.0, "load": None, "zeta": None},
        {"value": 2.0, "load": "equal", "zeta": None},
    ]
    assert whole.schema.metadata[b"vsprof_schema"] == str(schema.VERSION).encode()


@pytest.mark.parametrize("layout", [schema.NUMBER, schema.FUNCTION])
def test_no_tables_joined_are_an_empty_one(tmp_path, layout):
    schema.join(tmp_path / "whole.parquet", [], layout)
    assert schema.read(tmp_path / "whole.parquet").schema.equals(schema.table([], layout).schema, check_metadata=True)


def test_a_table_of_an_earlier_vsprof_lacks_columns_and_is_joined(tmp_path):
    old, new = tmp_path / "old.parquet", tmp_path / "new.parquet"
    for path in (old, new):
        schema.write(path, [row_of(Number("n", 1.0, "events", note="x"))])
    schema.pq.write_table(schema.read(old).drop_columns(["note"]), old)
    schema.join(tmp_path / "whole.parquet", [old, new])
    assert schema.read(tmp_path / "whole.parquet")["note"].to_pylist() == [None, "x"]


def test_the_columns_are_keys_then_varied_then_number():
    table = schema.table([row_of(Number("n", 1.0, "events"), zeta=1, load="equal")])
    assert table.column_names == [*schema.KEYS.names, "load", "zeta", *schema.NUMBER.names]
    assert table["zeta"].to_pylist() == ["1"]


def test_a_varied_value_that_a_row_lacks_is_null_and_not_the_word_none():
    table = schema.table([row_of(Number("n", 1.0, "events"), load="equal"), row_of(Number("n", 1.0, "events"))])
    assert table["load"].to_pylist() == ["equal", None]


def test_a_table_carries_its_version(tmp_path):
    schema.write(tmp_path / "t.parquet", [])
    assert schema.read(tmp_path / "t.parquet").schema.metadata[b"vsprof_schema"] == str(schema.VERSION).encode()


def test_zero_and_empty_stay_apart(tmp_path):
    schema.write(tmp_path / "t.parquet", [row_of(Number("a", 0.0, "events")), row_of(Number("b", None, "events", note="no such event"))])
    assert schema.read(tmp_path / "t.parquet")["value"].to_pylist() == [0.0, None]


def test_an_empty_value_needs_a_note():
    with pytest.raises(ValueError, match=r"misses: .*note"):
        Number("misses", None, "events")


@pytest.mark.parametrize("wrong", [{"role": "boss"}, {"mode": "kern"}])
def test_an_unknown_word_is_refused_by_name(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong.values()))):
        Number("n", 1.0, "events", **wrong)


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="rumour"):
        schema.row(WHERE, "softirqs", "rumour", Number("n", 1.0, "events"))


def test_a_number_of_the_whole_flood_keeps_its_own_window():
    assert row_of(Number("n", 1.0, "packets", window="flood"))["window"] == "flood"
    assert row_of(Number("n", 1.0, "packets"))["window"] == "w1"


@pytest.mark.parametrize("step", ["write", "replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "measurements.parquet"
    schema.write(path, [row_of(Number("old", 1.0, "events"))])

    def fails(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((schema.pq, "write_table") if step == "write" else (os, "replace")), fails)
    with pytest.raises(OSError, match="No space"):
        schema.write(path, [row_of(Number("new", 2.0, "events"))])
    assert schema.read(path)["name"].to_pylist() == ["old"]


@given(st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True), st.integers(1, 1000))
def test_an_own_window_is_known_by_its_name(collector, number):
    assert schema.window_owner(schema.own_window(collector, number)) == collector


@pytest.mark.parametrize("window", ["", "w1", "w12", "flood", "uarch_model", "uarch_model-", "-1", "uarch_model-1-", "uarch_model-x"])
def test_any_other_window_has_no_owner(window):
    assert schema.window_owner(window) is None


def test_one_place_converts_a_frames_size():
    """64 bytes with FCS are 60 without; nobody else takes the FCS off, or puts it on again."""
    assert schema.without_fcs(64) == 60
    root = Path(__file__).parents[2]
    using = [path.relative_to(root) for path in root.glob("[a-z]*/**/*.py") if re.search(r"[-+] *FCS_BYTES", path.read_text())]
    assert [path for path in using if path.parts[0] not in ("build", "tests")] == [Path("terms/schema.py")]
