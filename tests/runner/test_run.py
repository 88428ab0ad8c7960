# SPDX-License-Identifier: GPL-2.0-or-later
"""The windows of one traffic: which collectors count in which, in what order; from the first to the parsed numbers.

The scripts are really run, on this machine; nothing is sent.
"""

import contextlib
import itertools
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.collectors.base import Apart, Between, Clock, Collector, Glance, Marks
from vsprof.runner import campaign, parse, run, window
from vsprof.runner import experiment as experiments
from vsprof.runner import messages as runner_messages
from vsprof.runner.between import Looks
from vsprof.runner.experiment import Case, TrafficItem, Windows
from vsprof.runner.live import Watch
from vsprof.runner.run import Plan, Setting
from vsprof.switches.base import Port
from vsprof.terms import errors, schema
from vsprof.terms.placement import CpuPlan, Placement
from vsprof.terms.schema import Number
from vsprof.testbeds.base import EMULATED, MODELLED
from vsprof.testbeds.ssh import Shell
from vsprof.workloads import messages as workloads_messages
from vsprof.workloads.endpoints.base import Counters
from vsprof.workloads.topologies.base import Route
from vsprof.workloads.traffic.idle import Idle, IdleOptions

DUMPED = Path(__file__).parents[1] / "switches" / "kernel-ovs.dump-ports.txt"
ITEM = TrafficItem("idle", IdleOptions())
PLAN = Plan("r001", Case("vm2vm", "kernel-ovs", "vhost-net", 64, 1), 1, (ITEM,))


class Host:
    """This machine. Keeps what was done, in order."""

    name = "lab"
    clock = EMULATED

    def __init__(self):
        self.done: list[str] = []

    def push(self, content, path):
        Path(path).write_text(content)

    def run(self, command, timeout=60, check=True):
        self.done.append("look" if command == Peeks.command else "window")
        return subprocess.run(command, shell=True, check=check, timeout=timeout, stdout=subprocess.PIPE, text=True)

    def pull(self, path, to):
        shutil.copytree(path, to / Path(path).name)

    @contextlib.contextmanager
    def shell(self):
        shell = Shell(["bash"])
        try:
            yield shell
        finally:
            shell.close()

    def guests_held(self):
        return contextlib.nullcontext()

    def polling_last(self, cpus):
        return contextlib.nullcontext()


class Counts(Collector):
    """Prints its own name at both ends; its one number is the length of what was recorded at the end."""

    def begin(self):
        return f"echo {type(self).__name__}"

    end = begin

    @classmethod
    def numbers(cls, recorded):
        yield Number("printed", len(recorded.end), "bytes")


class Plain(Counts):
    pass


class Slow(Apart):
    """Its one number is the length of what it measured."""

    source = "model"
    words = "measured\n"

    def engage(self):
        self.host.done.append("engage")

    def measure(self, seconds):
        self.host.done.append(f"measure {seconds} s")
        return self.words

    def disengage(self):
        self.host.done.append("disengage")

    @classmethod
    def numbers(cls, recorded):
        assert recorded.begin == ""
        yield Number("printed", len(recorded.end), "bytes")


class Peeks(Between):
    """Its one number is the length of what it saw."""

    command = "true"

    def look(self):
        return self.command

    @classmethod
    def numbers(cls, recorded):
        yield Number("before", len(recorded.begin.split()), "looks")
        yield Number("behind", len(recorded.end.split()), "looks")


class Watched(Idle):
    """Idle, but every check is kept, and one may fail."""

    fails_at = 0

    def start(self):
        self.checks = 0

    def check(self):
        self.checks += 1
        self.topology.host.done.append("check")
        if self.checks == self.fails_at:
            raise errors.RunFailed("it ended early")

    def before_own_windows(self):
        self.topology.host.done.append("before own windows")


