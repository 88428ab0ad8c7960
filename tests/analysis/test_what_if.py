# SPDX-License-Identifier: GPL-2.0-or-later
"""What changes of the modelled processor do to each switch, by a SYNTHETIC result whose numbers are made up."""

import itertools
import json
import math
import re

import pytest

from vsprof.analysis import figures, what_if
from vsprof.analysis.figures import what_if as figure
from vsprof.analysis.load import load

FLOOD = ("udp_flood", "saturation")


@pytest.fixture(scope="module")
def changed(sample, what_if_sample, tmp_path_factory):
    return load(what_if_sample.write(sample, tmp_path_factory.mktemp("changed") / "r", repetitions=6))


def test_each_change_is_compared_with_the_same_switch_unchanged(changed):
    found = {(one.switch, one.words): one for one in what_if.effects(changed, *FLOOD)}
    assert set(found) == {(s, w) for s in ("kernel-ovs", "ovs-dpdk") for w in ("l2.latency 12 → 6", "l2.latency 12 → 24")}
    gained = found["ovs-dpdk", "l2.latency 12 → 6"]
    assert gained.ratio.median == pytest.approx(1.5, rel=0.1)
    assert gained.elasticity.median == pytest.approx(math.log(gained.ratio.median) / math.log(0.5))
    # Half of a latency: the more the rate grows, the lower the elasticity.
    assert gained.elasticity.low == pytest.approx(math.log(gained.ratio.high) / math.log(0.5))
    assert gained.elasticity.low < gained.elasticity.median < gained.elasticity.high < 0
    lost = found["kernel-ovs", "l2.latency 12 → 24"].elasticity
    assert lost.low < lost.median < lost.high < 0


def test_the_speed_of_the_switchs_processors_is_told_beside_the_rate(sample, what_if_sample, tmp_path):
    path = what_if_sample.write(sample, tmp_path / "r", repetitions=2, own="uarch_model")
    same = what_if.effects(load(path), *FLOOD)
    assert [one.speed.median for one in same] == pytest.approx([1.0] * 4)
    assert [end for one in same for end in (one.speed.low, one.speed.high)] == pytest.approx([1.0] * 8)
    # A processor of twice the frequency and the same CPI ends twice as many.
    manifest = json.loads((path / "manifest.json").read_text())
    [case] = [one.case for one in same if (one.switch, one.words) == ("ovs-dpdk", "l2.latency 12 → 6")]
    manifest["facts"]["cases"] = {case: {"processor": {"frequency_hz": 4e9}}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    found = {one.case: one.speed.median for one in what_if.effects(load(path), *FLOOD)}
    assert found.pop(case) == pytest.approx(2.0)
    assert list(found.values()) == pytest.approx([1.0] * 3)


def test_a_result_without_a_model_has_no_speeds(sample, what_if_sample, tmp_path):
    found = what_if.effects(load(what_if_sample.write(sample, tmp_path)), *FLOOD)
    assert {one.speed.n for one in found} == {0}
    assert set(what_if.beside(load(tmp_path), lambda one: what_if.in_percent(one.speed)).to_numpy().ravel()) == set()


def test_a_page_has_a_row_for_each_change_and_a_column_for_each_switch(changed):
    table = what_if.beside(changed, lambda one: what_if.in_percent(one.ratio))
    assert list(table.columns) == ["kernel OVS", "OVS-DPDK"]
    assert list(table.index) == ["l2.latency 12 → 6", "l2.latency 12 → 24"]
    assert re.fullmatch(r"\+\d\d\.\d % \[\d\d\.\d, \d\d\.\d\]", table.loc["l2.latency 12 → 6", "OVS-DPDK"])
    elastic = what_if.beside(changed, what_if.elasticity)
    assert re.fullmatch(r"-0\.\d\d \[-0\.\d\d, -0\.\d\d\]", elastic.loc["l2.latency 12 → 6", "OVS-DPDK"])


def test_one_repetition_gives_an_elasticity_without_an_interval(sample, what_if_sample, tmp_path):
    one = what_if.effects(load(what_if_sample.write(sample, tmp_path, repetitions=1)), *FLOOD)[0].elasticity
    assert math.isfinite(one.median)
    assert (one.low, one.high, one.n) == (None, None, 1)


def test_other_things_that_vary_are_no_change(sample, what_if_sample, tmp_path):
    both = load(what_if_sample.write(sample, tmp_path, repetitions=2, frames=(64, 1518)))
    found = what_if.effects(both, *FLOOD)
    assert len(found) == 8
    assert {one.setting for one in found} == {"64 B", "1518 B"}
    assert {one.words for one in found} == {"l2.latency 12 → 6", "l2.latency 12 → 24"}
    assert max(one.ratio.median for one in found) < 1.8
    # Each has a panel of its own in the figure, and a line in the answer.
    drawn = figure.plot(figure.table(both))
    assert len(drawn.axes) == 4
    assert [axis.get_xlabel() for axis in drawn.axes if axis.get_xlabel()] == [
        f"UDP flood, saturation, {size} B: change of the rate (%)" for size in (64, 1518)
    ]
    assert [line.split(":")[0] for line in what_if.answer(both).splitlines()[2:]] == [
        f"- **{switch}**, {size} B" for switch, size in itertools.product(("kernel OVS", "OVS-DPDK"), (64, 1518))
    ]


def test_the_answer_names_what_is_decided_and_no_more(changed):
    said = what_if.answer(changed)
    dpdk = next(line for line in said.splitlines() if "OVS-DPDK" in line)
    assert "l2.latency 12 → 6: 1." in dpdk
    assert "12 → 24" not in dpdk
    kernel = next(line for line in said.splitlines() if "kernel OVS" in line)
    assert "l2.latency 12 → 24: " in kernel
    assert "fewer packets" in kernel


def test_the_figure_has_a_panel_for_each_switch(changed):
    table = figure.table(changed)
    assert len(table) == 4
    drawn = figure.plot(table)
    assert [one.get_title(loc="left") for one in drawn.axes] == ["kernel OVS", "OVS-DPDK"]
    assert {text.get_text() for text in drawn.axes[0].get_yticklabels()} == {"l2.latency 12 → 6", "l2.latency 12 → 24"}


def test_a_result_without_changes_says_nothing(sample, tmp_path):
    assert what_if.answer(load(sample.write(tmp_path, traffics=[FLOOD]))) == ""


def test_the_figure_of_a_result_without_changes_says_so(sample, tmp_path):
    assert "the experiment has no `changes`" in figures.show(load(sample.write(tmp_path, traffics=[FLOOD])), "what_if").text
