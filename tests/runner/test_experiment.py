# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment: what the shipped ones expand to, and what is refused before anything starts."""

import json
import re
from pathlib import Path

import pytest

from vsprof.collectors.base import Apart
from vsprof.runner import cli
from vsprof.runner import experiment as experiments
from vsprof.runner.campaign import Campaign
from vsprof.runner.experiment import COLLECTORS, SWITCHES, Case
from vsprof.terms import places, schema
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import CpuPlan
from vsprof.workloads.endpoints.virtio_user import VirtioUser


def accesses(name: str) -> list[tuple[str, str]]:
    _, experiment = experiments.load(name)
    return [(case.switch, case.access) for case in experiments.cases(experiment)]


@pytest.mark.parametrize("name", experiments.names())
def test_every_shipped_experiment_can_be_run(name):
    loaded, experiment = experiments.load(name)
    campaign = Campaign.check(loaded, experiment)
    assert campaign.name == name
    assert campaign.testbed == "auto"
    assert len(experiment.question) > 40


def test_vm2vm_compares_each_switch_by_its_own_access():
    assert accesses("vm2vm") == [("kernel-ovs", "vhost-net"), ("ovs-dpdk", "vhost-user")]


def test_vm2host_does_too():
    assert accesses("vm2host") == [("kernel-ovs", "vhost-net"), ("ovs-dpdk", "vhost-user")]


def test_access_methods_has_the_combinations_that_exist():
    assert accesses("access-methods") == [("kernel-ovs", "virtio-net"), ("kernel-ovs", "vhost-net"), ("ovs-dpdk", "vhost-user")]


def test_a_case_names_itself():
    _, experiment = experiments.load("vm2vm")
    assert experiments.cases(experiment)[0].case_id == "vm2vm_kernel-ovs_vhost-net_64B_1f"


def test_an_experiment_is_also_found_by_its_path(file, document):
    assert experiments.load(str(file(document)))[0] == "mine"


def test_every_varied_value_meets_every_other(document):
    document["fixed"].pop("frame_bytes")
    document["vary"]["frame_bytes"] = [64, 512, 1518]
    cases = experiments.cases(experiments.Experiment.model_validate(document))
    assert len({case.case_id for case in cases}) == 2 * 3


@pytest.mark.parametrize("where", ["fixed", "vary", "changes"])
def test_an_option_that_no_traffic_here_reads_is_refused(document, where):
    if where == "changes":
        document["changes"] = [{}, {"tcp_window": "8K"}]
    else:
        document[where]["tcp_window"] = "8K" if where == "fixed" else ["system", "8K"]
    document["traffic"] = [{"kind": "udp_flood", "load": "saturation"}]
    experiment = experiments.Experiment.model_validate(document)
    with pytest.raises(BadInput, match="tcp_window is for traffic tcp_stream"):
        experiments.traffic_items(experiment)
    document["traffic"].append({"kind": "tcp_stream"})
    assert len(experiments.traffic_items(experiments.Experiment.model_validate(document))) == 2


@pytest.mark.parametrize(("factor", "values"), [("frame_bytes", [64, 1518]), ("flows", [1, 100])])
def test_a_factor_that_no_traffic_here_looks_at_is_refused(document, factor, values):
    document["fixed"].pop(factor, None)
    document["vary"][factor] = values
    document["traffic"] = [{"kind": "tcp_stream"}, {"kind": "idle"}]
    with pytest.raises(BadInput, match=f"{factor} is varied, and no traffic here uses it .idle, tcp_stream.: .* add .*udp_flood"):
        experiments.traffic_items(experiments.Experiment.model_validate(document))
    document["traffic"].append({"kind": "udp_flood", "load": "saturation"})
    assert len(experiments.traffic_items(experiments.Experiment.model_validate(document))) == 3


