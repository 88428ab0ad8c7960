# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan of a campaign: each case once in a repetition, in an order that only the seed decides. And what befalls its runs."""

import functools
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from vsprof.collectors.base import Collector
from vsprof.runner import campaign as campaigns
from vsprof.runner import cli, offers, results
from vsprof.runner import experiment as experiments
from vsprof.runner import messages as runner_messages
from vsprof.runner.campaign import Campaign
from vsprof.runner.progress import Progress
from vsprof.runner.run import Outcome
from vsprof.terms import errors, schema
from vsprof.terms.placement import PAIR, CpuPlan
from vsprof.terms.schema import Number
from vsprof.testbeds import messages as testbeds_messages

seeds = st.integers(0, 2**32 - 1)


def vm2vm(repetitions: int = 3) -> Campaign:
    name, experiment = experiments.load("vm2vm")
    experiment.repetitions = repetitions
    return Campaign.check(name, experiment, "lab")


@functools.cache
def checked(repetitions: int = 3, number: int = 1) -> Campaign:
    """The same for many examples, which only ask for its plans; ``number`` tells two alike from each other."""
    return vm2vm(repetitions)


@given(seeds, st.integers(1, 6))
def test_each_repetition_holds_each_case_once(seed, repetitions):
    campaign = checked(repetitions)
    plans = campaign.plans(seed)
    for repetition in range(1, repetitions + 1):
        block = [plan.case for plan in plans if plan.repetition == repetition]
        assert sorted(block, key=str) == sorted(campaign.cases, key=str)
    assert [plan.repetition for plan in plans] == sorted(plan.repetition for plan in plans)


@given(seeds, st.integers(2, 6))
def test_no_case_comes_before_another_each_time(seed, repetitions):
    campaign = checked(repetitions)
    first = {next(str(plan.case) for plan in campaign.plans(seed) if plan.repetition == one) for one in range(1, repetitions + 1)}
    assert len(first) == 2


@given(seeds)
def test_each_run_sends_all_traffic_once(seed):
    campaign = checked()
    for plan in campaign.plans(seed):
        assert sorted(item.label for item in plan.traffics) == sorted(item.label for item in campaign.traffics)


@given(seeds)
def test_the_same_seed_gives_the_same_order(seed):
    assert checked().plans(seed) == checked(number=2).plans(seed)


def test_different_seeds_give_different_orders():
    assert len({str(checked().plans(seed)) for seed in range(20)}) > 15


def test_runs_are_named_in_their_order():
    assert [plan.run_id for plan in vm2vm().plans(1)] == [f"r{number:03d}" for number in range(1, 7)]


class NoHost:
    """A testbed that is only asked what it is."""

    def __init__(self, cpus=4, say=None, plugins=(), nodes=1, clock="emulated"):
        self.plugins, self.nodes = plugins, nodes

    takes_turns = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    name = "lab"

    def facts(self):
        return {"kernel": "none"}

    def findings(self):
        return []

    def plan(self, duties=PAIR):
        return CpuPlan.of(4, duties)

    def run(self, command, *, check):
        return SimpleNamespace(status=0)

    def guests_boot(self):
        return None

    def hugepages_lacking(self):
        return None


@pytest.fixture
def quiet():
    return Progress(Console(file=io.StringIO()))


@pytest.fixture
def executed(monkeypatch):
    """Runs that need no testbed; a function in the list says what each does. Returns the ids of those begun."""
    begun: list[str] = []
    troubles: dict[str, BaseException] = {}

    def execute(host, plan, setting, folder, say, look=None, turn=None):
        begun.append(plan.run_id)
        folder.mkdir(parents=True)
        (folder / "attempt.txt").write_text(f"{len(begun)}")
        if plan.run_id in troubles:
            raise troubles[plan.run_id]
        (folder / "run.json").write_text(json.dumps({"run_id": plan.run_id}))
        facts = {"switch": {"version": "v"}, "collectors": {"uarch_model": {"profile": plan.case.switch}}}
        return Outcome(facts, [], {0: "host-other"}, {"ovs_pmd": "no poll-mode threads"})

    where = dict.fromkeys(schema.KEYS.names, "x") | {"repetition": 1, "frame_bytes": 64, "flows": 1}
    row = lambda run_id: schema.row(where | {"run_id": run_id}, "c", "software", Number("n", 1.0, "events"))  # noqa: E731
    monkeypatch.setattr(campaigns.run, "execute", execute)
    monkeypatch.setattr(campaigns.parse, "rows_of_run", lambda folder: [row(folder.name)])
    monkeypatch.setattr(campaigns.parse, "functions_of_run", lambda folder: [])
    monkeypatch.setattr(campaigns.parse, "stacks_of_run", lambda folder: [])
    monkeypatch.setattr(campaigns.parse, "spans_of_run", lambda folder: [])
    monkeypatch.setitem(experiments.TESTBEDS, "lab", NoHost)
    return begun, troubles