@pytest.fixture
def topology():
    """Two endpoints whose clocks pass, on a switch whose counters stand."""
    clock = itertools.count(1)
    end = SimpleNamespace(counters=lambda: Counters(float(next(clock)), 0, 0, 0, 0))
    ports = {"sender_port": Port("p1", "vhost-net", "p1"), "receiver_port": Port("p2", "vhost-net", "p2")}
    switch = SimpleNamespace(port_counters=lambda: f"cat {DUMPED}", settle=lambda flows: None)
    route = Route(end, end, *ports.values())
    there = {"switch": switch, "sender": end, "receiver": end, "routes": [route], "stands_still": lambda: False}
    return SimpleNamespace(host=Host(), plan=CpuPlan.of(4), placement=Placement, **there, **ports)


@pytest.fixture
def sent(topology, tmp_path, monkeypatch):
    """Send the traffic with these collectors; returns the run's folder."""
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "window"))
    monkeypatch.setitem(experiments.TRAFFIC, "idle", Watched)
    monkeypatch.setattr(Watched, "fails_at", 0)
    folder = tmp_path / "r001"

    def send(*classes: type[Collector], turn=run.ALONE, **windows: float) -> Path:
        for one in classes:
            monkeypatch.setitem(experiments.COLLECTORS, one.__name__.lower(), one)
        setting = Setting("vm2vm", Windows(warmup_seconds=0, seconds=0.5, own_seconds=0.1, **windows), [], frozenset())
        collectors = {one.__name__.lower(): one(topology.host) for one in classes}
        described = run._describe(PLAN, setting, topology.host, topology, collectors)
        described["traffics"].append(
            run._send(ITEM, PLAN, setting, topology, collectors, folder, lambda text: None, lambda text: None, turn)
        )
        (folder / "run.json").write_text(json.dumps(described))
        return folder

    return send


OWN = ["engage", "measure 0.1 s", "disengage", "check"]
"""What is done for one own window."""


def files(folder: Path) -> dict[str, set[str]]:
    """What each window has of collectors, by file."""
    into = folder / ITEM.label
    ours = {"samples.json", "errors.txt", *(f"{window.PORTS}.{end}" for end in ("began", "begin", "ended", "end"))}
    return {one.name: {path.name for path in one.iterdir()} - ours for one in into.iterdir() if one.name != "traffic"}


def test_a_collector_that_slows_the_host_down_shares_no_window(sent):
    plain = {f"plain.{end}" for end in ("began", "begin", "ended", "end")}
    assert files(sent(Plain, Slow, count=1)) == {"w1": plain, "slow-1": {"slow.end"}, "slow-2": {"slow.end"}}


def test_nothing_else_is_recorded_of_an_own_window(sent):
    folder = sent(Plain, Slow, count=1, own_count=1) / ITEM.label / "slow-1"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"slow.end": Slow.words}


def test_own_windows_come_last_and_between_engaging_and_disengaging(sent, topology):
    sent(Slow, Plain, count=2)
    assert topology.host.done == [
        "check", "window", "check", "window", "check",
        "before own windows", "engage", "measure 0.1 s", "measure 0.1 s", "disengage", "check",
    ]  # fmt: skip


def test_each_collector_with_own_windows_has_them_for_itself(sent, topology):
    class Other(Slow):
        pass

    folder = sent(Slow, Other, count=1, own_count=1)
    assert files(folder) == {"w1": set(), "slow-1": {"slow.end"}, "other-1": {"other.end"}}
    assert topology.host.done == ["check", "window", "check", "before own windows", *OWN, *OWN]


class Modelled(Plain, Clock):
    """Drives the clock, in which nothing but windows must pass."""

    @contextlib.contextmanager
    def modelled_time(self):
        self.host.done.append("time begins")
        yield
        self.host.done.append("time ends")

    def warm_up(self, least, most):
        pass

    def now(self):
        return 0.0

    def glance(self):
        return Glance(0.0, 0, (), (), 1e9)

    def patience(self, seconds):
        return lambda: False

    def await_packets(self, rate_pps):
        pass

    def await_quiet(self, rate_pps):
        pass

    def marks(self):
        return Marks("echo ready > marked", "echo probes >> marked", "echo opened >> marked", "echo closed >> marked")

    def read_window(self):
        return "what the model counted"

    def clock_facts(self):
        return {}


