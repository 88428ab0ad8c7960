# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of changes: which brings goodput down and which up, how deep, and what the main thread had to do with it."""

import pytest

from vsprof.analysis import comparison, explain_causes, figures
from vsprof.analysis.load import load

SHARED, SMALL, BOTH = ("pmd-cpu", "system"), ("own-cpu", "8K"), ("pmd-cpu", "8K")


@pytest.fixture
def make(sample, causes_sample, tmp_path):
    def made(factors=None, **more):
        return load(causes_sample.write(sample, tmp_path / "r", factors or {}, **more))

    return made


def test_a_case_is_named_by_what_is_changed(make):
    cases = make().cases
    assert list(cases["label"]) == [
        "kernel-ovs · vhost-net",
        "kernel-ovs · vhost-net, tcp_window=8K",
        "ovs-dpdk · vhost-user",
        "ovs-dpdk · vhost-user, main_thread=pmd-cpu",
        "ovs-dpdk · vhost-user, tcp_window=8K",
        "ovs-dpdk · vhost-user, main_thread=pmd-cpu, tcp_window=8K",
    ]


def test_every_change_is_set_against_the_case_without_it_and_against_the_kernel_with_the_same_endpoints(make):
    result = make()
    names = [(pair.setting, *pair.names()) for pair in comparison.pairs(result)]
    assert ("", "main_thread=own-cpu", "main_thread=pmd-cpu") in names
    assert ("tcp_window=8K", "main_thread=own-cpu", "main_thread=pmd-cpu") in names
    assert ("main_thread=pmd-cpu", "tcp_window=system", "tcp_window=8K") in names
    assert ("", "kernel OVS", "OVS-DPDK") in names
    assert ("tcp_window=8K", "kernel OVS", "OVS-DPDK (main_thread=pmd-cpu)") in names


def test_the_deepest_fall_and_the_best_remedy_are_the_answer(make):
    said = explain_causes.answer(make({SHARED: 0.5, SMALL: 3.0, BOTH: 0.005}))
    assert "**main_thread=pmd-cpu, tcp_window=8K** lowers TCP's goodput most: to 0.004" in said
    assert ": as deep as published (below 1/100)" in said
    assert "**tcp_window=8K** raises it most, from OVS-DPDK as it is: 3." in said


def test_what_was_switched_on_is_switched_off_again(make):
    said = explain_causes.answer(make({SHARED: 0.5, SMALL: 1.0, BOTH: 0.005}))
    told = said.partition("taking back one thing alone raises it again: ")[2]
    assert "main_thread (2" in told
    assert "tcp_window (1" in told


def test_what_can_not_be_told_from_the_deepest_fall_is_named_with_it(make):
    said = explain_causes.answer(make({SHARED: 0.5, BOTH: 0.5}))
    assert "(not significantly different: main_thread=pmd-cpu" in said


def test_without_the_unchanged_case_no_other_stands_for_it(make, sample):
    whole = make({SHARED: 0.5})
    ours = explain_causes.cases(whole)
    frame = whole.frame[whole.frame["case_id"] != ours[0]].reset_index(drop=True)
    without = sample.with_frame(whole, frame)
    assert "can't answer" in explain_causes.answer(without)
    assert "ovs-dpdk · vhost-user, main_thread=pmd-cpu" in set(without.cases["label"])
    assert "ovs-dpdk · vhost-user" not in set(without.cases["label"])


def test_a_fall_that_is_less_deep_is_not_called_so(make):
    said = explain_causes.answer(make({SHARED: 0.5}))
    assert "**main_thread=pmd-cpu** lowers TCP's goodput most: to 0.5" in said
    assert "not as deep as published" in said
    assert "taking back" not in said
    assert "No change raises it clearly." in said


def test_where_nothing_differs_nothing_is_claimed(make):
    result = make()
    said = explain_causes.answer(result)
    assert "No change lowers TCP's goodput clearly" in said
    assert "No change raises it clearly" in said
    assert all("is not significant" in finding.claim for finding in explain_causes.findings(result))


def test_one_repetition_decides_nothing(make):
    said = explain_causes.answer(make({SHARED: 0.001}, repetitions=1))
    assert "No change lowers TCP's goodput clearly" in said
    assert "one repetition decides nothing" in said


def test_the_findings_begin_with_what_matters_most_and_name_who_waited(make):
    found = explain_causes.findings(make({SHARED: 0.5, BOTH: 0.01}))
    # Of both together each was switched off again: without either, nothing much is left of the fall.
    assert [one.claim for one in found[:2]] == [
        "With tcp_window=8K, main_thread=pmd-cpu instead of main_thread=own-cpu brings TCP's goodput down.",
        "With main_thread=pmd-cpu, tcp_window=8K instead of tcp_window=system brings TCP's goodput down.",
    ]
    shared = next(one for one in found if one.claim.startswith("main_thread=pmd-cpu instead of main_thread=own-cpu"))
    assert "waited for its CPU 50.0 % of the time (before: 1.00 %)" in shared.reason
    assert any("of ovs-vswitchd's threads" in text for text in shared.evidence)


def test_a_main_thread_that_moves_nothing_any_more_is_told(make):
    found = explain_causes.findings(make({SHARED: 2.0, BOTH: 2.0}, packets={"own-cpu": 5000.0, "pmd-cpu": 0.0}))
    told = [one.reason for one in found if "main_thread=pmd-cpu instead" in one.claim]
    assert len(told) == 2
    assert all("no longer passes the main thread" in reason for reason in told)


def test_where_the_stream_stands_still_nobody_else_took_it_in(make):
    found = explain_causes.findings(make({SHARED: 0.001, BOTH: 0.001}, packets={"own-cpu": 5000.0, "pmd-cpu": 0.0}))
    told = [one.reason for one in found if "main_thread=pmd-cpu instead" in one.claim]
    assert told
    assert not any("no longer passes the main thread" in reason for reason in told)


def test_without_cases_that_differ_it_says_so(two_switches):
    assert "can't answer the question" in explain_causes.answer(two_switches)
    assert explain_causes.markdown(two_switches).startswith("No finding")


def test_the_published_figures_stand_beside_cases_with_the_same_endpoints_alone(make):
    shown = figures.show(make(), "published").table.dropna(subset=["median"])
    assert set(shown["target"]) == {"T2"}
    assert set(shown["traffic"]) == {"TCP stream, saturation", "TCP stream, saturation, tcp_window=8K"}


def test_the_figure_has_a_row_a_case_and_the_depth_of_the_published_fall(make):
    shown = figures.show(make({SHARED: 0.5}), "causes")
    goodput = shown.table[shown.table["metric"] == "goodput"]
    assert len(goodput) == 6
    [deep] = shown.table.loc[shown.table["metric"] == "published_depth", "median"]
    assert deep == pytest.approx(goodput["median"].iloc[0] / 100)


def test_without_the_kernels_way_and_the_main_threads_numbers_the_rest_is_shown(make):
    result = make(drop=("context_switches_voluntary",))
    assert "data:image/png" in figures.show(result, "causes")._repr_html_()
