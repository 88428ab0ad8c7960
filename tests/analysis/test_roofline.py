# SPDX-License-Identifier: GPL-2.0-or-later
"""What bounds a switch, by a SYNTHETIC result whose numbers are made up."""

import json
from pathlib import Path

import pytest

from vsprof.analysis import figures, roofline
from vsprof.analysis.figures import roofline as figure
from vsprof.analysis.load import load
from vsprof.terms import schema

FLOOD = ("udp_flood", "saturation")
HERTZ, WIDTH = 2e9, 4


@pytest.fixture
def flooded(sample, tmp_path):
    """Write a flood, whose rates are ``faster`` times the sample's."""

    def write(faster=1.0, **more):
        path = sample.write(tmp_path / "r", traffics=[FLOOD], own="uarch_model", **more)
        rows = schema.read(path / "measurements.parquet").to_pylist()
        for row in rows:
            row["value"] = row["value"] * faster if row["name"] == "packet_rate_received" else row["value"]
        schema.write(path / "measurements.parquet", rows)
        return path

    return write


def test_a_capacity_is_the_processor_over_what_a_packet_takes_of_the_switch(flooded, sample):
    kernel, dpdk = roofline.bounds(load(flooded()))
    assert [kernel.switch, dpdk.switch] == ["kernel-ovs", "ovs-dpdk"]
    # Half of a packet's work is the switch's; the second of three repetitions has 2 % more.
    for one, access in ((kernel, "vhost-net"), (dpdk, "vhost-user")):
        instructions = sample.WORK[access] / 2 * 1.02
        assert one.instructions.median == pytest.approx(instructions)
        assert one.roof.median == pytest.approx(HERTZ * WIDTH / instructions)
        assert one.capacity.median == pytest.approx(HERTZ / instructions / sample.CPI[access])
        assert one.capacity.low < one.capacity.median < one.capacity.high < one.without_waits.median < one.roof.median
        assert one.rate.median == pytest.approx(sample.RECEIVED[access], rel=0.05)


def test_a_switch_that_could_pass_more_is_not_the_limit(flooded):
    said = roofline.answer(load(flooded())).splitlines()
    assert said[0].startswith("- **kernel OVS**: 32.9 kpps, 25 % of the 131 kpps")
    assert all("somebody else is the limit" in line for line in said)


def test_a_switch_at_its_capacity_is_the_limit_itself(flooded):
    result = load(flooded(faster=4.0))
    kernel, dpdk = roofline.bounds(result)
    assert kernel.full == pytest.approx(1.0, rel=0.05)
    assert "all that its processors can pass: 10,200 instructions a packet. In " in kernel.words()
    assert dpdk.full == pytest.approx(0.88, rel=0.05)
    assert "somebody else" in dpdk.words()


def test_several_processors_pass_as_much_more(flooded):
    path = flooded(options={"switch_cpus": ("1", "2")}, accesses=("vhost-user",))
    one, two = roofline.bounds(load(path))
    assert two.roof.median == pytest.approx(2 * one.roof.median)
    assert two.capacity.median == pytest.approx(2 * one.capacity.median)
    assert two.setting == "switch_cpus=2"


def test_a_case_is_judged_by_its_own_processor(flooded):
    path = flooded(accesses=("vhost-user",))
    before = roofline.bounds(load(path))[0]
    manifest = json.loads((path / "manifest.json").read_text())
    profile = {"frequency_hz": 4e9, "values": {"core.width": {"value": 8}}}
    manifest["facts"]["cases"] = {before.case: {"processor": profile}}
    (path / "manifest.json").write_text(json.dumps(manifest))
    [after] = roofline.bounds(load(path))
    assert after.roof.median == pytest.approx(4 * before.roof.median)
    assert after.capacity.median == pytest.approx(2 * before.capacity.median)


def test_cases_with_a_changed_processor_are_left_out(sample, what_if_sample, tmp_path):
    found = roofline.bounds(load(what_if_sample.write(sample, tmp_path, own="uarch_model", frames=(64, 1518))))
    assert [(one.switch, one.setting) for one in found] == [
        ("kernel-ovs", "64 B"), ("kernel-ovs", "1518 B"), ("ovs-dpdk", "64 B"), ("ovs-dpdk", "1518 B")
    ]  # fmt: skip


def test_the_figure_has_a_roof_and_three_marks_for_each_case(flooded):
    result = load(flooded())
    table = figure.table(result)
    assert table.groupby("label", sort=False)["bound"].agg(list).tolist() == [["roof", "without_waits", "capacity", "rate"]] * 2
    [axes] = figure.plot(table).axes
    labels = [text.get_text() for text in figure.plot(table).legends[0].get_texts()]
    assert labels == ["roof", "without any waiting", "capacity", "rate", "OVS-DPDK", "kernel OVS"]
    assert len([line for line in axes.lines if line.get_label() == "roof"]) == 1
    assert figures.png(figures.show(result, "roofline").figure).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("traffics", "own", "why"),
    [
        ([FLOOD], None, "no window of this result was counted by the model"),
        ([("idle", "none")], "uarch_model", "nothing was sent at saturation"),
    ],
)
def test_a_result_without_a_flood_or_a_model_says_so(sample, tmp_path, traffics, own, why):
    result = load(sample.write(tmp_path, traffics=traffics, own=own))
    assert why in figures.show(result, "roofline").text
    assert roofline.answer(result) == ""


def test_the_reference_result_says_who_is_the_limit():
    """Measured in the lab, between guests' kernels: kernel OVS is full, OVS-DPDK waits for the guests."""
    kernel, dpdk = roofline.bounds(load(Path(__file__).resolve().parents[2] / "results" / "reference"))
    assert kernel.full > roofline.BUSY > dpdk.full
    assert "somebody else" in dpdk.words()
