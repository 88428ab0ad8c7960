# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said and drawn of a validation of the processor model, SYNTHETIC ones and the one that is kept."""

import json
from pathlib import Path

import pytest

from vsprof.analysis import explain_validation as explain
from vsprof.analysis import figures, validation
from vsprof.analysis.figures import __main__ as draw
from vsprof.analysis.stats import Estimate
from vsprof.terms.errors import BadInput

KEPT = Path(__file__).resolve().parents[2] / "docs" / "reference"
FIGURES = ("validation_events", "validation_switches")


@pytest.fixture(scope="module")
def counted(validation_sample):
    """SYNTHETIC: the model beside a processor's counts."""
    return validation_sample.hardware()


@pytest.fixture(scope="module")
def by_profile(validation_sample):
    """SYNTHETIC: the model beside what must happen."""
    return validation_sample.by_profile()


# --- Reading ----------------------------------------------------------------------------------------------------


def test_what_was_written_is_read_again(counted, tmp_path):
    assert counted.write(tmp_path / "new") == tmp_path / "new" / "validation.json"
    assert validation.load(tmp_path / "new") == validation.load(tmp_path / "new" / "validation.json") == counted


def changed(whole: dict, *keys: object, to: object) -> dict:
    inner = whole
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = to
    return whole


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (["version"], 2, "version: Input should be 1 (found 2)"),
        (["why_no_hardware"], 7, "why_no_hardware: Input should be a valid string (found 7)"),
        (["when"], "yesterday", "(found 'yesterday')"),
        (["parts"], ["all"], "parts.0: Input should be 'microbenchmarks', 'switches' or 'repeat' (found 'all')"),
        (["rows", 0, "modelled", "median"], "1.0", "rows.0.modelled.median: Input should be a valid number (found '1.0')"),
        (["rows", 0, "modelled"], {"median": 1.0, "low": 2.0, "high": 3.0, "n": 3}, "its median between them"),
        (["rows", 0, "modelled"], {"median": 1.0, "low": 0.5, "high": None, "n": 3}, "an interval needs low and high"),
        (["colour"], "red", "colour: Extra inputs are not permitted (found 'red')"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_the_value_seen(counted, tmp_path, keys, value, words):
    path = counted.write(tmp_path)
    path.write_text(json.dumps(changed(json.loads(path.read_text()), *keys, to=value)))
    with pytest.raises(BadInput) as error:
        validation.load(tmp_path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": NaN}', "null"])
def test_broken_json_is_one_error(tmp_path, text):
    (tmp_path / "validation.json").write_text(text)
    with pytest.raises(BadInput, match=r"validation\.json is no validation: .*found"):
        validation.load(tmp_path)


def test_how_many_more_are_wrong_is_said(counted, tmp_path):
    path = counted.write(tmp_path)
    whole = json.loads(path.read_text())
    for row in whole["rows"][:4]:
        del row["event"]
    path.write_text(json.dumps(whole))
    with pytest.raises(BadInput, match=r"rows\.0\.event: Field required .*\(and 3 more like it\)"):
        validation.load(path)


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(BadInput, match="`make validate-model` writes"):
        validation.load(tmp_path)
    with pytest.raises(BadInput, match="`make validate-model` writes"):
        validation.load(tmp_path / "nothing.json")
    (tmp_path / "validation.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="can't be read"):
        validation.load(tmp_path)


# --- The answer -------------------------------------------------------------------------------------------------


def test_without_a_processor_nothing_is_said_of_one(by_profile, validation_sample):
    said = explain.of(by_profile).answer()
    assert said.startswith(
        "That is not known: the model was compared with what its own profile says must happen, not with a processor, for "
    )
    assert validation_sample.NO_PMU in said
    # 0 %, +25 %, -0.0004 events and +2 %: of what must happen, 1 % is close.
    assert "There 2 of 4 events of 2 microbenchmarks are within 1 % of what must happen" in said
    assert "the largest error is +25.0 % (cycles of `chase_l2`)" in said
    assert "hardware" not in said
    assert said.count(". ") == 1


def test_with_a_processor_its_counts_are_the_answer(counted):
    said = explain.of(counted).answer()
    assert (
        "As far as one processor tells (SYNTHETIC processor): 3 of 4 events of 2 microbenchmarks are within 10 % of what it counted" in said
    )
    assert "the largest error is +25.0 % (cycles of `chase_l2`)" in said
    assert "off by -10.0 % [-12.0, -8.0] with OVS-DPDK, +20.0 % [+18.0, +22.0] with kernel OVS's datapath" in said


def test_where_nothing_was_compared_nothing_is_claimed(validation_sample):
    rows = [row for row in validation_sample.by_profile().rows if row.part == "switches"]
    said = explain.of(validation_sample.by_profile(rows=rows, parts=["switches"])).answer()
    assert said.startswith("That is not known: no number of the model was compared with anything")
    assert "No processor was counted, for there is no SYNTHETIC PMU, and of microbenchmarks there is no number (the part" in said
    assert said.count(". ") == 1
    said = explain.of(validation_sample.hardware(rows=[], parts=["microbenchmarks"], notes=[])).answer()
    assert "of microbenchmarks there is no number (the part `microbenchmarks` ended without a number). Of switches" in said
    assert "cycles per packet were compared with nothing" in said


def test_where_all_errors_are_differences_the_largest_of_them_is_named(validation_sample):
    [row] = [row for row in validation_sample.MICRO if row.error_unit == "events"]
    assert "the largest error is -0.0004 events (LLC misses of `chase_l2`)" in explain.of(validation_sample.hardware(rows=[row])).answer()


# --- Tables -----------------------------------------------------------------------------------------------------


def test_hardware_has_a_column_of_its_own_and_errors_have_intervals(counted):
    table = explain.of(counted).table("switches").frame
    assert list(table) == ["switch", "events per packet, user mode", "hardware", "model", "error"]
    row = table.set_index(table.columns[1]).loc["CPI (cycles per instruction)"]
    assert (row["hardware"], row["model"]) == ("0.5380 [0.5326, 0.5434]", "0.4800 [0.4752, 0.4848]")
    assert row["error"] == "-10.8 % [-13.0, -9.0]"
    # Rates are compared with nothing.
    assert not any("packets" in text for text in table.iloc[:, 1])
    assert explain.of(counted).rates().frame["natively"].iloc[0].startswith("9,000,000 [")


def test_an_event_that_was_not_counted_is_a_dash_and_said(counted):
    table = explain.of(counted).table("switches").frame
    row = table[table.iloc[:, 1] == "L2 misses"].iloc[0]
    assert (row["hardware"], row["error"]) == ("–", "–")
    assert "not counted by this processor: L2 misses of kernel OVS's datapath" in explain.of(counted).limits()


def test_without_hardware_there_is_no_such_column(by_profile):
    assert list(explain.of(by_profile).table("switches").frame) == ["switch", "events per packet, user mode", "model"]
    table = explain.of(by_profile).table("microbenchmarks").frame
    assert list(table)[2:] == ["must be", "model", "error"]
    assert list(table.iloc[1])[2:] == ["12", "15.00", "+25.0 %"]
    assert f"for {by_profile.why_no_hardware}" in explain.of(by_profile).where().frame.to_string()


def test_of_the_same_work_twice_the_difference_is_shown(counted):
    table = explain.of(counted).table("repeat").frame
    assert list(table["difference"]) == ["0 events", "+2 events"]
    assert "repeat, chase_llc: SYNTHETIC reason." in explain.of(counted).limits()


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (-1.8e-6, "0.0000"), (1e-4, "0.0001000"), (1312.3157, "1,312"), (13.734, "13.73")])
def test_numbers_are_rounded_when_shown(value, shown):
    assert explain.number(value) == shown


# --- Figures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_whose_numbers_share_its_axes(counted, name):
    shown = explain.of(counted).show(name)
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "Both share these axes on purpose" in shown.caption
    assert "Source: estimated (model: SYNTHETIC 1); hardware counters (SYNTHETIC processor), testbed native." in shown.caption
    assert [text.get_text() for text in shown.figure.legends[0].get_texts()] == ["model", "hardware"]
    assert "+25.0 %" in shown._repr_html_() or name != "validation_events"


def test_numbers_are_drawn_where_they_are_and_errors_beside(counted):
    shown = explain.of(counted).show("validation_switches")
    # OVS-DPDK's numbers and errors, then those of kernel OVS's datapath.
    numbers, errors, _, others = shown.figure.axes
    assert [text.get_text() for text in errors.texts] == ["+1.0 % [-0.5, +2.5]", "-10.0 % [-12.0, -8.0]", "-10.8 % [-13.0, -9.0]"]
    assert [text.get_text() for text in others.texts][-1] == "–"
    assert errors.get_xlim()[0] < -13
    drawn = {float(line.get_xdata()[0]) for line in numbers.lines if len(line.get_xdata()) == 1}
    assert {1300.0, 1313.0, 700.0, 630.0, 0.538, 0.48} <= drawn


def test_without_hardware_a_diamond_is_what_must_happen(by_profile):
    shown = explain.of(by_profile).show("validation_events")
    assert [text.get_text() for text in shown.figure.legends[0].get_texts()] == ["model", "must happen"]
    assert "n=1, no interval" in shown.caption
    assert "hardware counters" not in shown.caption
    # Of switches there is the model alone, and so no axes for errors.
    alone = explain.of(by_profile).show("validation_switches")
    assert len(alone.figure.axes) == 2
    assert [text.get_text() for text in alone.figure.legends[0].get_texts()] == ["model"]


def test_one_window_is_drawn_without_an_interval(validation_sample):
    once = [
        row.model_copy(update={"modelled": Estimate(row.modelled.median, None, None, 1)}) for row in validation_sample.by_profile().rows
    ]
    found = validation_sample.by_profile(rows=once)
    shown = explain.of(found).show("validation_switches")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "n=1, no interval" in shown.caption
    assert "Each switch was counted in one window" in explain.of(found).limits()


@pytest.mark.parametrize("parts", [[], ["switches", "microbenchmarks"]])
def test_an_empty_part_is_not_shown_and_says_why(validation_sample, parts):
    found = validation_sample.by_profile(rows=[], notes=[], parts=parts)
    why = "ended without a number" if parts else "was not run"
    for name in FIGURES:
        assert why in explain.of(found).show(name).text
    assert why in explain.of(found).table("switches")
    assert why in explain.of(found).rates()
    assert "the part `repeat` was not run" in explain.of(found).limits()


def test_what_was_left_out_is_the_reason(validation_sample):
    note = validation.Note(part="switches", item="kernel_ovs", text="left out: SYNTHETIC")
    found = validation_sample.by_profile(rows=[], notes=[note])
    assert "kernel_ovs left out: SYNTHETIC" in explain.of(found).show("validation_switches").text


def test_a_figure_is_drawn_from_the_shell(counted, tmp_path, capsys):
    counted.write(tmp_path)
    assert draw.main(["validation_events", str(tmp_path), str(tmp_path / "x.png")]) == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert draw.main(["validation_events", str(tmp_path / "nowhere"), str(tmp_path / "y.png")]) == 2
    assert "is not there" in capsys.readouterr().err


# --- The kept one -----------------------------------------------------------------------------------------------


def test_the_kept_one_is_of_a_machine_without_a_pmu():
    found = validation.load(KEPT)
    assert not found.hardware
    assert "not with a processor" in explain.of(found).answer()
    assert "SYNTHETIC" not in found.model_dump_json()
    assert set(found.parts) == set(validation.PARTS)