def test_the_host_is_started_with_the_plugins_that_the_chosen_collectors_need(monkeypatch, quiet):
    class Counts(Collector):
        emulator_plugin = Path("/plugins/counts.so")

    class Too(Counts):
        pass

    monkeypatch.setitem(experiments.TESTBEDS, "lab", NoHost)
    name, experiment = experiments.load("vm2vm")
    of_model = [experiments.COLLECTORS["uarch_model"].emulator_plugin]
    assert Campaign.check(name, experiment, "lab").host(quiet).plugins == of_model
    for collector in (Counts, Too):
        monkeypatch.setitem(experiments.COLLECTORS, collector.__name__, collector)
    assert Campaign.check(name, experiment, "lab").host(quiet).plugins == [Path("/plugins/counts.so"), *of_model]
    emulated = {"clock": "emulated"}
    experiment.collectors = ["softirqs"]
    assert Campaign.check(name, experiment, "lab", host_options=emulated).host(quiet).plugins == []


def test_modelled_time_takes_the_collector_that_drives_it():
    name, experiment = experiments.load("vm2vm")
    assert Campaign.check(name, experiment, "lab", host_options={"clock": "modelled"}).host_options == {"clock": "modelled"}
    experiment.collectors = ["softirqs"]
    assert Campaign.check(name, experiment, "lab").setting.collectors == ["softirqs", "uarch_model"]
    assert Campaign.check(name, experiment, "lab", host_options={"clock": "emulated"}).setting.collectors == ["softirqs"]
    assert Campaign.check(name, experiment, "native").setting.collectors == ["softirqs"]
    with pytest.raises(errors.BadInput, match="clock"):
        Campaign.check(name, experiment, "native", host_options={"clock": "modelled"})


def test_the_lab_is_in_modelled_time_unless_the_experiment_or_the_command_line_says_otherwise():
    name, experiment = experiments.load("vm2vm")
    assert Campaign.check(name, experiment, "lab").host_options == {"clock": "modelled"}
    # Under KVM no instruction is seen.
    assert Campaign.check(name, experiment, "lab", host_options={"accel": "kvm"}).host_options["clock"] == "emulated"
    assert Campaign.check(name, experiment, "native").host_options == {}
    experiment.clock = "emulated"
    assert Campaign.check(name, experiment, "lab").host_options == {"clock": "emulated"}
    assert Campaign.check(name, experiment, "lab", host_options={"clock": "modelled"}).host_options == {"clock": "modelled"}
    assert campaigns.clock(experiment, "auto", {}) is None


def test_a_run_in_modelled_time_says_whose_it_was_and_what_it_cost(executed, root, quiet, monkeypatch):
    execute = campaigns.run.execute
    clock = {"cpu": "zen5", "cpu_name": "AMD Zen 5", "frequency_hz": 2_600_000_000, "quantum_s": 5e-6, "modelled_s": 0.5, "wall_s": 50.0}

    def modelled(*given):
        outcome = execute(*given)
        outcome.facts["clock"] = clock
        return outcome

    monkeypatch.setattr(campaigns.run, "execute", modelled)
    manifest = campaigns.start(vm2vm(1), quiet, seed=1, root=root).manifest
    assert manifest["facts"]["clock"] == {name: clock[name] for name in ("cpu", "cpu_name", "frequency_hz", "quantum_s")}
    assert manifest["runs"][0]["clock"] == clock


