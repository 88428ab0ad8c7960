# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of single frames: a worker's cost beside its latency, restarts, and the published words."""

from types import SimpleNamespace

import pytest

from vsprof.analysis import describe_frames, published, stats
from vsprof.analysis.describe import Table


def cell(table: Table, case: str, column: str) -> str:
    frame = table.frame.set_index(table.frame.columns[0])
    [row] = [name for name in frame.index if case in name]
    return frame.loc[row, column]


def test_a_worker_is_shown_with_what_it_takes_and_what_that_buys(probed):
    table = describe_frames.by_case(probed, "paced frames")
    assert cell(table, "ovs-dpdk", "CPU use, frames flow").startswith("102 %")
    assert cell(table, "ovs-dpdk", "latency, mean").split()[1].startswith("µs")
    assert cell(table, "kernel-ovs", "frames lost").startswith("0.0250 %")
    assert cell(table, "kernel-ovs", "frames not timed").startswith("0.200 %")


def test_a_restart_that_is_not_survived_has_no_outage_but_a_count(probed):
    table = describe_frames.restarts(probed)
    assert cell(table, "ovs-dpdk", "came back") == "3 of 3"
    assert cell(table, "ovs-dpdk", "longest time without a frame").startswith("1.50 s")
    assert cell(table, "ovs-dpdk", "packets lost").startswith("14,000")
    assert cell(table, "kernel-ovs", "came back") == "0 of 3"
    assert cell(table, "kernel-ovs", "longest time without a frame") == "–"
    assert cell(table, "kernel-ovs", "packets lost") == "–"


def test_who_came_back_is_said_in_two_sentences(probed, two_switches):
    said = describe_frames.restarted(probed)
    assert said.startswith("Frames came back after every restart with ovs-dpdk · vhost-user (1.50 s")
    assert said.endswith("They did not, while they were waited for, with kernel-ovs · vhost-net.")
    assert "can't answer" in describe_frames.restarted(two_switches)


def test_a_result_without_single_frames_says_so(two_switches):
    assert "no finished run has a value" in describe_frames.by_case(two_switches, "paced frames")


def test_the_answer_sets_latency_against_cpu(probed, two_switches):
    said = describe_frames.answer(probed)
    assert "with OVS-DPDK, a frame takes 1/7.83 of the average time of kernel OVS (ratio 0.128" in said
    assert "the switch takes 102 times its CPU time" in said
    assert "can't answer" in describe_frames.answer(two_switches)


@pytest.mark.parametrize(
    ("used", "who"),
    [
        ({"switch": 0.02, "guest": 1.0}, "switch"),
        ({"switch": 1.0, "guest": 0.06}, "guest"),
        # Nobody sleeps, or nobody was measured.
        ({"switch": 1.0, "guest": 1.0}, "switch"),
        ({}, "switch"),
    ],
)
def test_who_sleeps_is_who_leaves_its_cpu(probed, monkeypatch, used, who):
    def estimate(result, *, role, **where):
        return stats.Estimate(used.get(role, float("nan")), None, None, int(role in used))

    monkeypatch.setattr(describe_frames, "SOFTWARE", SimpleNamespace(estimate=estimate))
    assert describe_frames._sleeper(probed) == who


def test_more_answers_than_a_reader_takes_in_are_a_table(probed, monkeypatch):
    monkeypatch.setattr(describe_frames, "SENTENCES", 0)
    [row] = describe_frames.answer(probed).frame.to_dict("records")
    assert (row["with"], row["instead of"]) == ("OVS-DPDK", "kernel OVS")
    assert row["a frame takes, times as long"].startswith("0.128 [")
    assert row["CPU time of the switch, times as much"].startswith("102 [")


def test_the_published_words_are_whole():
    said = describe_frames.published("T5")
    assert "in client mode, VMs regain connectivity" in said
    shown = list(filter(None, describe_frames.published("T11").splitlines()))
    figures = [one for one in published.EVERY.values() if one.target == "T11"]
    # Where several were measured on one machine, it is told once, below them.
    machines = {(one.machine, one.source) for one in figures}
    assert len(machines) < len(figures)
    assert sorted(line[:9] for line in shown if line[:2] != "- ") == ["Machine: "] * len(machines)
    assert len(shown) == len(figures) + len(machines)
    assert any("C1" in line for line in shown)
