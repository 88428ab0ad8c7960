# SPDX-License-Identifier: GPL-2.0-or-later
"""The option release: whose programs a switch is started from, and where they can be had."""

from types import SimpleNamespace

import pytest

from vsprof.runner import experiment as experiments
from vsprof.terms import plugins
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds.base import RELEASES
from vsprof.testbeds.patience import Patience

SWITCHES = plugins.find("vsprof.switches", "SWITCH", hyphens=True)
HAVE_IT = ("kernel-ovs", "ovs-dpdk", "vhost-switch")


class Host:
    """A testbed with a tree of each release that it ``has``; it only writes down what is run and started there."""

    def __init__(self, *has: str) -> None:
        self.ran: list[str] = []
        self.started: dict[str, str] = {}
        self._has = has

    def run(self, command, **_):
        self.ran.append(command)
        return SimpleNamespace(status=0, stdout="ovs-vswitchd (Open vSwitch) 3.1.0", stderr="")

    patience = Patience

    def start(self, name, command, **_):
        self.started[name] = command
        return SimpleNamespace(pid=1, alive=lambda: True, log=lambda: "vhost-switch: ready", stop=lambda: None)

    def hugepages_lacking(self):
        return None

    def release_lacking(self, release):
        return None if release in self._has else f"no {release} here"

    def enter(self, release):
        return f"enter {release}" if release != RELEASES[0] else ""


def test_the_switches_whose_programs_debian_has():
    assert {name for name, switch in SWITCHES.items() if "release" in switch.options} == {*HAVE_IT}
    assert all(SWITCHES[name].options["release"] == RELEASES for name in HAVE_IT)


@pytest.mark.parametrize("name", HAVE_IT)
@pytest.mark.parametrize("release", ["bookworm", "trixie", None])
def test_daemons_are_started_in_the_release_and_nothing_else_is(name, release):
    host = Host()
    SWITCHES[name](host, CpuPlan.of(4), {"release": release} if release else {}).start()
    assert host.started
    assert all(command.startswith("enter bookworm /usr/" if release == "bookworm" else "/usr/") for command in host.started.values())
    assert not [command for command in host.ran if "ovs-vsctl" in command and "enter" in command]
    # A database has the layout that its server knows.
    creating = [command for command in host.ran if "ovsdb-tool create" in command]
    assert all(("enter bookworm ovsdb-tool" in command) == (release == "bookworm") for command in creating)


@pytest.mark.parametrize("name", HAVE_IT)
def test_a_release_that_the_testbed_lacks_is_said_and_one_not_asked_for_is_not_looked_for(name):
    assert SWITCHES[name](Host("trixie"), CpuPlan.of(4), {"release": "forky"}).unavailable() == "no forky here"
    assert SWITCHES[name](Host("trixie"), CpuPlan.of(4), {"release": "trixie"}).unavailable() is None
    assert SWITCHES[name](Host(), CpuPlan.of(4)).unavailable() is None


@pytest.mark.parametrize(("release", "setting"), [("bookworm", "pmd-maxsleep"), ("trixie", "pmd-sleep-max"), ("forky", "pmd-sleep-max")])
def test_the_poll_mode_thread_may_sleep_by_the_name_that_the_release_knows(release, setting):
    switch = SWITCHES["ovs-dpdk"](Host(), CpuPlan.of(4), {"release": release})
    assert [name for name in switch.settings() if "sleep" in name] == [setting]


@pytest.mark.parametrize("thread", ["dpdk-worker1", "rte-worker-1"])
def test_the_thread_that_moves_frames_is_known_by_each_releases_name(thread, monkeypatch):
    monkeypatch.setattr("vsprof.switches.vhost_switch.threads_of", lambda host, pid: [(7, thread, "1"), (8, "eal-intr-thread", "0")])
    switch = SWITCHES["vhost-switch"](Host(), CpuPlan.of(4))
    switch.start()
    assert [one.role for one in switch.threads()] == ["switch", "host-other"]


def test_librte_vhosts_own_threads_are_no_vhost_workers(monkeypatch):
    names = ["vhost-652", "vhost-events", "vhost_reconn", "pmd-c01/id:8"]
    monkeypatch.setattr("vsprof.switches.ovs.threads_of", lambda host, pid: [(number, name, "1") for number, name in enumerate(names)])
    switch = SWITCHES["ovs-dpdk"](Host(), CpuPlan.of(4))
    switch.start()
    assert [one.role for one in switch.threads()] == ["vhost", "switch", "switch", "switch"]


def test_the_experiment_has_every_switch_in_every_release():
    _, experiment = experiments.load("releases")
    cases = experiments.cases(experiment)
    assert [(case.switch, case.options["release"]) for case in cases] == [
        (switch, release) for switch in ("ovs-dpdk", "vhost-switch") for release in ("bookworm", "trixie", "forky")
    ]
    assert {case.options["path"] for case in cases} == {"mergeable"}


def test_a_release_that_there_is_not_is_refused_with_those_that_there_are():
    values = {"topology": "vm2vm", "switch": "ovs-dpdk", "access": "auto", "frame_bytes": 64, "flows": 1, "release": "sid"}
    with pytest.raises(BadInput, match=r"release.*'sid'.*trixie, bookworm, forky"):
        experiments.case(values)
