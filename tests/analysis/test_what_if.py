# SPDX-License-Identifier: GPL-2.0-or-later
"""What changes of the modelled processor do to each switch, by a SYNTHETIC result whose numbers are made up."""

from __future__ import annotations

import json
import math

import pytest

from vsprof.analysis import what_if
from vsprof.analysis.figures import what_if as figure
from vsprof.analysis.load import load
from vsprof.terms import schema

FLOOD = ("udp_flood", "saturation")
GAINS = {("ovs-dpdk", "6"): 1.5, ("kernel-ovs", "24"): 0.7}
"""By switch and latency of L2; without a change it is 12."""


@pytest.fixture
def changed(sample, tmp_path):
    path = sample.write(tmp_path, traffics=[FLOOD], options={"cpu.l2.latency": ("12", "6", "24")}, repetitions=6)
    rows = schema.read(path / "measurements.parquet").to_pylist()
    for row in rows:
        if row["name"] == "packet_rate_received":
            row["value"] *= GAINS.get((row["switch"], row["cpu.l2.latency"]), 1.0)
    schema.write(path / "measurements.parquet", rows)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["experiment"]["changes"] = [{}, {"cpu.l2.latency": "x0.5"}, {"cpu.l2.latency": "x2"}]
    (path / "manifest.json").write_text(json.dumps(manifest))
    return load(path)


def test_each_change_is_compared_with_the_same_switch_unchanged(changed):
    found = {(one.switch, one.words): one for one in what_if.effects(changed, *FLOOD)}
    assert set(found) == {(s, w) for s in ("kernel-ovs", "ovs-dpdk") for w in ("l2.latency 12 → 6", "l2.latency 12 → 24")}
    gained = found["ovs-dpdk", "l2.latency 12 → 6"]
    assert gained.ratio.median == pytest.approx(1.5, rel=0.1)
    assert gained.elasticity == pytest.approx(math.log(gained.ratio.median) / math.log(0.5))


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
