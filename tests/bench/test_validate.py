# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of ``make validate-model``, the names that scripts look for, and the files. Measuring itself is put in with SYNTHETIC numbers."""

import json
from datetime import UTC, datetime

import pytest

from vsprof.analysis import validation
from vsprof.analysis.stats import Estimate
from vsprof.analysis.validation import Validation
from vsprof.bench import messages as bench_messages
from vsprof.bench import microbenchmarks, perf, repeat, table, validate
from vsprof.collectors.uarch_model import profiles

PROFILE = profiles.load(profiles.DEFAULT)
MODELLED = [{"packets": 1e4, "instructions": value, "llc_misses": 0.0} for value in (1100.0, 1090.0, 1110.0)]
NATIVE = [{"packets": 5e6, "instructions": value, "llc_misses": 0.001} for value in (1000.0, 990.0, 1010.0)]


def document(why: str | None, rows: list[validation.Row] | None = None) -> Validation:
    return Validation(profile=PROFILE.id, processor=PROFILE.name, why_no_hardware=why, cpu_model="SYNTHETIC",
                      when=datetime(2026, 1, 1, tzinfo=UTC), parts=list(validate.PARTS), rows=rows or [])  # fmt: skip


def test_against_hardware_rows_are_errors():
    rows = validate._switch_rows("kernel_ovs", MODELLED, NATIVE)
    found = validate.named(document(None, rows))
    assert list(found) == ["kernel_ovs_native_packets", "kernel_ovs_instructions_error", "kernel_ovs_llc_misses_error"]
    estimate, unit = found["kernel_ovs_instructions_error"]
    assert (unit, estimate.median) == ("fraction", pytest.approx(0.1))
    assert 0.07 < estimate.low < 0.1 < estimate.high < 0.13
    # Of what hardly happens, no fraction.
    estimate, unit = found["kernel_ovs_llc_misses_error"]
    assert (unit, estimate.median) == ("events", pytest.approx(-0.001))
    by_event = {row.event: row for row in rows}
    assert (by_event["instructions"].reference.median, by_event["instructions"].modelled.median) == (1000, 1100)
    assert by_event["instructions"].reference.low < 1000 < by_event["instructions"].reference.high
    assert (by_event["packets"].error, by_event["packets"].unit) == (None, "packets per second")


def test_one_window_has_no_interval():
    row = validate._switch_rows("kernel_ovs", MODELLED[:1], NATIVE[:1])[1]
    assert (row.error.low, row.error.high, row.error.n) == (None, None, 1)


def test_without_hardware_rows_are_the_model_and_no_error():
    rows = validate._switch_rows("kernel_ovs", MODELLED, [{"packets": 5e6}] * 3)
    found = validate.named(document("no PMU", rows))
    assert list(found) == ["kernel_ovs_native_packets", "kernel_ovs_instructions_modelled", "kernel_ovs_llc_misses_modelled"]
    assert found["kernel_ovs_native_packets"][1] == "packets per second"
    assert found["kernel_ovs_instructions_modelled"][1] == "events/packet"
    assert [row.reference is None for row in rows] == [False, True, True]


def test_what_did_not_run_natively_has_no_rate():
    rows = validate._switch_rows("kernel_ovs", MODELLED, [])
    assert "kernel_ovs_native_packets" not in validate.named(document("no PMU", rows))
    assert rows[0].reference is None


def test_a_metric_that_the_processor_does_not_count_has_no_error():
    rows = validate._switch_rows("kernel_ovs", MODELLED, [{"packets": 5e6}] * 3)
    assert list(validate.named(document(None, rows))) == ["kernel_ovs_native_packets"]
    assert [row.event for row in rows if row.of_processor] == ["instructions", "llc_misses"]


def test_a_model_that_says_zero_is_wrong_by_all_of_it():
    [row] = validate._switch_rows("ovs_dpdk", [{"l2_misses": 0.0}] * 3, [{"l2_misses": 0.5}] * 3)
    assert (row.error, row.error_unit) == (Estimate(-1.0, None, None, 3), "fraction")


