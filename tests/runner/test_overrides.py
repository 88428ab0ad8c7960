# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of the command line change the experiment, and nothing but what they name."""

import argparse

import pytest

from vsprof.runner import experiment as experiments
from vsprof.runner import overrides
from vsprof.terms.errors import BadInput
from vsprof.testbeds.base import MODELLED, REAL


@pytest.fixture
def changed(document):
    def change(*arguments: str, clock: str | None = REAL) -> experiments.Experiment:
        parser = argparse.ArgumentParser()
        overrides.add_options(parser)
        experiment = experiments.Experiment.model_validate(document)
        return overrides.apply(experiment, parser.parse_args(arguments), clock)

    return change


def test_no_option_changes_nothing(changed, document):
    assert changed() == experiments.Experiment.model_validate(document)


def test_switches(changed):
    assert [case.switch for case in experiments.cases(changed("--switches", "ovs-dpdk"))] == ["ovs-dpdk"]


def test_a_fixed_value_becomes_a_varied_one(changed):
    experiment = changed("--frame-size", "64, 512 512", "--num-flows", "1,1000")
    assert {(case.frame_bytes, case.flows) for case in experiments.cases(experiment)} == {(64, 1), (64, 1000), (512, 1), (512, 1000)}


def test_any_factor_or_option_can_be_varied(changed):
    experiment = changed("--switches", "vhost-switch", "--vary", "rx=poll,interrupt", "--vary", "cpu.l2.latency=x0.5, auto")
    options = [(case.options["rx"], case.options["cpu.l2.latency"]) for case in experiments.cases(experiment)]
    assert options == [("poll", "6"), ("poll", "12"), ("interrupt", "6"), ("interrupt", "12")]
    assert changed("--vary", "frame_bytes=64,1518").vary["frame_bytes"] == [64, 1518]


@pytest.mark.parametrize("text", ["cpu", "=zen4", "cpu=[", "cpu="])
def test_what_varies_nothing_is_refused(changed, text):
    with pytest.raises(BadInput, match="cpu"):
        changed("--vary", text)


def test_repetitions_windows_and_their_length(changed):
    experiment = changed("--repeat", "5", "--windows", "7", "--duration", "0.5")
    assert (experiment.repetitions, experiment.windows.count, experiment.windows.seconds) == (5, 7, 0.5)
    assert experiment.windows.warmup_seconds == changed().windows.warmup_seconds


def test_the_length_of_a_window_is_in_the_testbeds_time(changed):
    default = changed().windows
    modelled = changed("--duration", "0.05", clock=MODELLED).windows
    assert (modelled.modelled_seconds, modelled.seconds) == (0.05, default.seconds)
    with pytest.raises(BadInput, match=r"windows\.seconds"):
        changed("--duration", "0.05")
    # Nobody knows yet whose seconds they are; what suits neither is wrong all the same.
    changed("--duration", "0.05", clock=None)
    changed("--duration", "60", clock=None)
    for wrong in ("0", "1e9", "nan"):
        with pytest.raises(BadInput, match=r"windows\.(modelled_)?seconds"):
            changed("--duration", wrong, clock=None)


def test_own_windows(changed):
    windows = changed("--own-windows", "0").windows
    assert (windows.own_count, windows.count) == (0, changed().windows.count)
    assert (changed().windows.own_count, changed().windows.own_seconds) == (2, 1.0)


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


def test_nodes(changed):
    assert changed().nodes == 1
    assert changed("--nodes", "2").nodes == 2
    with pytest.raises(BadInput, match=r"nodes: .*1 or 2.*found 3"):
        changed("--nodes", "3")


def test_options_of_switches_that_are_not_compared_are_left_out(changed, document):
    document["vary"] = {"switch": ["vhost-switch"], "dequeue": ["copy", "zero-copy"], "path": ["mergeable", "vector"]}
    document["fixed"].update(rings="own", access="virtio-user")
    assert len(experiments.cases(changed())) == 4
    cases = experiments.cases(changed("--switches", "ovs-dpdk"))
    assert [dict(case.options) for case in cases] == [{"path": "mergeable"}, {"path": "vector"}]
    both = experiments.cases(changed("--switches", "ovs-dpdk,vhost-switch"))
    assert [len(case.options) for case in both] == [1, 1, 3, 3, 3, 3]


def loads(experiment) -> list[tuple[str, str]]:
    return [(item.kind, item.settings.load) for item in experiments.traffic_items(experiment)]


def test_loads_of_the_flood(changed, document):
    document["traffic"] = [{"kind": "tcp_stream"}, {"kind": "udp_flood"}, {"kind": "udp_flood", "load": "equal", "rate_pps": 7}]
    found = changed("--loads", "ndr, equal pdr ndr")
    assert loads(found) == [("tcp_stream", "saturation"), ("udp_flood", "ndr"), ("udp_flood", "equal"), ("udp_flood", "pdr")]
    assert found.traffic[2]["rate_pps"] == 7
    assert loads(changed("--loads", "saturation")) == [("tcp_stream", "saturation"), ("udp_flood", "saturation")]


def test_a_search_stays_as_the_experiment_describes_it(changed, document):
    document["traffic"] = [{"kind": "udp_flood", "load": "ndr", "search": {"width": 0.2}}]
    assert changed("--loads", "pdr,ndr").traffic[1] == document["traffic"][0]


@pytest.mark.parametrize(("asked", "said"), [("equal", "rate_pps"), ("heavy", "saturation, equal, ndr, pdr"), (" , ", "loads")])
def test_loads_that_cannot_be_sent_are_refused(changed, asked, said):
    with pytest.raises(BadInput, match=said):
        loads(changed("--loads", asked))


def test_changes_of_options_that_no_compared_switch_has_are_left_out(changed, document):
    document["changes"] = [{}, {"tso": "on"}, {"offloads": "off"}, {"tso": "on", "offloads": "off"}]
    assert changed("--switches", "kernel-ovs").changes == [{}, {"offloads": "off"}]
    assert [dict(case.options) for case in experiments.cases(changed("--switches", "kernel-ovs"))] == [
        {"offloads": "on"},
        {"offloads": "off"},
    ]
    assert changed("--switches", "ovs-dpdk").changes == document["changes"]


def test_the_command_lines_length_is_that_of_every_traffic(changed, document):
    document["traffic"] = [{"kind": "udp_flood", "modelled_seconds": 0.06}]
    given = changed(clock=MODELLED)
    assert [item.settings.modelled_seconds for item in experiments.traffic_items(given)] == [0.06]
    asked = changed("--duration", "0.05", clock=MODELLED)
    assert [item.settings.modelled_seconds for item in experiments.traffic_items(asked)] == [None]
    assert asked.windows.modelled_seconds == 0.05


def test_options_of_collectors(changed):
    asked = ("--collector-option", "perf_record.events=[l1d_misses, llc_misses]", "--collector-option", "perf_record.frequency=199")
    given = changed("--cpu-profile", "zen5", *asked).collector_options
    assert given == {"uarch_model": {"cpu": "zen5"}, "perf_record": {"events": ["l1d_misses", "llc_misses"], "frequency": 199}}
    assert changed("--collector-option", "perf_record.events=a,b").collector_options == {"perf_record": {"events": "a,b"}}


@pytest.mark.parametrize("text", ["perf_record", "perf_record=1", "perf_record.frequency", ".frequency=1", "perf_record.events=[a"])
def test_what_is_no_option_of_a_collector(changed, text):
    with pytest.raises(BadInput, match=r"COLLECTOR\.OPTION=VALUE"):
        changed("--collector-option", text)
