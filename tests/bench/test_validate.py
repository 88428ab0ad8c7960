# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of ``make validate-model``: their names, and errors as fractions."""

from __future__ import annotations

import pytest

from bench import microbenchmarks, validate
from collectors.uarch_model import profiles

PROFILE = profiles.load(profiles.DEFAULT)
MODELLED = [{"packets": 1e4, "instructions": 1100.0, "llc_misses": 0.0}] * 3
NATIVE = [{"packets": 5e6, "instructions": 1000.0, "llc_misses": 0.001}] * 3


def test_against_hardware_rows_are_errors(capsys):
    rows = validate._switch_rows("kernel_ovs", MODELLED, NATIVE, compared=True)
    assert list(rows) == ["kernel_ovs_native_packets", "kernel_ovs_instructions_error", "kernel_ovs_llc_misses_error"]
    estimate, unit = rows["kernel_ovs_instructions_error"]
    assert (unit, estimate.median) == ("fraction", pytest.approx(0.1))
    # Of what hardly happens, no fraction.
    estimate, unit = rows["kernel_ovs_llc_misses_error"]
    assert (unit, estimate.median) == ("events", pytest.approx(-0.001))
    assert "+10.0 %" in capsys.readouterr().out


def test_without_hardware_rows_are_the_model_and_no_error(capsys):
    rows = validate._switch_rows("kernel_ovs", MODELLED, [{"packets": 5e6}] * 3, compared=False)
    assert list(rows) == ["kernel_ovs_native_packets", "kernel_ovs_instructions_modelled", "kernel_ovs_llc_misses_modelled"]
    assert "5e+06 natively" in capsys.readouterr().out


def test_what_did_not_run_natively_is_said(capsys):
    rows = validate._switch_rows("kernel_ovs", MODELLED, [], compared=False)
    assert "kernel_ovs_native_packets" not in rows
    assert "not run natively" in capsys.readouterr().out


def test_a_metric_that_the_processor_does_not_count_has_no_row():
    rows = validate._switch_rows("kernel_ovs", MODELLED, [{"packets": 5e6}] * 3, compared=True)
    assert list(rows) == ["kernel_ovs_native_packets"]


def test_microbenchmarks_are_held_against_what_must_happen(monkeypatch, capsys):
    items = microbenchmarks.items(PROFILE)
    modelled = {item.name: dict.fromkeys(microbenchmarks.MEASURED, 1.0) for item in items}
    monkeypatch.setattr(microbenchmarks, "model", lambda profile, say: modelled)
    rows = validate._microbenchmarks(PROFILE, "no PMU", print)
    assert rows["chase_memory_llc_misses_error"][0].median == 0
    assert rows["branch_random_branch_misses_error"][0].median == 1
    assert rows["chase_l1_l1d_misses_error"][1] == "events"
    assert "must be" in capsys.readouterr().out


def test_hugepages_are_those_of_the_largest_item():
    wanted = {item.name: item.hugepages for item in microbenchmarks.items(PROFILE)}
    assert wanted["hugepages_stlb"] == 4 * 32
    assert wanted["chase_memory"] == 70
    assert wanted["syscalls"] == 0