def test_in_modelled_time_all_count_in_the_same_windows_and_nothing_else_happens(sent, topology):
    topology.host.clock = MODELLED
    folder = sent(Plain, Modelled, Slow, count=2, modelled_seconds=0.05, modelled_warmup_seconds=0.01)
    both = {f"plain.{end}" for end in ("began", "begin", "ended", "end")} | {"marked"}
    assert files(folder) == {"w1": both, "w2": both, "modelled-1": {"modelled.end"}, "modelled-2": {"modelled.end"}}
    assert (folder / ITEM.label / "w1" / "marked").read_text() == "ready\nprobes\nopened\nclosed\n"
    assert (folder / ITEM.label / "modelled-2" / "modelled.end").read_text() == "what the model counted"
    assert topology.host.done == ["check", "time begins", "time ends", "check", "time begins", "time ends", "check"]


@pytest.mark.parametrize(("own", "lasts"), [(None, 0.05), (0.01, 0.01), (0.09, 0.09)])
def test_a_traffic_may_have_windows_of_another_length_in_modelled_time(topology, tmp_path, monkeypatch, own, lasts):
    seen = []
    monkeypatch.setattr(window, "measure_modelled", lambda host, traffic, shared, clock, seconds, *_: seen.append(seconds))
    traffic = Watched(topology, IdleOptions(modelled_seconds=own), 64, 1)
    traffic.start()
    topology.host.clock = MODELLED
    clock = Modelled(topology.host)
    watch = Watch(lambda seen: None, "idle", "kernel-ovs", "tap2", Placement(), clock)
    run._measure_in_modelled_time(
        traffic, Windows(count=1, modelled_seconds=0.05), {"modelled": clock}, tmp_path, watch, Looks(topology.host, {})
    )
    assert seen == [lasts]


def test_a_collector_with_windows_of_its_own_is_left_out_of_modelled_time(topology, monkeypatch):
    monkeypatch.setitem(experiments.COLLECTORS, "slow", Slow)
    for clock, left in ((EMULATED, {}), (MODELLED, {"slow": runner_messages.no_own_windows()})):
        topology.host.clock = clock
        with contextlib.ExitStack() as undo:
            assert run._set_up(topology.host, PLAN, Setting("vm2vm", Windows(), ["slow"], frozenset()), undo)[1] == left


def test_endpoints_are_asked_only_where_there_is_one_of_each(sent, topology):
    recorded = sent(Plain, count=1) / ITEM.label / "w1" / "samples.json"
    assert json.loads(recorded.read_text())["before"]
    shutil.rmtree(recorded.parents[2])
    topology.routes = topology.routes * 2
    assert json.loads((sent(Plain, count=1) / ITEM.label / "w1" / "samples.json").read_text()) is None


def test_a_switch_settles_for_the_flows_that_its_traffic_has(sent, topology):
    settled = []
    topology.switch.settle = settled.append
    sent(Plain, count=1)
    # idle, which `Watched` is here, has no flows, whatever the case says.
    assert settled == [1]


@pytest.fixture
def looks(tmp_path, monkeypatch):
    """How many looks there had been by those that each window has at this end."""
    monkeypatch.setattr(Peeks, "command", f"cd {tmp_path}; echo look >> looks; cat looks")
    return lambda folder, end: [len((one / f"peeks.{end}").read_text().split()) for one in sorted((folder / ITEM.label).glob("w*"))]