@pytest.fixture
def with_options(monkeypatch):
    """Two options of ovs-dpdk, and one of containers over virtio-user."""
    monkeypatch.setattr(SWITCHES["ovs-dpdk"], "options", {"ring": ("one", "two"), "stages": ("off", "on")})
    monkeypatch.setattr(VirtioUser, "options", {"way": ("mergeable", "vector")})


def parsed_cases(document):
    return experiments.cases(experiments.Experiment.model_validate(document))


def test_an_option_is_part_of_the_cases_that_have_it_and_makes_no_others_of_the_rest(document, with_options):
    document["vary"].update(ring=["two", "one"])
    document["fixed"].update(stages=True)
    cases = parsed_cases(document)
    assert [case.case_id for case in cases] == [
        "vm2vm_kernel-ovs_vhost-net_64B_1f",
        "vm2vm_ovs-dpdk_vhost-user_64B_1f_ring-two_stages-on",
        "vm2vm_ovs-dpdk_vhost-user_64B_1f_ring-one_stages-on",
    ]
    assert [case.options for case in cases] == [{}, {"ring": "two", "stages": "on"}, {"ring": "one", "stages": "on"}]


def test_an_option_of_endpoints_belongs_to_their_access(document, with_options):
    document["fixed"].pop("access")
    document["vary"] = {"switch": ["ovs-dpdk"], "access": ["vhost-user", "virtio-user"], "way": ["mergeable", "vector"]}
    assert [(case.access, dict(case.options)) for case in parsed_cases(document)] == [
        ("vhost-user", {}), ("virtio-user", {"way": "mergeable"}), ("virtio-user", {"way": "vector"}),
    ]  # fmt: skip


def test_combinations_with_an_option_can_be_left_out(document, with_options):
    document["vary"].update(ring=["one", "two"], stages=[False, True])
    document["except"] = [{"ring": "two", "stages": False}]
    assert [list(case.options.values()) for case in parsed_cases(document)] == [[], ["one", "off"], ["one", "on"], ["two", "on"]]


def test_changes_are_made_one_at_a_time_and_every_case_says_what_it_has(document, with_options):
    document["changes"] = [{}, {"ring": "two"}, {"stages": True}, {"ring": "two", "stages": "on"}]
    cases = parsed_cases(document)
    # Kernel OVS has neither option, and so is one case.
    assert [(case.switch, list(case.options.values())) for case in cases] == [
        ("kernel-ovs", []),
        ("ovs-dpdk", ["one", "off"]),
        ("ovs-dpdk", ["two", "off"]),
        ("ovs-dpdk", ["one", "on"]),
        ("ovs-dpdk", ["two", "on"]),
    ]


def test_an_option_that_is_auto_has_its_default_where_all_can_run(document, with_options):
    document["fixed"].update(ring="auto")
    assert [dict(case.options) for case in parsed_cases(document)] == [{}, {"ring": "one"}]


def test_what_is_fixed_for_containers_alone_is_no_mistake_where_they_may_stand_in_for_virtual_machines(document, with_options):
    document["fixed"].update(way="vector")
    assert [dict(case.options) for case in parsed_cases(document)] == [{}, {}]
    # Compared, or changed, it would make equal cases.
    document["fixed"].pop("way")
    document["vary"].update(way=["default", "vector"])
    with pytest.raises(BadInput, match="way is an option of no case"):
        parsed_cases(document)


@pytest.mark.parametrize("changes", [[], [{"ring": "two"}]])
def test_changes_begin_with_what_is_changed(document, changes):
    with pytest.raises(BadInput, match=r"write \{\} first"):
        experiments.parse({**document, "changes": changes}, "mine.yaml")


def test_a_case_is_made_again_of_its_values(document, with_options):
    document["vary"].update(ring=["one", "two"])
    for case in parsed_cases(document):
        assert Case.of(json.loads(json.dumps(case.values))) == case
    # As a result has them from before there were options.
    assert Case.of({"topology": "t", "switch": "s", "access": "a", "frame_bytes": 64, "flows": 1}) == Case("t", "s", "a", 64, 1)