class Prepared(NoHost):
    """A server of an inventory. ``lacks``: no case with this switch can be run on the second one."""

    name = "remote"
    lacks = None
    opened: ClassVar[list[str]] = []

    def __init__(self, inventory, server=None, **more):
        super().__init__(say=more["say"])
        self.server = server
        self.opened.append(server)

    def facts(self):
        return {"kernel": f"of {self.server}"}

    def findings(self):
        return [f"{self.server} is loud"]


@pytest.fixture
def prepared(executed, monkeypatch):
    """Two servers, of which the second lacks OVS-DPDK if told so."""

    def offer(host, experiment):
        cases = experiments.cases(experiment)
        there = [case for case in cases if not (host.server == "two" and case.switch == Prepared.lacks)]
        return offers.Offer(there, [f"{host.server} lacks {Prepared.lacks}"] if len(there) < len(cases) else [])

    monkeypatch.setitem(experiments.TESTBEDS, "remote", Prepared)
    monkeypatch.setattr(campaigns.offers, "of", offer)
    monkeypatch.setattr(Prepared, "opened", [])
    monkeypatch.setattr(Prepared, "lacks", None)
    name, experiment = experiments.load("vm2vm")
    return Campaign.check(name, experiment, "remote", host_options={"inventory": "/inventory"})


def test_servers_of_a_pool_have_whole_repetitions_so_that_a_ratio_is_of_one_machine(prepared, root, quiet):
    _, store = campaigns.begin(prepared, quiet, 1, root, ["one", "two"])
    assert {(run["repetition"], run["server"]) for run in store.manifest["runs"]} == {(1, "one"), (2, "two"), (3, "one")}
    assert store.manifest["facts"]["kernel"] == "of one"
    assert store.manifest["facts"]["servers"] == {name: {"kernel": f"of {name}"} for name in ("one", "two")}
    assert {"one: one is loud", "two: two is loud"} <= {finding["text"] for finding in store.manifest["findings"]}
    Prepared.opened.clear()
    # Also one that is resumed without a sweep knows where each belongs.
    store = campaigns.resume(results.Results.open(store.folder), quiet)
    assert store.manifest["status"] == "complete"
    assert Prepared.opened == ["one", "one", "two", "two", "one", "one"]


def test_servers_of_a_pool_do_what_all_of_them_can(prepared, root, quiet, monkeypatch):
    monkeypatch.setattr(Prepared, "lacks", "ovs-dpdk")
    _, store = campaigns.begin(prepared, quiet, 1, root, ["one", "two"])
    assert {case["values"]["switch"] for case in store.manifest["cases"]} == {"kernel-ovs"}
    first, second = store.manifest["left_out"]
    assert first == "two: two lacks ovs-dpdk"
    # Also one that each offers in another way is told, for which no testbed has a reason.
    assert re.fullmatch(r"vm2vm_ovs-dpdk_\S+ left out: two can't run it as the other servers do", second)
    with pytest.raises(errors.BadInput, match="no case can be run on all of these servers: vm2vm_kernel-ovs"):
        offers.common({"one": offers.Offer(), "two": offers.Offer(prepared.cases)})


def test_a_sweep_on_one_server_is_as_a_campaign_there(prepared, root, quiet):
    _, store = campaigns.begin(replace(prepared, host_options={"inventory": "/inventory", "server": "one"}), quiet, 1, root, ["one"])
    assert {run["server"] for run in store.manifest["runs"]} == {"one"}
    assert "servers" not in store.manifest["facts"]


class ByTurns(NoHost):
    """One that can be frozen; of those that are open, only the last."""

    name, takes_turns = "native", True

    def __init__(self, beside=None, **more):
        super().__init__(say=more["say"])
        self.beside = beside

    def freeze(self):
        pass

    thaw = freeze


