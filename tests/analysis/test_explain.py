# SPDX-License-Identifier: GPL-2.0-or-later
"""The explanation follows the numbers, and stops where they stop."""

import json
import re

from tests.analysis import vhost_sample
from vsprof.analysis import describe, explain, looks, show
from vsprof.analysis.load import load
from vsprof.analysis.published import EVERY, beside


def claims(result) -> str:
    return "\n".join(finding.claim for finding in looks.findings(result, explain.LOOKS))


def test_the_answer_names_ratios_and_the_emulator(two_switches):
    answer = explain.answer(two_switches)
    assert "OVS-DPDK delivers 2.20 times as many packets of a UDP flood as kernel OVS (95 % interval " in answer
    assert "emulated lab" in answer


def test_what_the_sample_shows_is_found(two_switches):
    found = explain.markdown(two_switches)
    assert "TCP is slower over OVS-DPDK than over kernel OVS" in found
    assert "super-packet" in found
    assert "never sleeps" in found
    assert "paid by the vhost threads" in found
    assert "most of it before the switch (15.0 %)" in found


def test_a_poll_mode_thread_is_its_own_switchs(sample, tmp_path, two_switches):
    assert "OVS-DPDK's poll-mode thread never sleeps" in explain.markdown(two_switches)
    assert "all threads of ovs-vswitchd together" in explain.markdown(two_switches)
    found = explain.markdown(load(vhost_sample.change(sample.write(tmp_path / "r"))))
    assert "vhost-switch's poll-mode thread never sleeps" in found
    assert "all threads of vhost-switch together" in found
    assert "OVS-DPDK" not in found


def test_no_offload_is_claimed_without_packet_sizes(sample, tmp_path):
    found = explain.markdown(load(sample.write(tmp_path / "r", drop=("packet_rate_received",))))
    assert "TCP is slower over OVS-DPDK" in found
    assert "super-packet" not in found


def test_one_repetition_decides_nothing(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", repetitions=1))
    assert "n=1: no interval" in explain.answer(result)
    assert "may be chance" in result.doubt
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
    assert {one.target for one in EVERY.values()} == {"T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12"}


def test_idle_changes_no_finding(sample, tmp_path, two_switches):
    result = load(sample.write(tmp_path / "r", traffics=[*sample.TRAFFICS, sample.IDLE], own="uarch_model"))
    assert claims(result) == claims(two_switches)
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


def test_each_switchs_own_limit_is_compared(searched):
    found = explain.markdown(searched)
    assert "The no-drop rate is higher over vhost-user than over vhost-net" in found
    assert "partial-drop rate: vhost-net 33.7 kpps, vhost-user 67.3 kpps" in found
    assert "context switches per packet, each at its own no-drop rate" in found
    assert "too high for vhost-user, the largest part of what is missing was lost in the switch (2.00 % of what was due)" in found


def test_a_case_without_such_a_rate_is_compared_with_none(searched):
    assert [claim for claim in claims(searched).splitlines() if "o-drop rate" in claim] == [
        "The no-drop rate is higher over vhost-user than over vhost-net."
    ]


def test_the_search_is_among_the_headlines_and_in_a_table_of_its_own(searched):
    rows = describe.headlines(searched).frame.set_index(describe.headlines(searched).frame.columns[0])
    found = rows.loc["UDP flood, no-drop rate: found by search"]
    assert found.tolist() == ["–", "30.6 kpps [30.3, 30.9]", "61.2 kpps [60.6, 61.8]"]
    table = describe.searches(searched).frame.set_index(["case", "load"])
    one = table.loc[("ovs-dpdk · vhost-user", "no-drop rate")]
    assert one["bad ones at the rate carried"] == "1 of 3"
    assert one["of what was due at the rate too high"] == "lost in it 2.00 %, lost after it 0.100 %"
    none = table.loc[("kernel-ovs · virtio-net", "no-drop rate")]
    assert (none["rate found"], none["too high"], none["searches that found one"]) == ("–", "1.00 kpps", "0 of 3")


def test_in_modelled_time_rates_are_the_processors_and_said_to_be_modelled(sample, tmp_path):
    folder = sample.write(tmp_path / "r")
    manifest = json.loads((folder / "manifest.json").read_text())
    before = load(folder)
    manifest.setdefault("facts", {})["clock"] = {"cpu": "zen5", "cpu_name": "AMD EPYC (Zen 5)"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    modelled = load(folder)
    assert (before.emulated, before.modelled) == (True, None)
    assert (modelled.emulated, modelled.modelled) == (False, "AMD EPYC (Zen 5)")
    answer = explain.answer(modelled)
    assert "All rates and times are predictions by the model of AMD EPYC (Zen 5). None was measured" in answer
    assert "emulated lab" not in answer
    # The first sentence has the processor and the rates themselves; what was published stands beside it.
    first = answer.splitlines()[0]
    assert first.startswith("On AMD EPYC (Zen 5) as modelled, OVS-DPDK delivers 2.")
    assert re.search(r"as many packets of a UDP flood as kernel OVS \([0-9.]+ \wpps against [0-9.]+ \wpps; 95 % interval", first)
    [beside_it] = [paragraph for paragraph in answer.split("\n\n") if paragraph.startswith("Published, on other machines")]
    assert "up to 8x (T1)" in beside_it
    assert "406,515 pps" in beside_it
    assert "pps against" not in explain.answer(before)
