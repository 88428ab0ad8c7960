# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said and drawn of predicted times, SYNTHETIC ones and those that are kept."""

from pathlib import Path

import pytest

from vsprof.analysis import explain_validation as explain
from vsprof.analysis import figures, validation
from vsprof.analysis.figures import __main__ as draw
from vsprof.terms.errors import BadInput

KEPT = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.fixture(scope="module")
def found(time_sample):
    return time_sample.document()


def test_what_was_written_is_read_again(found, tmp_path):
    assert found.write(tmp_path) == tmp_path / "validation-time.json"
    assert validation.load_time(tmp_path) == found


def test_a_missing_one_names_what_makes_it(tmp_path):
    with pytest.raises(BadInput, match=r"`make validate-time` writes build/bench/validation-time\.json"):
        validation.load_time(tmp_path)
    (tmp_path / "validation-time.json").write_text("{}")
    with pytest.raises(BadInput, match=r"`make validate-time` writes it again"):
        validation.load_time(tmp_path)


def test_the_answer_counts_what_is_close_by_part(found):
    said = explain.of(found).answer()
    assert "2 of 3 microbenchmarks are within 15 % of this machine's time; the largest error is -50.0 %" in said
    assert "1 of 2 switches are within 25 %" in said
    assert "The order of switches is right." in said
    assert "This machine's processor (SYNTHETIC processor) has the CPU profile synthetic-1." in said


def test_a_wrong_order_is_named(time_sample):
    swapped = [time_sample.row("switches", "testpmd_io", 60.0, 130.0), time_sample.row("switches", "ovs_dpdk", 100.0, 66.0)]
    found = time_sample.document(rows=swapped)
    assert [(one.item, other.item) for one, other in explain.of(found).wrong_pairs()] == [("testpmd_io", "ovs_dpdk")]
    assert "The order of switches is wrong: natively testpmd io takes less time than OVS-DPDK." in explain.of(found).answer()


def test_an_order_that_is_in_doubt_natively_is_never_wrong(time_sample):
    alike = [time_sample.row("switches", "testpmd_io", 99.0, 130.0), time_sample.row("switches", "ovs_dpdk", 100.0, 66.0)]
    assert explain.of(time_sample.document(rows=alike)).wrong_pairs() == []


def test_another_processor_is_said_in_answer_and_limits(time_sample):
    found = time_sample.document(why_other="no SYNTHETIC profile")
    for said in (explain.of(found).answer(), explain.of(found).limits()):
        assert "The errors are not about this processor: no SYNTHETIC profile." in said


def test_cycles_are_by_the_frequency_of_the_additions(found, time_sample):
    cells = explain.of(found).table("microbenchmarks").frame.iloc[1]
    assert (cells["cycles"], cells["model's cycles"], cells["within 15 %"]) == ("4.000", "2.000", "no")
    without = time_sample.document(native=found.native.model_copy(update={"frequency_hz": None}))
    assert explain.of(without).table("microbenchmarks").frame.iloc[1]["cycles"] == "–"


def test_limits_name_what_differed(found, time_sample):
    said = explain.of(found).limits()
    assert "Kernels differ: 1.0-SYNTHETIC natively, 2.0-SYNTHETIC in the lab" in said
    assert "ovs_dpdk: SYNTHETIC reason" in said
    assert "busy" not in said
    busy = time_sample.document(native=found.native.model_copy(update={"load": 7.0}))
    assert "This machine was busy (load 7.0)" in explain.of(busy).limits()


def test_nothing_compared_is_no_answer(time_sample):
    found = time_sample.document(rows=[], notes=[], parts=["switches"])
    said = explain.of(found).answer()
    assert "That is not known" in said
    assert "the part `microbenchmarks` was not run (`make validate-time` runs all parts)" in said
    assert "ended without a number" in explain.of(found).table("switches")
    assert isinstance(explain.of(found).show("validation_times"), figures.NotShown)


def test_the_figure_has_both_parts_and_says_by_whose_clocks(found, tmp_path):
    shown = explain.of(found).show("validation_times")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "this machine's clock (SYNTHETIC processor), testbed native" in shown.caption
    assert [text.get_text() for text in shown.figure.legends[0].get_texts()] == ["model", "natively"]
    found.write(tmp_path)
    assert draw.main(["validation_times", str(tmp_path), str(tmp_path / "x.png")]) == 0


def test_the_kept_one_is_of_a_real_machine():
    found = validation.load_time(KEPT)
    assert "SYNTHETIC" not in found.model_dump_json()
    assert set(found.parts) == set(validation.TIME_PARTS)
    assert {row.item for row in found.of("switches")} >= {"ovs_dpdk", "testpmd_io", "vhost_switch"}