def test_a_switch_and_a_topology_take_their_own_options_and_defaults(with_options):
    given = {"stages": "on", "way": "vector"}
    switch = SWITCHES["ovs-dpdk"](None, CpuPlan.of(2), given)
    assert switch.chosen == {"ring": "one", "stages": "on"}
    topology = experiments.TOPOLOGIES["vm2vm"](None, switch, CpuPlan.of(2), "virtio-user", given)
    assert topology.chosen == {"way": "vector"}


WRONG_OPTIONS = {
    "unknown value": ({"vary": {"ring": ["one", "three"]}}, ["ring of ovs-dpdk", "'three'", "one, two"]),
    "unknown option": ({"fixed": {"bell": "one"}}, ["bell", "frame_bytes", "ring", "stages", "way"]),
    "of no case": (
        {"fixed": {"way": "vector", "access": "vhost-user"}, "vary": {"switch": ["ovs-dpdk"]}},
        ["way", "no case", "vm2vm over virtio-user"],
    ),
    "unknown value in except": ({"except": [{"ring": "three"}]}, ["ring in except", "three", "one"]),
    "fixed and varied": ({"fixed": {"ring": "one"}, "vary": {"ring": ["one"]}}, ["ring", "both"]),
    "unknown option in changes": ({"changes": [{}, {"bell": "one"}]}, ["bell", "option in changes", "ring", "stages"]),
    "a factor in changes": ({"changes": [{}, {"switch": "ovs-dpdk"}]}, ["switch", "option in changes", "ring"]),
    "unknown value in changes": ({"changes": [{}, {"ring": "three"}]}, ["ring of ovs-dpdk", "'three'", "one, two"]),
    "changed and fixed": ({"fixed": {"ring": "one"}, "changes": [{}, {"ring": "two"}]}, ["ring", "changes", "fixed"]),
    "changed in no case": ({"changes": [{}, {"way": "vector"}]}, ["way", "no case"]),
}


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_a_wrong_option_is_named(document, with_options, name):
    change, words = WRONG_OPTIONS[name]
    for key, value in change.items():
        document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
    with pytest.raises(BadInput) as refused:
        parsed_cases(document)
    assert "\n" not in str(refused.value)
    for word in words:
        assert word in str(refused.value)


NODES = {
    "a choice of nodes where there is one": ({"fixed": {"pmd_node": "far"}}, ["pmd_node", "nodes: 2"]),
    "endpoints that are on no node": (
        {"nodes": 2, "fixed": {"access": "virtio-user"}, "vary": {"switch": ["ovs-dpdk"]}},
        ["virtio-user", "vhost-user"],
    ),
    "several pairs on two nodes": (
        {"nodes": 2, "fixed": {"pairs": 2, "access": "vhost-user"}, "vary": {"switch": ["ovs-dpdk"]}},
        ["nodes 2", "use `pairs: 1` and `switch_cpus: 1`"],
    ),
    "small pages, which the kernel puts where it likes": (
        {"nodes": 2, "fixed": {"guest_pages": "4K", "access": "vhost-user"}, "vary": {"switch": ["ovs-dpdk"]}},
        ["guest_pages: 4K", "Use 2M"],
    ),
    "no number": ({"nodes": "many"}, ["nodes", "many", "1 or 2"]),
}


@pytest.mark.parametrize("name", NODES)
def test_what_asks_wrongly_for_nodes_is_named(document, name):
    change, words = NODES[name]
    for key, value in change.items():
        document[key] = {**document.get(key, {}), **value} if isinstance(value, dict) else value
    with pytest.raises(BadInput) as refused:
        experiments.cases(experiments.parse(document, Path("mine.yaml")))
    for word in words:
        assert word in str(refused.value)


def test_thread_and_memory_are_put_on_either_of_two_nodes():
    _, experiment = experiments.load("numa")
    assert experiment.nodes == 2
    chosen = {(case.options["pmd_node"], case.options["memory_node"]) for case in experiments.cases(experiment)}
    assert chosen == {(pmd, memory) for pmd in ("far", "near") for memory in ("far", "near")}


