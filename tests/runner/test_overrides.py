# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of the command line change the experiment, and nothing but what they name."""

from __future__ import annotations

import argparse

import pytest

from runner import experiment as experiments
from runner import overrides


@pytest.fixture
def changed(document):
    def change(*arguments: str) -> experiments.Experiment:
        parser = argparse.ArgumentParser()
        overrides.add_options(parser)
        experiment = experiments.Experiment.model_validate(document)
        return overrides.apply(experiment, parser.parse_args(arguments))

    return change


def test_no_option_changes_nothing(changed, document):
    assert changed() == experiments.Experiment.model_validate(document)


def test_switches(changed):
    assert [case.switch for case in experiments.cases(changed("--switches", "ovs-dpdk"))] == ["ovs-dpdk"]


def test_a_fixed_value_becomes_a_varied_one(changed):
    experiment = changed("--frame-size", "64, 512 512", "--num-flows", "1,1000")
    assert {(case.frame_bytes, case.flows) for case in experiments.cases(experiment)} == {(64, 1), (64, 1000), (512, 1), (512, 1000)}


def test_repetitions_windows_and_their_length(changed):
    experiment = changed("--repeat", "5", "--windows", "7", "--duration", "0.5")
    assert (experiment.repetitions, experiment.windows.count, experiment.windows.seconds) == (5, 7, 0.5)
    assert experiment.windows.warmup_seconds == changed().windows.warmup_seconds


def test_own_windows(changed):
    windows = changed("--own-windows", "0").windows
    assert (windows.own_count, windows.count) == (0, changed().windows.count)
    assert (changed().windows.own_count, changed().windows.own_seconds) == (2, 1.0)


def test_without_own_windows_nothing_idle_is_sent(changed, document):
    document["traffic"] = [{"kind": "tcp_stream"}, {"kind": "idle"}]
    assert [item["kind"] for item in changed().traffic] == ["tcp_stream", "idle"]
    assert [item["kind"] for item in changed("--own-windows", "0").traffic] == ["tcp_stream"]
    document["traffic"] = [{"kind": "idle"}]
    assert [item["kind"] for item in changed("--own-windows", "0").traffic] == ["idle"]


def test_collectors(changed):
    assert experiments.collectors(changed("--collectors", "auto"))[1] == frozenset()
    assert experiments.collectors(changed("--collectors", "softirqs,interrupts")) == (
        ["softirqs", "interrupts"],
        {"softirqs", "interrupts"},
    )


def test_the_models_processor(changed, document):
    assert changed("--cpu-profile", "zen5").collector_options == {"uarch_model": {"cpu": "zen5"}}
    document["collector_options"] = {"uarch_model": {"cpu": "skylake-sp", "without": ["prefetch"]}}
    assert changed("--cpu-profile", "zen5").collector_options == {"uarch_model": {"cpu": "zen5", "without": ["prefetch"]}}
    assert changed().collector_options == document["collector_options"]


def test_options_of_switches_that_are_not_compared_are_left_out(changed, document):
    document["vary"] = {"switch": ["vhost-switch"], "dequeue": ["copy", "zero-copy"], "path": ["mergeable", "vector"]}
    document["fixed"].update(rings="own", access="virtio-user")
    assert len(experiments.cases(changed())) == 4
    cases = experiments.cases(changed("--switches", "ovs-dpdk"))
    assert [dict(case.options) for case in cases] == [{"path": "mergeable"}, {"path": "vector"}]
    both = experiments.cases(changed("--switches", "ovs-dpdk,vhost-switch"))
    assert [len(case.options) for case in both] == [1, 1, 3, 3, 3, 3]
