# SPDX-License-Identifier: GPL-2.0-or-later
"""Ends by frame-flood, without one: what they are told, what is read of them, and what they refuse."""

import json
from types import SimpleNamespace

import pytest

from vsprof.runner import experiment as experiments
from vsprof.switches.base import Port
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.workloads.endpoints import frame_flood
from vsprof.workloads.endpoints.base import Counters, Frames
from vsprof.workloads.endpoints.own_programs import FRAME_FLOOD
from vsprof.workloads.endpoints.virtio_user import Ends, counters_of

COUNTED = {
    "ipackets": 3, "ibytes": 180, "opackets": 5, "obytes": 300, "foreign": 0,
    "send_rounds": 4, "sent_dry": 1, "receive_rounds": 2, "received_full": 1, "up": 1,
}  # fmt: skip
VALUES = {"topology": "vm2vm", "switch": "vhost-switch", "access": "virtio-user", "frame_bytes": 64, "flows": 1, "driver": "frame-flood"}


@pytest.fixture(autouse=True)
def no_other_build(monkeypatch):
    monkeypatch.delenv(FRAME_FLOOD.variable, raising=False)


class Host:
    """A host on which frame-flood answers ``said``."""

    def __init__(self, said: str = "ok", log: str = "frame-flood: ready\n", *, lives: bool = True) -> None:
        self.said, self.words, self.asked, self.started, self.pid = said, log, [], "", 7
        self.lives, self.stopped, self.counted = lives, False, COUNTED

    def run(self, command, **_):
        self.asked.append(command)
        if "/frame_flood/port" in command:
            answer = json.dumps({"clock": 12.5, "of": "", frame_flood.PORT: self.counted})
            return SimpleNamespace(stdout=f"{answer}\n" * command.count("/frame_flood/port"))
        question = next((f"/frame_flood/{word}" for word in ("start", "stop") if f"/frame_flood/{word}," in command), "")
        return SimpleNamespace(status=0, stdout=json.dumps({"clock": 1.0, "of": "", question: {"said": self.said}}))

    def start(self, name, command, *, cpus):
        self.started, self.cpus = command, cpus
        return self

    def patience(self, seconds):
        return SimpleNamespace(over=lambda: False)

    def alive(self):
        return self.lives

    def log(self):
        return self.words

    def stop(self):
        self.stopped = True


def ends(host: Host, path: str = "vector", cpus: tuple[int, ...] = (2, 3), listener: str = "endpoint") -> Ends:
    ports = [Port(name, "virtio-user", f"/run/{name}.sock", listener) for name in ("p1", "p2")]
    return Ends(host, ports, cpus, path, driver="frame-flood")


FRAMES = Frames(64, 10, None, "52:54:00:76:67:01", "52:54:00:76:67:02", "10.77.0.1", "10.77.0.2")


def test_each_end_has_a_cpu_of_its_own_where_there_are_enough():
    host = Host()
    ends(host)
    assert "--lcores 0@3,1@2,2@3 " in host.started
    ends(host, cpus=(0, 0))
    assert "--lcores 0@0,1@0 " in host.started
    assert "--port mac=52:54:00:76:67:01,path=/run/p1.sock,server=1 --port mac=52:54:00:76:67:02,path=/run/p2.sock,server=1" in host.started
    ends(host, listener="switch")
    assert "server=1" not in host.started


@pytest.mark.parametrize(
    ("path", "features"),
    [("vector", set()), ("non-mergeable", set()), ("mergeable", {"--mergeable"}), ("packed", {"--packed", "--mergeable"})],
)
def test_a_path_is_the_features_that_it_needs(path, features):
    host = Host()
    ends(host, path)
    assert {word for word in host.started.split() if word in ("--packed", "--mergeable")} == features


def test_a_flood_is_told_and_ended_and_says_what_it_counted():
    host = Host()
    one = ends(host).flood(0, FRAMES)
    one.prepare()
    one.start()
    assert "/frame_flood/start,0,60,10,52:54:00:76:67:02,10.77.0.1,10.77.0.2" in host.asked[-1]
    assert one.ended() is None
    host.counted = {**COUNTED, "send_rounds": 104, "sent_dry": 51, "receive_rounds": 12, "received_full": 2}
    said = one.stop()["frame-flood.json"]
    assert json.loads(said)["sender"]["send_rounds"] == 100
    assert frame_flood.behind_in(said) == pytest.approx(0.5)
    # Before both ends are asked what they counted.
    assert "/frame_flood/stop,0" in host.asked[-3]