def test_no_option_has_a_name_that_a_column_has_or_that_both_a_switch_and_endpoints_have():
    switches = {name for switch in SWITCHES.values() for name in switch.options}
    endpoints = {name for topology in experiments.TOPOLOGIES.values() for access in schema.ACCESSES for name in topology.options_of(access)}
    assert not switches & endpoints
    for name in switches | endpoints:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert name not in {*schema.RESERVED, "load", *experiments.FACTORS}
    assert all(values for switch in SWITCHES.values() for values in switch.options.values())


def test_auto_takes_every_collector_and_a_named_one_is_meant(document):
    parse = experiments.Experiment.model_validate
    automatic = sorted(name for name, one in COLLECTORS.items() if one.automatic)
    assert experiments.collectors(parse({**document, "collectors": ["auto"]})) == (automatic, frozenset())
    assert experiments.collectors(parse(document)) == (["softirqs"], {"softirqs"})


def test_a_collector_that_is_not_automatic_must_be_named(document, monkeypatch):
    class Costly(Apart):
        automatic = False

    monkeypatch.setitem(COLLECTORS, "costly", Costly)
    parse = experiments.Experiment.model_validate
    assert "costly" not in experiments.collectors(parse({**document, "collectors": ["auto"]}))[0]
    both, named = experiments.collectors(parse({**document, "collectors": ["costly", "auto"]}))
    assert {"costly", "softirqs"} <= set(both)
    assert named == {"costly"}


def test_a_collector_with_own_windows_is_left_out_where_there_are_none(document, monkeypatch):
    class Slow(Apart):
        pass

    monkeypatch.setitem(COLLECTORS, "slow", Slow)
    parse = experiments.Experiment.model_validate
    for chosen in (["auto"], ["softirqs", "slow"]):
        document["collectors"] = chosen
        assert "slow" in experiments.collectors(parse(document))[0]
        without = experiments.collectors(parse({**document, "windows": {"own_count": 0}}))[0]
        assert "slow" not in without
        assert "softirqs" in without


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"softirqs": {}},
        {"uarch_model": {}},
        {"uarch_model": {"cpu": "zen5", "without": ["model.page_walks", "prefetch"], "deepest_idle": "C1"}},
        {"uarch_model": {"without": "prefetch"}},
        {"uarch_model": {"without": None}},
    ],
)
def test_options_of_collectors_reach_the_runs(document, options):
    campaign = Campaign.check("mine", experiments.parse({**document, "collector_options": options}, Path("mine.yaml")))
    assert campaign.setting.options == options


def test_what_passes_the_check_makes_a_collector():
    given = {"cpu": "zen5", "without": "prefetch", "deepest_idle": "C1"}
    COLLECTORS["uarch_model"].check_options(given)
    made = COLLECTORS["uarch_model"](None, **given)
    assert (made.profile.id, made.deepest_idle) == ("zen5", "C1")


def test_a_traffic_can_be_of_some_testbeds_alone(document):
    document["traffic"] = [{"kind": "tcp_stream"}, {"kind": "idle", "testbeds": ["native", "remote"]}]
    given = experiments.parse(document, Path("mine.yaml"))
    sent = {testbed: [item.kind for item in experiments.traffic_items(experiments.on(given, testbed))] for testbed in ("native", "lab")}
    assert sent == {"native": ["tcp_stream", "idle"], "lab": ["tcp_stream"]}
    # While the testbed is not known, all of them are checked.
    assert [item.kind for item in experiments.traffic_items(given)] == ["tcp_stream", "idle"]
    document["traffic"][1]["testbeds"] = ["moon"]
    with pytest.raises(BadInput, match="'moon'"):
        experiments.traffic_items(experiments.parse(document, Path("mine.yaml")))
    document["traffic"][1]["testbeds"] = "native"
    with pytest.raises(BadInput, match="is a list"):
        experiments.parse(document, Path("mine.yaml"))