def test_a_look_is_before_the_traffic_and_behind_it_and_all_windows_have_both(sent, topology, looks):
    folder = sent(Peeks, count=2)
    assert topology.host.done == ["look", "check", "window", "check", "window", "check", "look"]
    assert looks(folder, "begin") == [1, 1]
    assert looks(folder, "end") == [2, 2]
    assert {row["name"]: row["value"] for row in parse.tables_of_run(folder)[0] if row["collector"] == "peeks"} == {
        "before": 1,
        "behind": 2,
    }


def test_where_a_traffic_can_stand_still_each_window_has_looks_of_its_own(sent, topology, looks):
    topology.stands_still = lambda: True
    folder = sent(Peeks, count=2)
    assert topology.host.done == ["look", "check", *["look", "window", "look", "check"] * 2, "look"]
    assert looks(folder, "begin") == [2, 4]
    assert looks(folder, "end") == [3, 5]


def test_a_look_that_fails_has_seen_nothing_and_costs_no_run(sent, looks, monkeypatch):
    monkeypatch.setattr(Peeks, "command", "exit 3")
    assert looks(sent(Peeks, count=1), "begin") == [0]


def test_without_such_a_collector_nothing_changes(sent, topology):
    assert files(sent(Plain, count=1)).keys() == {"w1"}
    assert topology.host.done == ["check", "window", "check"]


@pytest.fixture
def ready(topology, monkeypatch):
    """Set up one collector that gives these reasons; returns the names that are ready, and what was left out."""

    def ready(named: bool, **reasons: str) -> tuple[set[str], dict[str, str]]:
        methods = {name: lambda self, why=why: why for name, why in reasons.items()}
        monkeypatch.setitem(experiments.COLLECTORS, "plain", type("Made", (Plain,), methods))
        setting = Setting("vm2vm", Windows(), ["plain"], frozenset(["plain"] if named else []))
        with contextlib.ExitStack() as undo:
            found, left_out = run._set_up(topology.host, PLAN, setting, undo)
        return found.keys(), left_out

    return ready


def test_a_collector_that_can_not_work_is_left_out_unless_it_was_named(ready):
    assert ready(False, unavailable="no PMU") == (set(), {"plain": "no PMU"})
    with pytest.raises(errors.BadInput, match="plain can't work here: no PMU"):
        ready(True, unavailable="no PMU")


@pytest.mark.parametrize("named", [False, True])
def test_what_another_switch_has_is_left_out_though_it_was_named(ready, named):
    assert ready(named, not_of_this_switch="no poll-mode threads") == (set(), {"plain": "no poll-mode threads"})
    # Whether it could work, is not asked then.
    assert ready(named, not_of_this_switch="no poll-mode threads", unavailable="no PMU")[1] == {"plain": "no poll-mode threads"}


def test_what_can_work_is_set_up(ready):
    assert ready(True) == ({"plain"}, {})


def test_what_counts_apart_is_no_collector_of_the_normal_windows(sent):
    described = json.loads((sent(Plain, Slow, count=1) / "run.json").read_text())
    assert described["collectors"] == ["plain"]


def test_traffic_that_ended_in_an_own_window_is_noticed_once_it_is_disengaged(sent, topology, monkeypatch):
    # The checks: after the warm-up, after w1, after the own windows.
    monkeypatch.setattr(Watched, "fails_at", 3)
    with pytest.raises(errors.RunFailed, match="ended early"):
        sent(Slow, count=1)
    assert topology.host.done[-3:] == ["measure 0.1 s", "disengage", "check"]


@pytest.mark.parametrize("still", [True, False], ids=["stands-still", "goes-on"])
def test_each_window_that_all_share_has_its_turn_and_only_of_what_stands_still(sent, topology, monkeypatch, still):
    topology.stands_still = lambda: still
    turn = SimpleNamespace(give=lambda host: host.done.append("turn"))
    sent(Plain, Slow, turn=turn, count=2, own_count=1)
    give = ["turn"] if still else []
    windows = [*give, "window", "check"] * 2
    own = ["before own windows", "engage", "measure 0.1 s", "disengage", "check"]
    assert topology.host.done == ["check", *windows, *give, *own]