@pytest.fixture
def all_ones(monkeypatch):
    """SYNTHETIC: the model counts one of each event in each iteration."""
    modelled = {item.name: dict.fromkeys(microbenchmarks.MEASURED, 1.0) for item in microbenchmarks.items(PROFILE)}
    monkeypatch.setattr(microbenchmarks, "model", lambda profile, say: modelled)


def test_microbenchmarks_are_held_against_what_must_happen(all_ones):
    found = document("no PMU")
    validate._microbenchmarks(PROFILE, found, print)
    rows = validate.named(found)
    assert rows["chase_memory_llc_misses_error"][0].median == 0
    assert rows["branch_random_branch_misses_error"][0].median == 1
    assert rows["chase_l1_l1d_misses_error"][1] == "events"
    chase = next(row for row in found.rows if (row.item, row.event) == ("chase_l2", "cycles"))
    # What must happen was counted not even once.
    assert (chase.reference, chase.modelled.median) == (Estimate(12.0, None, None, 0), 1.0)


def test_microbenchmarks_are_held_against_a_processor(all_ones, monkeypatch):
    counted = {item.name: {"cycles": 4.0, "llc_misses": -1e-6} for item in microbenchmarks.items(PROFILE)}
    counted["chase_memory"] = {}
    monkeypatch.setattr(validate, "_hardware", lambda profile, hugepages, say: counted)
    found = document(None)
    validate._microbenchmarks(PROFILE, found, print)
    rows = validate.named(found)
    assert rows["chase_l2_cycles_error"] == (Estimate(-0.75, None, None, 1), "fraction")
    assert rows["chase_l2_llc_misses_error"][1] == "events"
    assert not any(name.startswith("chase_memory") for name in rows)
    assert [(note.item, "no event of it was counted" in note.text) for note in found.notes] == [("chase_memory", True)]


def test_of_the_same_work_twice_the_difference_is_kept(monkeypatch):
    runs = [repeat.Run({**dict.fromkeys(repeat.COUNTERS, 7.0), "llc_misses": misses}, 0) for misses in (7.0, 9.0)]
    monkeypatch.setattr(repeat, "measure", lambda profile, say: {"chase_llc": tuple(runs)})
    found = document("no PMU")
    validate._repeat(PROFILE, found, print)
    assert validate.named(found)["repeat_chase_llc_llc_misses_difference"] == (Estimate(2.0, None, None, 1), "events")
    assert [note.item for note in found.notes] == ["chase_llc"]


def test_a_run_prints_its_tables_and_writes_all_files(all_ones, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(table, "FOLDER", tmp_path)
    monkeypatch.setattr(perf, "missing", lambda: "there is no SYNTHETIC PMU")
    assert validate.main(["--part", "microbenchmarks", "--part", "microbenchmarks", "--cpu-profile", profiles.DEFAULT]) == 0
    said = capsys.readouterr().out
    assert "must be" in said
    assert "+100.0 %" in said
    # Where the files are is said last.
    assert said.split()[-3:] == [str(tmp_path / name) for name in ("validate-model.json", "validation.json", "validate-model.html")]
    kept = json.loads((tmp_path / "validate-model.json").read_text())
    assert {tuple(row) for row in kept} == {("name", "value", "low", "high", "unit")}
    found = validation.load(tmp_path)
    assert (found.parts, len(found.rows)) == (["microbenchmarks"], len(kept))
    assert "not with a processor, for there is no SYNTHETIC PMU" in (tmp_path / "validate-model.html").read_text()


def test_a_switch_that_can_not_run_is_a_note(monkeypatch):
    def refused(*_):
        raise bench_messages.too_few_hugepages(0, 340)

    monkeypatch.setattr(validate.native, "unavailable", lambda: "")
    monkeypatch.setattr(validate.switches, "natively", refused)
    found = document("no PMU")
    assert validate._natively(validate.switches.SWITCHES[0], None, {}, {}, found, print) == []
    [note] = found.notes
    assert note.text.startswith("does not run natively: got 0 hugepages of 2 MiB, need 340")


def test_hugepages_are_those_of_the_largest_item():
    wanted = {item.name: item.hugepages for item in microbenchmarks.items(PROFILE)}
    assert wanted["hugepages_stlb"] == 4 * 32
    assert wanted["chase_memory"] == 70
    assert wanted["syscalls"] == 0