def test_idle_needs_no_setting(document):
    document["traffic"].append({"kind": "idle"})
    assert [item.label for item in experiments.traffic_items(experiments.Experiment.model_validate(document))][1] == "idle-none"


# What is changed in the sound experiment, and what the message must name: the value seen, and the known ones.
FIXED, VARY, OPTIONS = "fixed", "vary", "collector_options"
MODEL = "uarch_model"
WRONG = {
    "unknown switch": ({VARY: {"switch": ["ovs"]}}, ["ovs", "kernel-ovs", "ovs-dpdk"]),
    "unknown access": ({FIXED: {"access": "sr-iov"}}, ["sr-iov", "vhost-net", "vhost-user", "auto"]),
    "unknown topology": ({FIXED: {"topology": "ring"}}, ["ring", "vm2vm", "vm2host"]),
    "unknown variable fixed": ({FIXED: {"mtu": 9000}}, ["mtu", "frame_bytes"]),
    "unknown variable varied": ({VARY: {"mtu": [1500, 9000]}}, ["mtu", "frame_bytes"]),
    "unknown variable in except": ({"except": [{"mtu": 1}]}, ["mtu", "frame_bytes"]),
    "unknown switch in except": ({"except": [{"switch": "ovs"}]}, ["ovs", "kernel-ovs"]),
    "a list in except": ({"except": [{"access": ["auto"]}]}, ["auto"]),
    "unknown traffic": ({"traffic": [{"kind": "sctp"}]}, ["sctp", "tcp_stream", "udp_flood", "ping_paced"]),
    "traffic without a kind": ({"traffic": [{"load": "saturation"}]}, ["traffic", "udp_flood"]),
    "unknown collector": ({"collectors": ["pmu"]}, ["pmu", "softirqs"]),
    "options of an unknown collector": ({OPTIONS: {"pmu": {"cpu": "zen5"}}}, ["pmu", "uarch_model", "softirqs"]),
    "options of a collector that has none": ({OPTIONS: {"softirqs": {"cpu": "zen5"}}}, ["softirqs", "cpu", "no options"]),
    "unknown option": ({OPTIONS: {MODEL: {"gpu": "zen5"}}}, [MODEL, "gpu", "cpu", "without", "quantum_us"]),
    "options are no mapping": ({OPTIONS: {MODEL: "zen5"}}, [f"{OPTIONS}.{MODEL}", "zen5"]),
    "options are a list": ({OPTIONS: [MODEL]}, [OPTIONS, MODEL]),
    "unknown processor": ({OPTIONS: {MODEL: {"cpu": "zen9"}}}, ["zen9", "zen5", "haswell-ep-e5-2695v3"]),
    "no processor": ({OPTIONS: {MODEL: {"cpu": None}}}, ["None", "zen5"]),
    "a missing profile": ({OPTIONS: {MODEL: {"cpu": "mine/cpu.yaml"}}}, ["mine/cpu.yaml", "zen5"]),
    "unknown part": ({OPTIONS: {MODEL: {"without": ["caches"]}}}, ["'caches'", "model.page_walks", "prefetch"]),
    "a part that is no word": ({OPTIONS: {MODEL: {"without": [{"model": 1}]}}}, ["'model'", "model.page_walks"]),
    "parts that are a number": ({OPTIONS: {MODEL: {"without": 5}}}, ["'5'", "model.page_walks"]),
    "unknown notebook": ({"notebook": "novel"}, ["novel", "vm2vm"]),
    "vhost-user with kernel OVS": ({FIXED: {"access": "vhost-user"}}, ["kernel-ovs", "vhost-user", "vhost-net"]),
    "fixed and varied": ({FIXED: {"switch": "ovs-dpdk"}}, ["switch", "both"]),
    "neither fixed nor varied": ({VARY: None}, ["switch", "neither"]),
    "empty vary": ({VARY: {"switch": []}}, ["vary.switch", "empty"]),
    "a value twice": ({VARY: {"switch": ["ovs-dpdk", "ovs-dpdk"]}}, ["vary.switch", "twice", "ovs-dpdk"]),
    "vary is no list": ({VARY: {"switch": "ovs-dpdk"}}, ["vary.switch", "ovs-dpdk"]),
    "except leaves none": ({"except": [{"topology": "vm2vm"}]}, ["except"]),
    "frame too small": ({FIXED: {"frame_bytes": 63}}, ["frame_bytes", "63", "64", "1518"]),
    "frame too large": ({FIXED: {"frame_bytes": 1519}}, ["frame_bytes", "1519", "1518"]),
    "frame is yes": ({FIXED: {"frame_bytes": True}}, ["frame_bytes", "True"]),
    "frame is text": ({FIXED: {"frame_bytes": "64"}}, ["frame_bytes", "'64'"]),
    "frame is a fraction": ({FIXED: {"frame_bytes": 64.5}}, ["frame_bytes", "64.5"]),
    "no flows": ({FIXED: {"flows": 0}}, ["flows", "0"]),
    "unknown key": ({"repeat": 3}, ["repeat"]),
    "unknown key of windows": ({"windows": {"length": 3}}, ["windows.length"]),
    "window too short": ({"windows": {"seconds": 0.1}}, ["windows.seconds", "0.1"]),
    "own window too short": ({"windows": {"own_seconds": 0}}, ["windows.own_seconds", "0"]),
    "fewer than no own windows": ({"windows": {"own_count": -1}}, ["windows.own_count", "-1"]),
    "half an own window": ({"windows": {"own_count": 0.5}}, ["windows.own_count", "0.5"]),
    "no repetition": ({"repetitions": 0}, ["repetitions", "0"]),
    "no traffic": ({"traffic": []}, ["traffic"]),
    "no question": ({"question": ""}, ["question"]),
    "equal without a rate": ({"traffic": [{"kind": "udp_flood", "load": "equal"}]}, ["udp_flood", "rate_pps"]),
    "a rate at saturation": ({"traffic": [{"kind": "udp_flood", "rate_pps": 5}]}, ["udp_flood", "rate_pps"]),
    "rate of nothing": ({"traffic": [{"kind": "udp_flood", "load": "equal", "rate_pps": 0}]}, ["rate_pps", "0"]),
    "a rate where it is searched": ({"traffic": [{"kind": "udp_flood", "load": "ndr", "rate_pps": 5}]}, ["udp_flood", "rate_pps"]),
    "a search of nothing": ({"traffic": [{"kind": "udp_flood", "search": {"width": 0.1}}]}, ["udp_flood", "ndr, pdr"]),
    "a search that takes no time": ({"traffic": [{"kind": "udp_flood", "load": "ndr", "search": {"limit_seconds": 0}}]}, ["search.limit_seconds", "0"]),
    "unknown setting of a search": ({"traffic": [{"kind": "udp_flood", "load": "pdr", "search": {"steps": 3}}]}, ["search.steps", "3"]),
    "lowest above highest": ({"traffic": [{"kind": "udp_flood", "load": "ndr", "search": {"min_pps": 900, "max_pps": 800}}]}, ["min_pps 900"]),
    "unknown load": ({"traffic": [{"kind": "udp_flood", "load": "heavy"}]}, ["heavy", "saturation", "equal"]),
    "unknown load of ping": ({"traffic": [{"kind": "ping_paced", "load": "equal"}]}, ["equal", "paced"]),
    "a load of nothing": ({"traffic": [{"kind": "idle", "load": "saturation"}]}, ["saturation", "none"]),
    "unknown setting of traffic": ({"traffic": [{"kind": "tcp_stream", "mss": 9}]}, ["tcp_stream", "mss"]),
    "traffic twice": ({"traffic": [{"kind": "tcp_stream"}, {"kind": "tcp_stream", "streams": 2}]}, ["tcp_stream-saturation", "twice"]),
}  # fmt: skip
# Set where a whole part is replaced rather than changed.
REPLACED = {"unknown switch", "empty vary", "a value twice", "vary is no list"}


