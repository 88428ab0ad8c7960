# SPDX-License-Identifier: GPL-2.0-or-later
"""A result whose cases ran on different modelled processors, by SYNTHETIC numbers."""

import json

import pytest

from vsprof.analysis import describe, explain, figures, show
from vsprof.analysis.load import load
from vsprof.analysis.sources import MODEL

FLOOD = ("udp_flood", "saturation")
CLOCKS = {"zen4": {"cpu_name": "Zen 4", "frequency_hz": 3.7e9}, "zen5": {"cpu_name": "Zen 5", "frequency_hz": 4e9}}


@pytest.fixture
def two(sample, tmp_path):
    path = sample.write(tmp_path, traffics=[FLOOD], options={"cpu.profile": tuple(CLOCKS)}, own="uarch_model")
    manifest = json.loads((path / "manifest.json").read_text())
    cpus = {case["case_id"]: case["values"]["cpu.profile"] for case in manifest["cases"]}
    for run in manifest["runs"]:
        run["clock"] = CLOCKS[cpus[run["case_id"]]]
    (path / "manifest.json").write_text(json.dumps(manifest))
    return load(path)


def test_each_case_has_its_own_clock(two):
    assert {two.values[case]["cpu.profile"]: two.clock(case)["frequency_hz"] for case in two.values} == {"zen4": 3.7e9, "zen5": 4e9}
    assert two.modelled == "Zen 4, Zen 5"


def test_an_answer_names_the_processor_that_it_is_of(two):
    said = explain.answer(two)
    assert "On Zen 4 as modelled" in said
    assert "On Zen 5 as modelled" in said


def test_an_answer_on_one_case_against_the_other_names_the_processors_of_both(two):
    assert "On Zen 5 and on Zen 4 as modelled, cpu.profile=zen5 delivers" in explain.answer(two)


def test_what_stands_beside_the_models_numbers_names_all_processors(two):
    assert MODEL.label(two) == "estimated (model: Zen 4, Zen 5)"
    assert "(model: Zen 4, Zen 5)" in figures.show(two, "cpi_stack").caption
    assert any("are estimated (model: Zen 4, Zen 5)" in limit for limit in describe.all_limits(two))
    assert show.summary(two)["model"] == "Zen 4, Zen 5"


def test_a_report_shows_no_single_processor(two):
    assert "Zen 4, Zen 5" in str(describe.modelled_processor(two))
