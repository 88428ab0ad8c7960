# SPDX-License-Identifier: GPL-2.0-or-later
"""What a collector that analysis never heard of counts is in the report, with its unit and an interval."""

import pytest

from tests.analysis import sample
from vsprof.analysis import describe, everything
from vsprof.analysis.load import load
from vsprof.terms import schema
from vsprof.terms.schema import Number


@pytest.fixture
def result(tmp_path):
    """The synthetic result, to whose windows a collector of one's own has added a count, a gauge and one that never happened."""
    path = sample.write(tmp_path / "r")
    rows = schema.read(path / "measurements.parquet").to_pylist()
    seen = {}
    for row in rows:
        if row["collector"] == row["traffic"] and row["window"].startswith("w"):
            seen.setdefault((row["run_id"], row["traffic"], row["load"], row["window"]), row)
    for row in seen.values():
        for number in (Number("sneezes", 6.0, "events", cpu=1), Number("sneezes", 2.0, "events", cpu=2), Number("mood", 0.25, "fraction"),
                       Number("accidents", 0.0, "events"), Number("weight", 12.0, "stone"), Number("halves", 1.0, "events", cpu=1),
                       Number("halves", None, "events", cpu=2, note="not counted there")):  # fmt: skip
            where = {key: row[key] for key in (*schema.KEYS.names, "load")}
            rows.append(schema.row({**where, "window": row["window"]}, "own_doctor", "software", number))
    schema.write(path / "measurements.parquet", rows)
    return load(path)


def test_a_count_is_told_per_unit_of_data_over_all_cpus(result):
    found = everything.summary(result)
    one = found[(found["collector"] == "own_doctor") & (found["number"] == "sneezes_per_packet") & (found["load"] == "saturation")]
    received = sample.RECEIVED["vhost-net"] * sample.SECONDS
    of_kernel = one[one["switch"] == "kernel-ovs"].iloc[0]
    assert of_kernel["median"] == pytest.approx(8.0 / received, rel=0.15)
    assert of_kernel["low"] <= of_kernel["median"] <= of_kernel["high"]
    assert of_kernel["unit"] == "events"


def test_a_count_of_which_a_part_is_missing_has_no_sum(result):
    found = everything.summary(result)
    assert not found["number"].str.startswith("halves").any()


def test_anything_else_is_told_as_it_was_written(result):
    found = everything.summary(result)
    mood = found[(found["collector"] == "own_doctor") & (found["number"] == "mood")]
    assert set(mood["median"]) == {0.25}
    assert set(mood["unit"]) == {"fraction"}


def test_nothing_that_was_counted_is_left_out(result):
    shown = everything.show(result)
    text = shown._repr_html_()
    for collector, name in result.frame[["collector", "name"]].drop_duplicates().itertuples(index=False):
        if name not in (*everything.NOT_SHOWN, "halves"):
            assert name in text, f"{collector}: {name}"
    assert "<summary>own_doctor (" in text
    assert shown.never["own_doctor"] == ["accidents"]
    assert "25.0 %" in text


def test_a_unit_that_nobody_knows_is_among_the_limits(result):
    [told] = [text for text in describe.all_limits(result) if "no unit that vsprof knows" in text]
    assert told.startswith("own_doctor has weight in 'stone', which is no unit")
