# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation follows the numbers, and stops where they stop."""

from __future__ import annotations

import json

from analysis import explain, show
from analysis.load import load
from analysis.published import beside, every


def claims(result) -> str:
    return "\n".join(finding.claim for finding in explain.findings(result))


def test_the_answer_names_ratios_and_the_emulator(two_switches):
    answer = explain.answer(two_switches)
    assert "OVS-DPDK against kernel OVS" in answer
    assert "emulated lab" in answer


def test_what_the_sample_shows_is_found(two_switches):
    found = explain.markdown(two_switches)
    assert "TCP is slower over OVS-DPDK than over kernel OVS" in found
    assert "super-packet" in found
    assert "never sleeps" in found
    assert "paid by the vhost threads" in found
    assert "most of it before the switch (15.0 %)" in found


def test_no_offload_is_claimed_without_packet_sizes(sample, tmp_path):
    found = explain.markdown(load(sample.write(tmp_path / "r", drop=("packet_rate_received",))))
    assert "TCP is slower over OVS-DPDK" in found
    assert "super-packet" not in found


def test_one_repetition_decides_nothing(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", repetitions=1))
    assert "can't be told apart" in explain.answer(result)
    assert "faster" not in claims(result)
    assert "slower over" not in claims(result)
    assert "segmentation" not in explain.markdown(result)


def test_a_single_case_has_no_answer(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", accesses=("vhost-net",)))
    assert "can't answer" in explain.answer(result)


def test_local_port_is_for_vm2host_alone(sample, tmp_path, two_switches):
    result = load(sample.write(tmp_path / "r", topology="vm2host"))
    assert "local port" in claims(result)
    assert "local port" not in claims(two_switches)


def test_published_figures_stand_beside_the_cases_they_compare(two_switches, three_accesses):
    assert {one.published.target for one in beside(two_switches)} == {"T1"}
    assert {one.published.target for one in beside(three_accesses)} == {"T3"}
    assert {one.target for one in every()} == {"T1", "T2", "T3", "T5", "T6", "T7", "T8", "T9", "T11", "T12"}


def test_idle_changes_no_finding(sample, tmp_path, two_switches):
    result = load(sample.write(tmp_path / "r", traffics=[*sample.TRAFFICS, sample.IDLE], own="uarch_model"))
    assert [finding.claim for finding in explain.findings(result)] == [finding.claim for finding in explain.findings(two_switches)]
    assert [row["case_id"] for row in show.summary(result)["cases"]] == [row["case_id"] for row in show.summary(two_switches)["cases"]]


def test_idle_alone_answers_nothing(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", traffics=[sample.IDLE]))
    assert "can't answer" in explain.answer(result)
    assert show.text(result)


def test_a_summary_is_json_and_text(two_switches):
    summary = json.loads(json.dumps(show.summary(two_switches), allow_nan=False))
    assert [case["switch"] for case in summary["cases"]] == ["kernel-ovs", "ovs-dpdk"]
    assert {"metric", "median", "low", "high", "n", "unit"} <= set(summary["cases"][0]["metrics"][0])
    assert "33.0 kpps" in show.text(two_switches)