@pytest.mark.parametrize("fails", [None, "r002"])
def test_runs_of_a_repetition_take_turns_and_one_that_fails_harms_no_other(executed, root, quiet, monkeypatch, fails):
    begun, troubles = executed
    execute, order, hosts = campaigns.run.execute, [], []

    def in_turn(host, plan, setting, folder, say, look, turn):
        order.append(f"{plan.run_id} begins")
        hosts.append(host)
        turn.give(host)
        order.append(f"{plan.run_id} goes on")
        return execute(host, plan, setting, folder, say, look)

    if fails:
        troubles[fails] = errors.RunFailed("its switch died")
    monkeypatch.setattr(campaigns.run, "execute", in_turn)
    monkeypatch.setitem(experiments.TESTBEDS, "native", ByTurns)
    monkeypatch.setattr(campaigns, "available_memory", lambda: 64 << 30)
    name, experiment = experiments.load("vm2vm")
    experiment.repetitions = 2
    campaign = Campaign.check(name, experiment, "native")
    manifest = campaigns.start(campaign, quiet, seed=1, root=root).manifest
    assert order[:4] == ["r001 begins", "r002 begins", "r002 goes on", "r001 goes on"]
    assert [run["status"] for run in manifest["runs"]] == ["failed" if run["run_id"] == fails else "done" for run in manifest["runs"]]
    assert [run["beside"] for run in manifest["runs"]] == [["r002"], ["r001"], ["r004"], ["r003"]]
    assert len(begun) == 4
    # The first one, beside which they are, is another in each repetition.
    assert hosts[0].beside is hosts[1].beside is not hosts[2].beside
    assert hosts[0].beside is not None


def test_where_memory_is_short_or_the_experiment_says_so_runs_are_alone(monkeypatch):
    name, experiment = experiments.load("vm2vm")
    monkeypatch.setattr(campaigns, "available_memory", lambda: 9 << 30)
    assert Campaign.check(name, experiment, "native").at_once == 2
    monkeypatch.setattr(campaigns, "available_memory", lambda: 1 << 30)
    assert Campaign.check(name, experiment, "native").at_once == 1
    monkeypatch.setattr(campaigns, "available_memory", lambda: 1 << 40)
    assert Campaign.check(name, experiment, "native").at_once == 6
    assert Campaign.check(name, experiment, "lab").at_once == 1
    experiment.turns = False
    assert Campaign.check(name, experiment, "native").at_once == 1


def test_a_complete_campaign_becomes_the_latest(executed, root, quiet):
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert store.manifest["status"] == "complete"
    assert (root / "latest").resolve() == store.folder.resolve()
    assert set(schema.read(root / "latest" / "measurements.parquet")["run_id"].to_pylist()) == {"r001", "r002"}
    assert {"testbed": "lab", "seed": 1}.items() <= store.manifest.items()
    assert store.manifest["facts"]["collectors"].keys() == {"uarch_model"}
    assert any("ovs_pmd left out with" in finding["text"] for finding in store.manifest["findings"])


@pytest.mark.parametrize(
    "trouble",
    [
        errors.RunFailed("the switch died"),
        ValueError("not iperf3's JSON"),
        KeyError("p1"),
        IndexError("no such CPU"),
    ],
)
def test_a_failed_run_is_recorded_and_the_campaign_goes_on(executed, root, quiet, trouble):
    begun, troubles = executed
    troubles["r001"] = trouble
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert begun == ["r001", "r001", "r002"]
    manifest = json.loads((store.folder / "manifest.json").read_text())
    assert [run["status"] for run in manifest["runs"]] == ["failed", "done"]
    assert str(trouble) in manifest["runs"][0]["error"]
    assert manifest["status"] == "partial"
    assert not (root / "latest").exists()


def test_a_run_that_fails_once_in_the_lab_is_repeated_and_both_are_told(executed, root, quiet, monkeypatch):
    begun, troubles = executed
    execute = campaigns.run.execute

    def fails_once(host, plan, *more):
        try:
            return execute(host, plan, *more)
        finally:
            troubles.pop(plan.run_id, None)

    monkeypatch.setattr(campaigns.run, "execute", fails_once)
    troubles["r001"] = errors.RunFailed("guest2 waits for its timer")
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert begun == ["r001", "r001", "r002"]
    first = store.manifest["runs"][0]
    assert (first["status"], first["error"], first["failed_before"]) == ("done", None, ["guest2 waits for its timer"])
    assert (store.folder / "raw" / "r001.broken0" / "attempt.txt").exists()
    assert store.manifest["status"] == "complete"
    assert any("failed and was repeated: guest2 waits" in finding["text"] for finding in store.manifest["findings"])


