# SPDX-License-Identifier: GPL-2.0-or-later
"""How switches grow, by a SYNTHETIC result whose numbers are made up: twice the pairs are 1.5 times the packets."""

import json
import shutil

import pytest

from vsprof.analysis import figures, growth
from vsprof.analysis.figures import growth as figure
from vsprof.analysis.figures import growth_costs
from vsprof.analysis.load import load
from vsprof.analysis.what_if import setting_of
from vsprof.terms import schema

FLOOD = ("udp_flood", "saturation")


@pytest.fixture(scope="module")
def grown(sample, growth_sample, tmp_path_factory):
    return load(growth_sample.write(sample, tmp_path_factory.mktemp("grown") / "r"))


def test_changes_of_the_same_things_are_a_curve_for_each_switch_with_the_unchanged_case(grown):
    found = growth.curves(grown)
    assert [(one.switch, one.title) for one in found] == [
        ("kernel-ovs", "pairs"), ("ovs-dpdk", "pairs"), ("kernel-ovs", "pairs (ways=both)"), ("ovs-dpdk", "pairs (ways=both)"),
    ]  # fmt: skip
    for one in found:
        assert [x for x, _ in one.cases] == [1, 2, 4]
        values = [grown.values[case] for _, case in one.cases]
        assert [value["pairs"] for value in values] == ["1", "2", "4"]
        assert {value["ways"] for value in values} == {one.held.get("ways", "one")}


def test_words_are_no_axis(grown):
    assert not any(one.axis == "ways" for one in growth.curves(grown))


def test_the_answer_says_what_each_curve_comes_to(grown):
    lines = growth.answer(grown).splitlines()
    dpdk = next(line for line in lines if line.startswith("- **OVS-DPDK**"))
    assert "pairs 1 → 4: 2.2" in dpdk
    assert "pairs 1 → 4 with ways=both: 2.2" in dpdk
    assert "times as many packets" in dpdk


def test_a_panel_has_a_line_for_each_switch(grown):
    table = figure.table(grown)
    assert len(table) == 12
    drawn = figure.plot(table)
    titles = [one.get_title(loc="left") for one in drawn.axes]
    assert titles == ["pairs", "pairs (ways=both)"]
    assert [text.get_text() for text in drawn.axes[0].get_xticklabels()] == ["1", "2", "4"]
    rate = table[(table["switch"] == "ovs-dpdk") & (table["curve"] == "pairs")].set_index("x")["median"]
    assert rate[4.0] / rate[1.0] == pytest.approx(2.25, rel=0.1)


def test_costs_are_multiples_of_the_first_cases(grown):
    table = growth_costs.table(grown)
    assert set(table["cost"]) == set(growth.COSTS.values())
    assert (table.loc[table["x"] == 1, "median"].dropna() == 1).all()
    growth_costs.plot(table)


@pytest.mark.parametrize("name", ["growth", "growth_costs"])
def test_a_result_in_which_nothing_grows_says_so(sample, tmp_path, name):
    result = load(sample.write(tmp_path / "r", traffics=[FLOOD]))
    assert growth.answer(result) == ""
    assert "no switch has two cases that differ in a number" in figures.show(result, name).text


def rewritten(grown, tmp_path, **more):
    """The same result with something else in its manifest."""
    shutil.copytree(grown.path, tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    manifest["experiment"].update(more)
    (tmp_path / "r" / "manifest.json").write_text(json.dumps(manifest))
    return tmp_path / "r"


def test_a_word_is_held_even_where_there_is_one_change_of_it(grown, tmp_path):
    path = rewritten(grown, tmp_path, changes=[{}, {"ways": "both", "pairs": 4}])
    assert [(one.title, [x for x, _ in one.cases]) for one in growth.curves(load(path))] == [("pairs (ways=both)", [1, 4])] * 2


def test_a_switch_without_its_unchanged_case_has_no_curve_and_spoils_no_report(grown, tmp_path):
    """As of a campaign that was interrupted."""
    path = rewritten(grown, tmp_path)
    rows = schema.read(path / "measurements.parquet").to_pylist()
    schema.write(
        path / "measurements.parquet", [row for row in rows if (row["switch"], row["pairs"], row["ways"]) != ("ovs-dpdk", "1", "one")]
    )
    assert {one.switch for one in growth.curves(load(path))} == {"kernel-ovs"}
    assert "kernel OVS" in growth.answer(load(path))


def test_what_else_varies_makes_curves_of_its_own(sample, tmp_path):
    path = sample.write(tmp_path / "r", traffics=[FLOOD], frames=(64, 1518), options={"pairs": ("1", "2")}, repetitions=1)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["experiment"]["changes"] = [{}, {"pairs": 2}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    assert [one.title for one in growth.curves(load(path))] == ["pairs (64 B)", "pairs (1518 B)"] * 2


def test_an_option_that_one_switch_alone_has_in_all_its_cases_is_no_setting(grown, monkeypatch):
    first, *_ = grown.cases.index
    switch = grown.cases.loc[first, "switch"]
    own = {str(case) for case in grown.cases.index if grown.cases.loc[case, "switch"] == switch}
    varied = {case: {**values, **({"forward": "wire"} if case in own else {})} for case, values in grown.varied.items()}
    before = setting_of(grown, str(first))
    monkeypatch.setitem(grown.__dict__, "varied", varied)
    assert setting_of(grown, str(first)) == before
    # Where its cases differ in that, it is one.
    apart = {case: {**values, "forward": "wire" if case == str(first) else "switch"} for case, values in varied.items()}
    monkeypatch.setitem(grown.__dict__, "varied", apart)
    assert "forward" in setting_of(grown, str(first))[1]