@pytest.mark.parametrize("step", ["engage", "measure"])
def test_it_is_disengaged_whatever_failed(sent, topology, step):
    class Stuck(Slow):
        pass

    def fail(self, *_):
        raise errors.RunFailed("no answer")

    setattr(Stuck, step, fail)
    with pytest.raises(errors.RunFailed, match="no answer"):
        sent(Stuck, Slow, count=1)
    assert topology.host.done[-1] == "disengage"
    assert topology.host.done.count("disengage") == 1


def test_what_was_recorded_becomes_the_numbers_of_its_window(sent):
    rows = parse.rows_of_run(sent(Plain, Slow, count=1, own_count=1))
    printed = {(row["window"], row["collector"]): row["value"] for row in rows if row["name"] == "printed"}
    assert printed == {("w1", "plain"): len("Plain\n"), ("slow-1", "slow"): len(Slow.words)}
    assert {row["source"] for row in rows if row["collector"] == "slow"} == {"model"}
    seconds = {row["window"]: row["value"] for row in rows if row["name"] == "window_seconds"}
    assert seconds.keys() == {"w1"}
    assert seconds["w1"] >= 0.5
    assert schema.table(rows).num_rows == len(rows) == 6 + 2


def test_a_search_without_a_rate_is_recorded_without_windows(sent, topology, monkeypatch):
    monkeypatch.setattr(Watched, "nothing_flows", lambda self: "no rate was found")
    monkeypatch.setattr(Watched, "stop", lambda self: {"search.json": "{}"})
    folder = sent(Plain, Slow, count=2)
    assert files(folder) == {}
    assert topology.host.done == []
    assert (folder / ITEM.label / "traffic" / "search.json").exists()
    [described] = json.loads((folder / "run.json").read_text())["traffics"]
    assert described["no_windows"] == "no rate was found"
    assert parse.rows_of_run(folder) == []


class Asked(Counts):
    """Takes an option, and says what it was made with."""

    options = {"pace": "how fast"}  # noqa: RUF012

    def __init__(self, host, pace=1):
        super().__init__(host)
        self.pace = pace

    def facts(self):
        return {"pace": self.pace}


@pytest.mark.parametrize(("options", "pace"), [({}, 1), ({"asked": {"pace": 7}}, 7), ({"plain": {}}, 1)])
def test_a_collector_gets_its_options_and_says_so_in_the_facts(monkeypatch, options, pace):
    monkeypatch.setitem(experiments.COLLECTORS, "asked", Asked)
    monkeypatch.setitem(experiments.COLLECTORS, "plain", Plain)
    setting = Setting("vm2vm", Windows(), ["asked", "plain"], frozenset(), options)
    with contextlib.ExitStack() as undo:
        collectors, left_out = run._set_up(Host(), PLAN, setting, undo)
    assert run._facts(collectors) == {"asked": {"pace": pace}}
    assert not left_out


class Bed(contextlib.nullcontext):
    """A testbed that writes down when it is booted."""

    name, clock = "lab", EMULATED

    def __init__(self, order, thrown_away, lacking=None):
        super().__init__(self)
        self.order, self.thrown_away, self.lacking = order, thrown_away, lacking

    def plan(self, duties):
        return None

    def facts(self):
        return {}

    def run(self, command, timeout=60, check=True):
        return SimpleNamespace(stdout="7.2.12 #1 SMP\n" if "uname" in command else "")

    def boot_lacking(self, **more):
        return self.lacking

    @contextlib.contextmanager
    def polling_last(self, cpus):
        self.order.append(f"last {cpus}")
        yield
        self.order.append("as before")

    def boot(self, kernel, **more):
        self.order.append((kernel, more))