def test_what_it_refuses_fails_the_run_with_its_words():
    host = Host("need the port's number")
    with pytest.raises(RunFailed, match=r"virtio-user1: start 0 60 10 52:.* 10.77.0.1 10.77.0.2: .*need the port's number"):
        ends(host).flood(0, FRAMES).start()


def test_one_that_ends_at_once_is_taken_away_and_its_words_are_told():
    host = Host(log="frame-flood: found no --port", lives=False)
    with pytest.raises(RunFailed, match=r"did not get ready.*\n?.*found no --port"):
        ends(host)
    assert host.stopped


def test_its_counters_are_an_ends():
    assert counters_of(json.dumps({"clock": 12.5, frame_flood.PORT: COUNTED})) == Counters(12.5, 3, 180, 5, 300)
    with pytest.raises(ValueError, match="not DPDK's telemetry"):
        counters_of(json.dumps({"clock": 12.5, frame_flood.PORT: None}))


def test_ends_are_behind_as_often_as_the_worse_one_is():
    assert frame_flood.behind(COUNTED, COUNTED) == pytest.approx(0.5)
    assert frame_flood.behind({**COUNTED, "sent_dry": 3}, COUNTED) == pytest.approx(0.75)
    # Nothing was sent, and nothing came.
    assert frame_flood.behind(dict.fromkeys(COUNTED, 0), dict.fromkeys(COUNTED, 0)) == 0


@pytest.mark.parametrize("text", ["{}", "[]", '{"sender": {}, "others": []}', '{"sender": null, "others": 1}'])
def test_what_is_none_of_its_counts_is_refused(text):
    with pytest.raises(ValueError, match="not what frame-flood counted"):
        frame_flood.behind_in(text)


def test_a_switch_that_does_not_take_the_rings_is_told_with_the_programs_words_and_nothing_stays(monkeypatch):
    host = Host(log="frame-flood: ready\nframe-flood: the switch at /run/p1.sock: it does not offer the features that were asked for")
    host.counted = {**COUNTED, "up": 0}
    monkeypatch.setattr(host, "patience", lambda seconds: SimpleNamespace(over=lambda: True))
    with pytest.raises(RunFailed, match="does not offer the features"):
        ends(host, "packed")
    assert host.stopped


def test_a_path_that_it_has_not_is_refused_wherever_it_is_asked_for():
    with pytest.raises(BadInput, match="path: in-order with driver: frame-flood"):
        ends(Host(), "in-order")


def test_it_sends_no_more_flows_than_its_ring_has_descriptors_and_at_no_pace():
    sender, receiver = ends(Host()).ends
    assert sender.can_not_flood(False, 1024) is None
    assert "at most 1024 flows, not 1025" in sender.can_not_flood(False, 1025)
    assert "as fast as it goes: use `driver: dpdk`" in sender.can_not_flood(True, 1)
    assert "use `driver: dpdk`" in sender.can_not_pace(receiver)


def test_only_what_it_can_do_is_offered():
    assert experiments.case(VALUES).options["driver"] == "frame-flood"
    with pytest.raises(BadInput, match="path: in-order with driver: frame-flood"):
        experiments.case({**VALUES, "path": "in-order"})
    with pytest.raises(BadInput, match="frame-flood"):
        experiments.case({**VALUES, "topology": "pvp"})


def test_a_host_without_it_is_told_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv(FRAME_FLOOD.variable, raising=False)
    host = SimpleNamespace(run=lambda command, check: SimpleNamespace(status=1))
    assert "this host has no /usr/local/bin/frame-flood: run `make -C dataplane/flood install`" in FRAME_FLOOD.unavailable(host)
    monkeypatch.setenv(FRAME_FLOOD.variable, str(tmp_path / "none"))
    assert FRAME_FLOOD.unavailable(host) is None
    with pytest.raises(BadInput, match=r"VSPROF_FRAME_FLOOD is .*none, which is no file: build dataplane/flood"):
        FRAME_FLOOD.bring(host)
