# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of ``make validate-time``, the names that scripts look for, and the files. Measuring itself is put in with SYNTHETIC numbers."""

import json
from datetime import UTC, datetime

import pytest

from vsprof.analysis import validation
from vsprof.bench import micro_guest, micro_times, table, validate_time
from vsprof.bench.micro_times import Took
from vsprof.collectors.uarch_model import profiles
from vsprof.terms.errors import RunFailed


@pytest.fixture
def synthetic(monkeypatch, tmp_path):
    """SYNTHETIC: natively each item takes 2 ns at least, in the lab 3; the additions say 4 GHz."""

    def natively(wanted, rounds, say):
        found = {item.name: [Took([9.0, 2.0, 5.0], "a")] * rounds for item in wanted}
        return found | {"adds": [Took([0.25], "a")] * rounds, "chase_memory": []}, {"chase_memory": "no SYNTHETIC hugepages"}

    def modelled(wanted, profile, quantum_us, rounds, say):
        return {item.name: [Took([3.0, 3.0, 7.0], "a")] * rounds for item in wanted}, "2.0-SYNTHETIC"

    monkeypatch.setattr(table, "FOLDER", tmp_path)
    monkeypatch.setattr(micro_times, "natively", natively)
    monkeypatch.setattr(micro_times, "modelled", modelled)
    monkeypatch.setattr(micro_guest, "needed", lambda: False)
    monkeypatch.setattr(profiles, "for_host", lambda cpuinfo: "zen4")
    return tmp_path


def test_a_run_prints_its_table_and_writes_all_files(synthetic, capsys):
    assert validate_time.main(["--part", "microbenchmarks"]) == 0
    said = capsys.readouterr().out
    assert "has the CPU profile zen4" in said
    assert "does not run natively: no SYNTHETIC hugepages" in said
    assert said.split()[-3:] == [str(synthetic / name) for name in ("validate-time.json", "validation-time.json", "validate-time.html")]
    kept = {row["name"]: row for row in json.loads((synthetic / "validate-time.json").read_text())}
    assert kept["chase_l1_time_error"]["value"] == pytest.approx(0.5)
    assert kept["chase_l1_time_error"]["unit"] == "fraction"
    assert (kept["chase_l1_time_native"]["value"], kept["chase_l1_time_modelled"]["value"]) == (2.0, 3.0)
    assert "chase_memory_time_error" not in kept
    found = validation.load_time(synthetic)
    assert (found.native.frequency_hz, found.lab.kernel, found.why_other) == (4e9, "2.0-SYNTHETIC", None)
    assert "4.000 GHz natively; the profile has 3.694 GHz" in "".join(note.text for note in found.notes)


def test_a_virtual_machine_is_set_against_a_guest(synthetic, monkeypatch):
    def in_a_guest(wanted, exit_ns, profile, quantum_us, rounds, say):
        return {item.name: [Took([7.0], "a")] for item in wanted}, 13000

    monkeypatch.setattr(micro_guest, "needed", lambda: True)
    monkeypatch.setattr(micro_guest, "natively", lambda say: 3700.0)
    monkeypatch.setattr(micro_guest, "modelled", in_a_guest)
    assert validate_time.main(["--part", "microbenchmarks"]) == 0
    rows = {row.item: row for row in validation.load_time(synthetic).rows}
    assert {name for name, row in rows.items() if row.modelled.median == 7.0} == {"pages_walk", "futex_other_cpu", "wake_up"}
    note = next(note.text for note in validation.load_time(synthetic).notes if note.item == "this machine")
    assert "An exit takes 3,700 ns here" in note
    assert "cost.vm_entry is 13,000 cycles" in note


def test_where_no_guest_can_run_them_that_is_said(synthetic, monkeypatch):
    def no_guest(*arguments):
        raise RunFailed("SYNTHETIC: no guest")

    monkeypatch.setattr(micro_guest, "needed", lambda: True)
    monkeypatch.setattr(micro_guest, "natively", lambda say: 3700.0)
    monkeypatch.setattr(micro_guest, "modelled", no_guest)
    assert validate_time.main(["--part", "microbenchmarks"]) == 0
    assert any("SYNTHETIC: no guest" in note.text for note in validation.load_time(synthetic).notes)


def test_a_host_without_a_profile_is_said_first(synthetic, monkeypatch, capsys):
    monkeypatch.setattr(profiles, "for_host", lambda cpuinfo: None)
    assert validate_time.main(["--part", "microbenchmarks"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("The errors are not about this processor: no CPU profile describes this machine's processor")
    assert validation.load_time(synthetic).profile == profiles.DEFAULT


def test_another_profile_than_the_hosts_is_said(synthetic, capsys):
    assert validate_time.main(["--part", "microbenchmarks", "--cpu-profile", "zen5"]) == 0
    assert "The errors are not about this processor: zen5 was asked for" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--cpu-profile", "nothing"], ["--quantum-us", "0"]])
def test_bad_input_ends_before_anything_runs(synthetic, arguments, capsys):
    assert validate_time.main(arguments) == 2
    assert capsys.readouterr().err.startswith("validate-time: ")


@pytest.fixture
def time_sample_document():
    """SYNTHETIC: nothing found yet."""
    side = validation.Side(frequency_hz=None, kernel="SYNTHETIC", load=None)
    return validation.TimeValidation(profile="zen4", processor="SYNTHETIC", cpu_model="SYNTHETIC", why_other=None, quantum_s=1e-6,
                                     native=side, lab=side, when=datetime(2026, 1, 1, tzinfo=UTC), parts=[])  # fmt: skip


def test_what_did_not_run_natively_has_no_error():
    row = validate_time.row("switches", "ovs_dpdk", [], [100.0, 101.0])
    assert (row.reference, row.error, row.unit) == (None, None, "ns/packet")


def test_a_line_counts_while_both_cpus_have_a_cache_in_common(time_sample_document):
    profile = profiles.load("zen4")
    assert validate_time._near(micro_times.LINE_ITEM, [140.0, 25.0, 26.0], profile, time_sample_document) == [25.0, 26.0]
    assert time_sample_document.notes == []
    assert validate_time._near(micro_times.LINE_ITEM, [140.0, 141.0], profile, time_sample_document) == [140.0, 141.0]
    assert "no cache in common" in time_sample_document.notes[0].text
    other = micro_times.items(profile)[0]
    assert validate_time._near(other, [140.0, 25.0], profile, time_sample_document) == [140.0, 25.0]