class Part:
    """A switch, and a topology, that is there at once."""

    plan = CpuPlan.of(4)
    sender_port = receiver_port = Port("p1", "vhost-net", "p1")
    routes = (Route(None, None, sender_port, receiver_port),)

    def __init__(self, name, order, seen):
        self.name, self.order, self.seen = name, order, seen

    def stop(self):
        self.seen.append(self.name)

    def close(self):
        self.seen.append(f"closed {self.name}")

    def placement(self):
        return Placement([], {})

    def facts(self):
        return {}

    def boot(self):
        self.order.append("boot")

    def start(self):
        self.order.append(self.name)

    def ready(self):
        return None


@pytest.mark.parametrize("iommu", [False, True])
@pytest.mark.parametrize("kernel", [None, "forky"])
@pytest.mark.parametrize(("thrown_away", "stopped"), [(False, ["topology", "switch"]), (True, ["closed topology"])])
def test_what_ends_with_its_testbed_is_not_stopped_before(tmp_path, monkeypatch, thrown_away, stopped, kernel, iommu):
    seen, order = [], []

    class Path(Part):
        def __init__(self, *_):
            super().__init__("topology", order, seen)

        @classmethod
        def boots(cls, options):
            return {"iommu": True} if "rx" in options else {}

        @classmethod
        def ends(cls, options):
            return 2

        @classmethod
        def options_of(cls, access, options):
            return {}

    class Kind(Part):
        options = ()

        def __init__(self, *_):
            super().__init__("switch", order, seen)

        @classmethod
        def movers(cls, options):
            return 1

    class Asks(Counts):
        @classmethod
        def ask_ahead(cls, host):
            order.append(f"asked {host.name}")

    monkeypatch.setitem(experiments.SWITCHES, "kernel-ovs", Kind)
    monkeypatch.setitem(experiments.TOPOLOGIES, "vm2vm", Path)
    monkeypatch.setitem(experiments.COLLECTORS, "asks", Asks)
    options = {**({"kernel": kernel} if kernel else {}), **({"rx": "interrupt"} if iommu else {})}
    case = replace(PLAN.case, options=options)
    outcome = run.execute(
        Bed(order, thrown_away),
        Plan("r001", case, 1, ()),
        Setting("vm2vm", Windows(), ["asks"], frozenset()),
        tmp_path / "r001",
        lambda text: None,
    )
    assert seen == stopped
    # First of all: a testbed may come up with virtual machines that are booted, and a card is there before DPDK looks for any.
    asked = [(kernel, {"iommu": True} if iommu else {})] if kernel or iommu else []
    # What takes long to ask is asked before anything keeps its CPUs busy, but not before the machines are there: a lab that
    # was asked anything is resumed without them, and boots them in each run (25 s).
    # The switch's threads poll from their start on: while the endpoints start they come last.
    assert order == [*asked, "boot", "asked lab", "switch", "last (1,)", "topology", "as before", "last (1, 2, 3)", "as before"]
    assert outcome.facts.get("kernel") == ("7.2.12 #1 SMP" if kernel else None)


def test_a_server_that_booted_since_another_way_is_not_measured(tmp_path):
    # Whoever resumes a campaign asks no more what the host offers.
    case = replace(PLAN.case, topology="p2p_paced", options={"rx": "interrupt", "irq_thread": "on"})
    order = []
    with pytest.raises(errors.RunFailed, match="any more: no threads"):
        run.execute(
            Bed(order, False, "no threads"), Plan("r001", case, 1, ()), Setting("x", Windows(), [], frozenset()), tmp_path / "r", print
        )
    assert order == []


def test_what_died_is_told_and_not_who_missed_it_first():
    def died():
        raise workloads_messages.died("testpmd", "its last words")

    for check, told in ((died, "testpmd"), (lambda: None, "telemetry does not answer")):
        with pytest.raises(errors.RunFailed, match=told) as seen, run._explained(SimpleNamespace(check=check)):
            raise errors.RunFailed("telemetry does not answer")
        # The campaign tells this one, whatever came before it.
        assert campaign._first(seen.value) is seen.value
