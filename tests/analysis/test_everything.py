# SPDX-License-Identifier: GPL-2.0-or-later
"""What a collector that analysis never heard of counts is in the report, with its unit and an interval."""

import pytest

from tests.analysis import pmu_sample, sample
from vsprof.analysis import compare, describe, everything, figures, vocabulary
from vsprof.analysis.load import load
from vsprof.analysis.sources import SOURCES
from vsprof.terms import schema
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import CollectorWords, NumberWords


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


STALLS = {"expression": "l1 * 2 / packets", "unit": "cycles/packet", "factor": 1, "description": ""}
"""A metric of one's own, out of an event file."""


@pytest.fixture
def counted(result):
    """The same, with a PMU's counts, and a metric of one's own, that asks to be drawn."""
    path = pmu_sample.add(result.path, {"metrics": {**pmu_sample.FACTS["metrics"], "stalls_per_packet": STALLS}})
    return load(path)


@pytest.mark.long
def test_a_metric_of_ones_own_is_told(counted):
    found = everything.summary(counted)
    own = found[found["number"].isin(["stalls_per_packet", "stalls_per_megabit"]) & (found["load"] == "saturation")]
    assert set(own["traffic"]) == {"udp_flood", "tcp_stream"}
    assert set(own["unit"]) == {"cycles/packet", "cycles/megabit"}
    assert set(own["role"]) == {"path"}
    # Three CPUs of the path, two modes; a poll-mode thread has polls, too.
    kernels = own.loc[own["switch"] == "kernel-ovs", "median"]
    assert kernels.to_list() == pytest.approx([3 * 2 * 2 * pmu_sample.PER_DATA["l1"]] * 2)
    assert "stalls_per_packet" in everything.show(counted)._repr_html_()


@pytest.mark.long
def test_what_has_two_values_by_one_name_is_told_once(counted):
    """`ins` is an event; `cycles_per_packet` is a metric, and would be an event `cycles`, too."""
    found = everything.summary(counted)
    names = ["case_id", "collector", "source", "traffic", "load", "number", "role", "cpu"]
    assert not found.duplicated(names).any()


@pytest.mark.long
def test_a_metric_of_ones_own_is_drawn(counted, monkeypatch):
    asked = {"perf_stat": CollectorWords("processor events", {"stalls_per_packet": NumberWords("stalls", "less", "counts")})}
    monkeypatch.setattr(vocabulary, "_collectors", asked)
    vocabulary.number.cache_clear()
    shown = figures.show(counted, "counts")
    assert set(shown.table["metric"]) == {"stalls_per_packet", "stalls_per_megabit", "stalls_per_reply"}
    assert set(shown.table["unit"]) == {"cycles/packet", "cycles/megabit", "cycles/reply"}
    assert vocabulary.number("stalls_per_megabit", ("perf_stat",)).better == "less"
    vocabulary.number.cache_clear()


@pytest.mark.long
def test_compare_and_the_report_have_the_same_rows(counted):
    [one] = compare.of_cases(counted, "kernel-ovs", "ovs-dpdk")
    bare = [name.removeprefix(SOURCES[source].prefix) for source, name in one.table[["source", "metric"]].itertuples(index=False)]
    compared = set(zip(one.table["source"], one.table["traffic"], one.table["load"], bare, one.table["role"], strict=True))
    told = everything.summary(counted)
    told = told[(told["cpu"] == -1) & ~told["number"].isin(compare.FORTH)]
    of_case = [
        set(rows[["source", "traffic", "load", "number", "role"]].itertuples(index=False, name=None)) for _, rows in told.groupby("case_id")
    ]
    shared = set.intersection(*of_case)
    assert len(shared) > 100
    assert shared <= compared
    # What compare has beyond the report's last section is what analysis makes of counts.
    made = {
        (source.name, name.removeprefix(source.prefix)) for source in SOURCES.values() for name in source.of(counted)["metric"].unique()
    }
    assert {(source, name) for source, _, _, name, _ in compared - shared} <= made