def test_a_run_that_fails_on_this_host_is_not_repeated(executed, root, quiet, monkeypatch):
    begun, troubles = executed
    monkeypatch.setitem(experiments.TESTBEDS, "native", NoHost)
    name, experiment = experiments.load("vm2vm")
    experiment.repetitions = 1
    troubles["r001"] = errors.RunFailed("no answer")
    campaigns.start(Campaign.check(name, experiment, "native"), quiet, seed=1, root=root)
    assert begun == ["r001", "r002"]


def test_what_a_case_can_not_have_is_not_tried_twice(executed, root, quiet):
    begun, troubles = executed
    troubles["r001"] = errors.NotOffered("guest1: asked for packed on")
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert begun == ["r001", "r002"]
    assert [run["status"] for run in store.manifest["runs"]] == ["failed", "done"]


def test_a_full_disk_ends_the_campaign_at_once(executed, root, quiet):
    begun, troubles = executed
    troubles["r001"] = OSError(28, "No space left on device")
    with pytest.raises(errors.VsprofError, match="No space left"):
        campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert begun == ["r001"]


def test_an_interrupted_campaign_resumes_where_it_stopped(executed, root, quiet):
    begun, troubles = executed
    troubles["r002"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        campaigns.start(vm2vm(2), quiet, seed=1, root=root)
    broken = results.newest()
    assert json.loads((broken / "manifest.json").read_text())["status"] == "partial"
    troubles.clear()
    begun.clear()
    store = campaigns.resume(results.Results.open(broken), quiet)
    assert begun == ["r002", "r003", "r004"]
    assert store.manifest["status"] == "complete"
    assert (store.folder / "raw" / "r002.broken0" / "attempt.txt").exists()


def test_a_campaign_that_knew_no_facts_of_collectors_is_resumed(executed, root, quiet):
    executed[1]["r002"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    executed[1].clear()
    broken = results.Results.open(results.newest())
    broken.manifest["facts"].pop("collectors")
    broken.manifest["experiment"].pop("collector_options")
    store = campaigns.resume(broken, quiet)
    assert store.manifest["status"] == "complete"
    assert "uarch_model" in store.manifest["facts"]["collectors"]


def test_a_resumed_campaign_keeps_the_options_of_its_collectors(executed, root, quiet, monkeypatch):
    name, experiment = experiments.load("vm2vm")
    experiment.collector_options = {"uarch_model": {"cpu": "zen5"}}
    experiment.repetitions = 1
    executed[1]["r002"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        campaigns.start(Campaign.check(name, experiment, "lab"), quiet, seed=1, root=root)
    monkeypatch.setattr(campaigns, "_go", lambda campaign, *_: campaign)
    assert campaigns.resume(results.Results.open(results.newest()), quiet).setting.options == experiment.collector_options


def test_resuming_a_complete_campaign_measures_nothing_again(executed, root, quiet):
    begun, _ = executed
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    begun.clear()
    campaigns.resume(results.Results.open(store.folder), quiet)
    assert begun == []


def test_a_named_collector_that_can_not_work_stops_the_campaign(executed, root, quiet):
    begun, troubles = executed
    troubles["r001"] = runner_messages.collector_unavailable("perf_stat", "no PMU")
    with pytest.raises(errors.BadInput):
        campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert begun == ["r001"]


def test_a_testbed_that_does_not_come_up_leaves_no_result(executed, root, quiet, monkeypatch):
    class Broken(NoHost):
        def __enter__(self):
            raise testbeds_messages.emulator_failed("boom")

    monkeypatch.setitem(experiments.TESTBEDS, "lab", Broken)
    with pytest.raises(errors.VsprofError, match="boom"):
        campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert not list(root.iterdir())


def test_the_exit_status_says_whether_all_runs_are_done(executed, root, capsys, monkeypatch):
    monkeypatch.setattr(campaigns.start, "__defaults__", (None, root))
    arguments = ["run", "vm2vm", "--repeat", "1", "--no-report"]
    assert cli.main(arguments) == 0
    executed[1]["r002"] = errors.RunFailed("no answer")
    assert cli.main([*arguments, "--seed", "5"]) == 1
    assert "r002" in capsys.readouterr().err
    executed[1]["r002"] = KeyboardInterrupt()
    assert cli.main([*arguments, "--seed", "6"]) == cli.INTERRUPTED


@pytest.mark.parametrize(
    ("prefers", "needs", "lacks", "wanted"),
    [
        ("native", None, "no openvswitch", "native"),
        ("native", "use sudo", None, "lab"),
        (None, None, "no openvswitch", "lab"),
        (None, None, None, "native"),
    ],
)
def test_auto_takes_the_testbed_that_the_experiment_prefers_where_it_can(monkeypatch, quiet, prefers, needs, lacks, wanted):
    monkeypatch.setattr(campaigns.Native, "needs", classmethod(lambda cls: needs))
    monkeypatch.setattr(campaigns.Native, "lacks", classmethod(lambda cls: lacks))
    assert campaigns.chosen("auto", {}, quiet, prefers) == wanted
    # The lab alone has what these take.
    assert campaigns.chosen("auto", {}, quiet, prefers, only_in_lab="a wire") == "lab"
    assert campaigns.chosen("lab", {}, quiet, prefers) == "lab"
    assert campaigns.chosen("auto", {"inventory": "servers.ini"}, quiet, prefers) == "remote"


def test_nodes_are_the_labs_and_auto_knows_it(monkeypatch, quiet):
    monkeypatch.setattr(campaigns.Native, "lacks", classmethod(lambda cls: None))
    assert campaigns.chosen("auto", {}, quiet) == "native"
    assert campaigns.chosen("auto", {}, quiet, only_in_lab="two nodes") == "lab"
    assert campaigns.chosen("auto", {}, quiet, "native", only_in_lab="two nodes") == "lab"
    monkeypatch.setitem(experiments.TESTBEDS, "lab", NoHost)
    name, experiment = experiments.load("numa")
    assert Campaign.check(name, experiment, "lab").host(quiet).nodes == 2
    assert vm2vm().host(quiet).nodes == 1


@pytest.mark.parametrize("testbed", ["native", "remote"])
def test_a_testbed_that_can_have_no_nodes_refuses_them_before_anything_starts(testbed, root, capsys):
    assert cli.main(["run", "vm2vm", "--nodes", "2", "--testbed", testbed]) == 2
    assert f"nodes 2: only the lab's NUMA nodes can be chosen, not those of the testbed {testbed}" in capsys.readouterr().err
    assert not list(root.iterdir())


def test_two_nodes_take_four_cpus(root, capsys):
    assert cli.main(["run", "numa", "--cpus", "2"]) == 2
    assert "nodes 2 with 2 CPUs" in capsys.readouterr().err


def test_an_interruption_is_not_hidden_by_what_fails_after_it(executed, root, quiet, monkeypatch):
    """A run in the lab would be tried again, and go on for minutes after Ctrl-C."""
    begun, _ = executed

    def interrupted(host, plan, *_):
        begun.append(plan.run_id)
        try:
            raise KeyboardInterrupt
        finally:
            raise errors.RunFailed("on the testbed, exit status 255: Broken pipe")

    monkeypatch.setattr(campaigns.run, "execute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert begun == ["r001"]
    assert json.loads((results.newest() / "manifest.json").read_text())["status"] == "partial"


def test_what_failed_first_is_told():
    def fail(*, translated: bool):
        try:
            raise errors.RunFailed("the window")
        except errors.RunFailed as error:
            raise errors.RunFailed("the cleaning up") from (error if translated else None)

    def clean_up():
        try:
            raise errors.RunFailed("the window")
        finally:
            raise errors.RunFailed("the cleaning up")

    with pytest.raises(errors.RunFailed) as caught:
        clean_up()
    assert str(campaigns._first(caught.value)) == "the window"
    with pytest.raises(errors.RunFailed) as caught:
        fail(translated=True)
    # Said in other words on purpose.
    assert str(campaigns._first(caught.value)) == "the cleaning up"
    assert campaigns._first(ValueError("alone")).args == ("alone",)


def full_disk(monkeypatch, module, name, run_id):
    """From now on what is written with ``run_id`` in its path finds no room."""
    write = getattr(module, name)

    def replace(path, *more):
        if run_id in str(path):
            raise OSError(28, "No space left on device", str(path))
        return write(path, *more)

    monkeypatch.setattr(module, name, replace)


def all_runs(store):
    return set(schema.read(store.folder / "measurements.parquet")["run_id"].to_pylist())


def test_numbers_that_found_no_room_are_measured_again_when_there_is_some(executed, root, quiet, monkeypatch):
    begun, _ = executed
    with monkeypatch.context() as full:
        full_disk(full, schema, "write", "r001")
        with pytest.raises(errors.VsprofError, match="No space left"):
            campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert json.loads((results.newest() / "manifest.json").read_text())["runs"][0]["status"] != "done"
    begun.clear()
    store = campaigns.resume(results.Results.open(results.newest()), quiet)
    assert begun == ["r001", "r002"]
    assert store.manifest["status"] == "complete"
    assert all_runs(store) == {"r001", "r002"}


def test_a_disk_that_is_full_on_the_last_run_loses_no_rows(executed, root, quiet, monkeypatch):
    begun, _ = executed
    joined = schema.join

    def full(path, parts, *more):
        parts = list(parts)
        if len(parts) == 2:
            raise OSError(28, "No space left on device", str(path))
        joined(path, parts, *more)

    with monkeypatch.context() as no_room:
        no_room.setattr(schema, "join", full)
        with pytest.raises(errors.VsprofError, match="No space left"):
            campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    assert not (root / "latest").exists()
    begun.clear()
    store = campaigns.resume(results.Results.open(results.newest()), quiet)
    assert begun == []
    assert store.manifest["status"] == "complete"
    assert all_runs(store) == {"r001", "r002"}


@pytest.mark.parametrize("left", [b"", b"PAR1", None])
def test_a_finished_run_whose_table_is_torn_is_done_again_and_that_is_said(executed, root, quiet, left):
    begun, _ = executed
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    torn = store.run_folder("r002") / "measurements.parquet"
    torn.unlink() if left is None else torn.write_bytes(left)
    begun.clear()
    again = campaigns.resume(results.Results.open(store.folder), quiet)
    assert begun == ["r002"]
    assert all_runs(again) == {"r001", "r002"}
    assert any("run r002 was done, and is repeated" in finding["text"] for finding in again.manifest["findings"])
    assert again.manifest["status"] == "complete"


def test_a_second_runner_of_the_same_result_is_refused(executed, root, quiet, capsys):
    store = campaigns.start(vm2vm(1), quiet, seed=1, root=root)
    with store.alone():
        for command in (["run", "--resume", str(store.folder)], ["report", str(store.folder)], ["parse", str(store.folder)]):
            assert cli.main(command) == 2
            assert "is in use by process" in capsys.readouterr().err
    assert not list((store.folder / "raw").glob("*.broken*"))


@pytest.mark.parametrize(
    ("vary", "asked", "cpus"),
    [
        ({}, None, None),
        ({"pairs": [1, 2]}, None, 6),
        ({"pairs": [4]}, None, 16),
        ({"switch_cpus": [1, 2]}, None, 6),
        ({"pairs": [4]}, 4, 4),
    ],
)
def test_the_lab_has_as_many_cpus_as_its_largest_case_needs(monkeypatch, quiet, vary, asked, cpus):
    seen = {}
    monkeypatch.setitem(experiments.TESTBEDS, "lab", lambda **more: seen.update(more))
    name, experiment = experiments.load("vm2vm")
    more = experiment.model_copy(update={"vary": {**experiment.vary, **vary}})
    campaigns.Campaign.check(name, more, "lab", asked).host(quiet)
    assert seen.get("cpus") == cpus
