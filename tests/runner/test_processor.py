# SPDX-License-Identifier: GPL-2.0-or-later
"""The modelled processor as a factor of an experiment, and what else the lab alone has."""

import pytest

from vsprof.collectors.uarch_model import UarchModel
from vsprof.runner import experiment as experiments
from vsprof.terms.errors import BadInput

GIVEN = {
    "question": "Which part of a processor makes the difference?",
    "notebook": "vm2vm",
    "fixed": {"topology": "vm2vm"},
    "vary": {"switch": ["kernel-ovs", "ovs-dpdk", "vhost-switch"]},
    "traffic": [{"kind": "udp_flood", "load": "saturation"}],
}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, None),
        ({"nodes": 2, "fixed": {"topology": "vm2vm", "access": "vhost-user", "switch": "ovs-dpdk"}, "vary": {}}, "2 NUMA nodes"),
        ({"fixed": {"topology": "pvp_wire", "endpoint": "testpmd", "forward": "wire"}}, "a wire"),
        ({"changes": [{}, {"cpu.l2.latency": "x2"}]}, "the only one that can model another processor"),
    ],
)
def test_what_the_lab_alone_has_is_told(changed, why):
    told = experiments.only_in_lab(experiments.parse({**GIVEN, **changed}, "x"))
    assert (told is None) == (why is None)
    assert why is None or why in told


def of_processor(**given):
    found = experiments.cases(experiments.parse({**GIVEN, **given}, "x"))
    return [{name: value for name, value in one.options.items() if name.startswith("cpu")} for one in found]


def test_the_processor_is_a_factor():
    cpus = of_processor(vary={"switch": ["ovs-dpdk"], "cpu": ["auto", "zen4"]})
    assert cpus == [{"cpu.profile": "haswell-ep-e5-2695v3"}, {"cpu.profile": "zen4"}]


def test_single_values_of_it_change_one_at_a_time():
    changes = [{}, {"cpu.l2.latency": "x2"}, {"cpu.l2.latency": 14, "cpu.prefetch.l2_adjacent": False}]
    found = of_processor(vary={"switch": ["ovs-dpdk"]}, changes=changes)
    assert found == [
        {"cpu.l2.latency": "12", "cpu.prefetch.l2_adjacent": "on"},
        {"cpu.l2.latency": "24", "cpu.prefetch.l2_adjacent": "on"},
        {"cpu.l2.latency": "14", "cpu.prefetch.l2_adjacent": "off"},
    ]


def test_a_change_is_of_the_campaign_s_own_processor():
    options = {"uarch_model": {"cpu": "zen4", "changes": {"l2.latency": 20}}}
    changes = [{}, {"cpu.l2.latency": "x2"}, {"cpu.frequency_hz": "x0.5"}]
    found = of_processor(vary={"switch": ["ovs-dpdk"]}, changes=changes, collector_options=options)
    assert [one["cpu.l2.latency"] for one in found] == ["20", "40", "20"]
    assert [one["cpu.frequency_hz"] for one in found] == ["3694000000", "3694000000", "1847000000"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cpu": ["z80"]}, ["z80", "zen5"]),
        ({"cpu.l3.size": [1]}, ["cpu.l3.size", "cpu.llc.sets"]),
        ({"cpu.l2.sets": [1000]}, ["l2.sets", "power of two", "1000"]),
        ({"cpu.l2.latency": ["fast"]}, ["l2.latency", "fast"]),
        ({"cpu.llc.policy": ["x2"]}, ["llc.policy", "x2"]),
    ],
)
def test_a_processor_that_cannot_be_is_told(given, words):
    with pytest.raises(BadInput) as told:
        of_processor(vary={"switch": ["ovs-dpdk"], **given})
    assert all(word in str(told.value) for word in words)


def test_a_run_s_model_is_that_processor():
    options = {"seed": 1, "changes": {"l2.latency": 20}}
    model = UarchModel(None, **UarchModel.options_of({"cpu.profile": "zen4", "cpu.llc.latency": "70", "tso": "on"}, options))
    assert (model.profile.id, model.seed) == ("zen4", 1)
    assert (model.profile.values["l2.latency"], model.profile.values["llc.latency"]) == (20, 70)
    assert model.profile.overridden == ("l2.latency", "llc.latency")


def test_a_run_without_such_factors_has_the_campaign_s():
    assert UarchModel.options_of({"tso": "on"}, {"cpu": "zen5"}) == {"cpu": "zen5"}


@pytest.mark.parametrize("given", [3, "l2.latency", ["l2.latency"]])
def test_changes_that_are_no_names_and_values_are_refused(given):
    with pytest.raises(BadInput, match=r"changes is .*llc\.sets: x2"):
        UarchModel.check_options({"changes": given})