def wrong(document, name):
    change, _ = WRONG[name]
    for key, value in change.items():
        if key in (FIXED, VARY) and isinstance(value, dict) and name not in REPLACED:
            document[key].update(value)
        elif value is None:
            document.pop(key)
        else:
            document[key] = value
    return document


def check(path):
    name, experiment = experiments.load(str(path))
    return Campaign.check(name, experiment)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named(document, file, name):
    with pytest.raises(BadInput) as refused:
        check(file(wrong(document, name)))
    for word in WRONG[name][1]:
        assert word in str(refused.value)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_ends_with_status_2_and_writes_nothing(document, file, root, capsys, name):
    assert cli.main(["run", str(file(wrong(document, name)))]) == 2
    assert capsys.readouterr().err.startswith("vsprof: ")
    assert not list(root.iterdir())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: [", "mine.yaml"),
        ("- a\n- b\n", "list"),
        ("", "NoneType"),
        ("just words", "str"),
        ("a: !!python/object:os.system x", "mine.yaml"),
    ],
)
def test_what_is_no_mapping_is_refused(file, root, capsys, text, word):
    assert cli.main(["run", str(file(text))]) == 2
    assert word in capsys.readouterr().err
    assert not list(root.iterdir())


def test_a_file_that_is_no_text_is_refused(tmp_path, root, capsys):
    (tmp_path / "mine.yaml").write_bytes(b"\xff\xfe\x00question")
    assert cli.main(["run", str(tmp_path / "mine.yaml")]) == 2
    assert "mine.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing.yaml", "vm3vm", "", "."])
