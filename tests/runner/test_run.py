# SPDX-License-Identifier: GPL-2.0-or-later
"""The windows of one traffic: which collectors count in which, in what order; from the first to the parsed numbers.

The scripts are really run, on this machine; nothing is sent.
"""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from collectors.base import Collector
from collectors.ovs_pmd import OvsPmd
from runner import experiment as experiments
from runner import parse, run, window
from runner.experiment import Case, TrafficItem, Windows
from runner.run import Plan, Setting
from switches.base import Port
from terms import errors, schema
from terms.placement import Placement
from terms.schema import Number
from workloads.endpoints import Counters
from workloads.traffic.idle import Idle, IdleOptions

DUMPED = Path(__file__).parents[1] / "switches" / "kernel-ovs.dump-ports.txt"
ITEM = TrafficItem("idle", IdleOptions())
PLAN = Plan("r001", Case("vm2vm", "kernel-ovs", "vhost-net", 64, 1), 1, (ITEM,))


class Host:
    """This machine. Keeps what was done, in order."""

    name = "lab"

    def __init__(self):
        self.done: list[str] = []

    def push(self, content, path):
        Path(path).write_text(content)

    def run(self, command, timeout=60, check=True):
        self.done.append("window")
        subprocess.run(command, shell=True, check=True, timeout=timeout)

    def pull(self, path, to):
        shutil.copytree(path, to / Path(path).name)


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


class Cheap(Counts):
    with_own_windows = True


class Slow(Counts):
    source = "model"
    own_windows = True

    def engage(self):
        self.host.done.append("engage")

    def disengage(self):
        self.host.done.append("disengage")

    def fetch(self):
        return "and more\n"


class Watched(Idle):
    """Idle, but every check is kept, and one may fail."""

    fails_at = 0

    def start(self):
        self.checks = 0

    def check(self):
        self.checks += 1
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
    switch = SimpleNamespace(port_counters=lambda: f"cat {DUMPED}")
    return SimpleNamespace(host=Host(), switch=switch, sender=end, receiver=end, placement=Placement, **ports)


@pytest.fixture
def sent(topology, tmp_path, monkeypatch):
    """Send the traffic with these collectors; returns the run's folder."""
    monkeypatch.setattr(window, "FOLDER", str(tmp_path / "window"))
    monkeypatch.setitem(experiments.TRAFFIC, "idle", Watched)
    monkeypatch.setattr(Watched, "fails_at", 0)
    folder = tmp_path / "r001"

    def send(*classes: type[Collector], **windows: float) -> Path:
        setting = Setting("vm2vm", Windows(warmup_seconds=0, seconds=0.5, own_seconds=0.1, **windows), [], frozenset())
        collectors = {one.__name__.lower(): one(topology.host) for one in classes}
        for name, one in collectors.items():
            monkeypatch.setitem(experiments.COLLECTORS, name, type(one))
        described = run._describe(PLAN, setting, topology.host, topology, collectors)
        described["traffics"].append(run._send(ITEM, PLAN, setting, topology, collectors, folder, lambda text: None))
        (folder / "run.json").write_text(json.dumps(described))
        return folder

    return send


def counted(folder: Path) -> dict[str, set[str]]:
    """The collectors that counted in each window."""
    into = folder / ITEM.label
    return {one.name: {p.stem for p in one.glob("*.begin")} - {window.PORTS} for one in into.iterdir() if one.name != "traffic"}


def test_a_collector_that_slows_the_host_down_shares_no_window_but_with_who_asks(sent):
    folder = sent(Plain, Cheap, Slow, count=1)
    assert counted(folder) == {"w1": {"plain", "cheap"}, "slow-1": {"cheap", "slow"}, "slow-2": {"cheap", "slow"}}


def test_own_windows_come_last_and_between_engaging_and_disengaging(sent, topology):
    sent(Slow, Plain, count=2)
    assert topology.host.done == ["window", "window", "before own windows", "engage", "window", "window", "disengage"]


def test_each_collector_with_own_windows_has_them_for_itself(sent, topology):
    class Other(Slow):
        with_own_windows = True

    folder = sent(Slow, Other, count=1, own_count=1)
    assert counted(folder) == {"w1": set(), "slow-1": {"slow"}, "other-1": {"other"}}
    assert topology.host.done == ["window", "before own windows", *["engage", "window", "disengage"] * 2]


def test_without_such_a_collector_nothing_changes(sent, topology):
    assert counted(sent(Plain, Cheap, count=1)) == {"w1": {"plain", "cheap"}}
    assert topology.host.done == ["window"]


def test_it_is_disengaged_when_a_window_fails(sent, topology, monkeypatch):
    # The checks: after the warm-up, after w1, after slow-1.
    monkeypatch.setattr(Watched, "fails_at", 3)
    with pytest.raises(errors.RunFailed, match="ended early"):
        sent(Slow, count=1)
    assert topology.host.done[-2:] == ["window", "disengage"]


def test_it_is_disengaged_when_it_could_not_be_engaged(sent, topology):
    class Stuck(Slow):
        def engage(self):
            raise errors.RunFailed("no answer")

    with pytest.raises(errors.RunFailed, match="no answer"):
        sent(Stuck, count=1)
    assert topology.host.done[-1] == "disengage"


def test_what_was_recorded_becomes_the_numbers_of_its_window(sent):
    rows = parse.rows_of_run(sent(Plain, Cheap, Slow, count=1, own_count=1))
    printed = {(row["window"], row["collector"]): row["value"] for row in rows if row["name"] == "printed"}
    assert printed == {
        ("w1", "plain"): len("Plain\n"), ("w1", "cheap"): len("Cheap\n"),
        ("slow-1", "cheap"): len("Cheap\n"), ("slow-1", "slow"): len("Slow\nand more\n"),
    }  # fmt: skip
    assert {row["source"] for row in rows if row["collector"] == "slow"} == {"model"}
    seconds = {row["window"]: row["value"] for row in rows if row["name"] == "window_seconds"}
    assert seconds["w1"] >= 0.5
    assert seconds["slow-1"] >= 0.1
    assert schema.table(rows).num_rows == len(rows) == 2 * 6 + 4


def test_the_poll_mode_threads_counters_are_there_in_every_window():
    assert OvsPmd.with_own_windows
    assert not OvsPmd.own_windows