def test_a_missing_experiment_lists_the_known_ones(root, capsys, name):
    assert cli.main(["run", name]) == 2
    words = capsys.readouterr().err
    assert "vm2vm" in words
    assert "access-methods" in words
    assert not list(root.iterdir())


@pytest.mark.parametrize("value", [[["kernel-ovs"]], [{"a": 1}], [None], [3]])
def test_a_value_that_is_no_word_is_refused(document, value):
    document["vary"]["switch"] = value
    with pytest.raises(BadInput, match="unknown switch"):
        experiments.cases(experiments.Experiment.model_validate(document))


@pytest.mark.parametrize(("key", "value"), [("topology", ["vm2vm"]), ("access", ["auto"]), ("access", None)])
def test_a_fixed_value_that_is_no_word_is_refused(document, key, value):
    document["fixed"][key] = value
    with pytest.raises(BadInput, match=f"unknown {key}"):
        experiments.cases(experiments.Experiment.model_validate(document))


def test_a_setting_of_traffic_must_be_a_word(document):
    document["traffic"] = [{"kind": "udp_flood", 5: 1}]
    with pytest.raises(BadInput):
        experiments.traffic_items(experiments.parse(document, Path("mine.yaml")))


def test_a_switchs_own_access_beside_auto_is_one_case_and_not_two(document):
    document["fixed"].pop("access")
    document["vary"] = {"switch": ["kernel-ovs"], "access": ["auto", "vhost-net"]}
    try:
        cases = experiments.cases(experiments.Experiment.model_validate(document))
    except BadInput:
        return
    assert len(cases) == len({case.case_id for case in cases})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--testbed", "moon"], ["moon", "auto", "lab", "native"]),
        (["--switches", "ovs"], ["ovs", "kernel-ovs"]),
        (["--frame-size", "63"], ["63", "64", "1518"]),
        (["--frame-size", "64,big"], ["big", "whole number"]),
        (["--num-flows", "many"], ["many", "whole number"]),
        (["--repeat", "0"], ["repetitions", "found 0"]),
        (["--windows", "0"], ["windows.count", "found 0"]),
        (["--own-windows", "-1"], ["windows.own_count", "found -1"]),
        (["--duration", "0.0001"], ["windows.modelled_seconds", "found 0.0001"]),
        (["--duration", "0.1", "--clock", "emulated", "--testbed", "lab"], ["windows.seconds", "found 0.1"]),
        (["--collectors", "pmu"], ["pmu", "softirqs"]),
        (["--cpu-profile", "zen9"], ["zen9", "zen5"]),
        (["--cpu-profile", ""], ["''", "zen5"]),
        (["--cpus", "3"], ["3", "2, 4"]),
        (["--duration", "1e9"], ["windows.seconds"]),
        (["--duration", "nan"], ["windows.seconds", "nan"]),
        (["--switches", ","], ["switch"]),
    ],
)
def test_a_wrong_option_ends_with_status_2_and_writes_nothing(document, file, root, capsys, arguments, words):
    assert cli.main(["run", str(file(document)), *arguments]) == 2
    seen = capsys.readouterr().err
    assert all(word in seen for word in words)
    assert not list(root.iterdir())


def test_one_wrong_experiment_hides_no_other_from_the_list(tmp_path, monkeypatch, capsys):
    right = (places.ROOT / "experiments" / "vm2vm.yaml").read_text()
    (tmp_path / "experiments").mkdir()
    (tmp_path / "notebooks").symlink_to(places.ROOT / "notebooks")
    (tmp_path / "experiments" / "good.yaml").write_text(right)
    (tmp_path / "experiments" / "wrong.yaml").write_text(right.replace("kernel-ovs", "kernel-ovss"))
    monkeypatch.setattr(places, "ROOT", tmp_path)
    assert cli.main(["list"]) == 2
    printed, said = capsys.readouterr()
    assert printed.startswith("good ")
    assert said.startswith("vsprof: experiments/wrong.yaml: ")
    assert "kernel-ovss" in said


# --- The host's kernel


def test_every_switch_can_have_another_kernel_and_one_that_is_not_asked_for_is_not_named():
    values = {"topology": "vm2vm", "access": "auto", "frame_bytes": 64, "flows": 1}
    for switch in experiments.SWITCHES:
        assert experiments.case({**values, "switch": switch, "kernel": "bookworm"}).options == {"kernel": "bookworm"}
        assert experiments.case({**values, "switch": switch, "kernel": "auto"}).options == {"kernel": "trixie"}
        assert experiments.case({**values, "switch": switch}).options == {}
    with pytest.raises(BadInput, match=r"kernel.*'6\.18'.*trixie, bookworm, forky, trixie-backports"):
        experiments.case({**values, "switch": "kernel-ovs", "kernel": "6.18"})


def test_kernels_are_the_labs():
    _, experiment = experiments.load("kernels")
    assert [case.options for case in experiments.cases(experiment)] == [
        {"kernel": kernel} for kernel in ("bookworm", "trixie", "trixie-backports")
    ]
    assert "lab, the only one that can boot another kernel" in experiments.only_in_lab(experiment)


def test_a_case_is_shown_without_what_most_cases_have_alike():
    def case(switch, **options):
        return experiments.Case("vm2vm", switch, "vhost-user", 64, 1, options)

    found = [case("ovs-dpdk", queues="1", pairs="1"), case("ovs-dpdk", queues="2", pairs="1"), case("ovs-dpdk", queues="1", pairs="2")]
    usual = experiments.usual(found)
    assert usual == {"queues": "1", "pairs": "1"}
    named = "vm2vm_ovs-dpdk_vhost-user_64B_1f"
    assert [one.without(usual) for one in found] == [named, f"{named}_queues-2", f"{named}_pairs-2"]
    assert found[0].case_id == f"{named}_pairs-1_queues-1"
    # Of two values that are as common, each is shown.
    assert experiments.usual(found[1:]) == {}
    assert experiments.usual([]) == {}
