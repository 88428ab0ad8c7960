# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-switch: its command line, what it is told, what its telemetry says."""

import json
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.runner import experiment as experiments
from vsprof.switches.base import PortCounters
from vsprof.switches.vhost_switch import CONTROL, MINE, VhostSwitch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds import dpdk_telemetry


class Host:
    """A testbed that writes down what it was asked, and answers ``answer``."""

    def __init__(self, answer: str = "ok\n", status: int = 0) -> None:
        self.asked: list[str] = []
        self._answer, self._status = answer, status

    def run(self, command, *, timeout=60, check=True):
        self.asked.append(command)
        return SimpleNamespace(status=self._status, stdout=self._answer, stderr="")

    def hugepages_lacking(self):
        return None


def switch(host=None, **options) -> VhostSwitch:
    made = VhostSwitch(host or Host(), CpuPlan.of(4), options)
    made._process = SimpleNamespace(log=lambda: "the last words", stop=lambda: None, pid=1)
    return made


def test_the_main_lcore_keeps_house_and_the_other_moves_frames():
    words = switch().command().split()
    assert words[words.index("--lcores") + 1] == "0@0,1@1"
    assert words.index("--") < words.index(f"--control={CONTROL}")


def test_each_option_is_passed_on_and_zero_copy_brings_its_rings():
    words = switch(forward="wire", dequeue="zero-copy", rx="adaptive", stages="pmu", path="vector").command().split()
    assert {"--forward=wire", "--dequeue=zero-copy", "--rings=own", "--rx=adaptive", "--stages=pmu"} <= set(words)
    assert not [word for word in words if "vector" in word]
    assert "--pmu-events=cycles,instructions,cache-misses,branch-misses" in words
    assert "pmu-events" not in switch().command()


def test_zero_copy_out_of_librtes_rings_is_refused_before_anything_starts():
    values = {"topology": "vm2vm", "switch": "vhost-switch", "access": "auto", "frame_bytes": 64, "flows": 1, "dequeue": "zero-copy"}
    assert experiments.case(values).options == {"dequeue": "zero-copy"}
    assert experiments.case({**values, "rings": "own"}).options == {"dequeue": "zero-copy", "rings": "own"}
    with pytest.raises(BadInput, match=r"zero-copy.*rings own"):
        experiments.case({**values, "rings": "librte"})


@pytest.mark.parametrize(("socket", "listener", "more"), [("client", "endpoint", ""), ("server", "switch", ",server=1")])
def test_a_port_says_who_listens(socket, listener, more):
    host = Host()
    port = switch(host, socket=socket).add_port("p1", "virtio-user")
    assert port.listener == listener
    assert f"p1,path={port.where},queues=1{more}" in host.asked[-1].split()


def test_a_port_has_as_many_queues_as_its_endpoint():
    host = Host()
    port = switch(host, queues="4").add_port("p1", "vhost-user")
    assert f"p1,path={port.where},queues=4" in host.asked[-1].split()


def test_started_again_it_has_the_ports_that_it_had():
    made = switch(socket="server")
    assert not [word for word in made.command().split() if word.startswith("--port")]
    port = made.add_port("p1", "virtio-user")
    made.add_device("null", "net_null0,size=64")
    assert {f"--port=p1,path={port.where},queues=1,server=1", "--port=null,dev=net_null0,size=64"} <= set(made.command().split())


@pytest.mark.parametrize(("sched", "policy"), [("other", "--sched=other"), ("fifo", "--sched=fifo:1")])
def test_its_scheduling_policy_is_passed_on(sched, policy):
    assert policy in switch(sched=sched).command().split()


def test_a_shared_cpu_has_a_neighbour_from_the_first_traffic_on():
    begun = []
    host = Host()
    host.start = lambda name, command, cpus: begun.append((name, cpus)) or SimpleNamespace(stop=lambda: begun.append("stopped"))
    made = switch(host, cpu_sharing="shared")
    made.ready()
    assert begun == [("neighbour", [1])]
    assert len(made.processes()) == 2
    made.stop()
    assert begun[-1] == "stopped"
    switch(host).ready()
    assert len(begun) == 2


@pytest.mark.parametrize(("latency", "said"), [(33, ["--cpu-latency-us=33"]), (0, ["--cpu-latency-us=0"]), (None, [])])
def test_the_host_says_how_its_cpus_are_kept_from_deeper_idle_states(latency, said, monkeypatch):
    host, asked = Host(), []
    host.limit_idle_states = lambda deepest: asked.append(deepest) or latency
    made = switch(host, deepest_idle="C3")
    monkeypatch.setattr(made, "_start", lambda: None)
    made.start()
    assert asked == ["C3"]
    assert [word for word in made.command().split() if "latency" in word] == said
    # What it holds open holds for the others' windows, too.
    assert made.stands_still is (latency is None)
    other = switch(host)
    monkeypatch.setattr(other, "_start", lambda: None)
    other.start()
    assert asked == ["C3"]
    assert other.stands_still


def test_an_address_that_is_told_once_does_not_age():
    assert "--age-s=1000000" in switch(Host()).command().split()


def test_a_host_without_that_idle_state_says_so(monkeypatch):
    monkeypatch.delenv(MINE, raising=False)
    host = Host()
    host.idle_state_lacking = lambda deepest: f"no {deepest}"
    assert switch(host, deepest_idle="C6").unavailable() == "no C6"
    assert switch(host).unavailable() is None


def test_a_wire_is_taught_no_address():
    for forward, asked in (("switch", 2), ("wire", 1)):
        host = Host()
        made = switch(host, forward=forward)
        made.learn(made.add_port("p1", "virtio-user"), "52:54:00:76:67:01")
        assert len(host.asked) == asked


@pytest.mark.parametrize("answer", ["error: path is too long\n", "", "okay\n"])
def test_what_it_refuses_fails_the_run_with_its_words(answer):
    with pytest.raises(RunFailed, match=r"add-port p1(.|\n)*the last words") as refused:
        switch(Host(answer)).add_port("p1", "virtio-user")
    assert answer.strip() in str(refused.value)


def test_a_testbed_without_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv(MINE, raising=False)
    assert switch(Host()).unavailable() is None
    assert "make host" in switch(Host(status=1)).unavailable()
    monkeypatch.setenv(MINE, str(tmp_path / "none"))
    assert "VSPROF_VHOST_SWITCH" in switch(Host()).unavailable()
    monkeypatch.setenv(MINE, sys.executable)
    assert switch(Host(status=1)).unavailable() is None


def answer(name="p1", **more) -> str:
    port = {"name": name, "kind": "vhost", "rx_packets": 11, "rx_bytes": 660, "tx_packets": 5, "tx_bytes": 300, **more}
    return json.dumps({"clock": 12.5, "of": "", "/vhost_switch/port": port})


def test_the_counters_of_its_ports():
    assert VhostSwitch.parse_port_counters(f"{answer()}\n{answer('p2', rx_packets=0)}\n") == {
        "p1": PortCounters(11, 660, 5, 300), "p2": PortCounters(0, 660, 5, 300),
    }  # fmt: skip
    assert VhostSwitch.parse_port_counters("") == {}


pieces = st.sampled_from(
    [answer(), answer()[:40], "{}", "[1]", "null", '{"clock": 1, "/vhost_switch/port": 5}', answer(rx_packets=None), "\n"]
)


@given(st.text(max_size=40) | st.lists(pieces, max_size=4).map("\n".join))
def test_any_text_gives_counters_or_a_value_error(text):
    try:
        found = VhostSwitch.parse_port_counters(text)
    except ValueError:
        return
    assert all(isinstance(counters, PortCounters) for counters in found.values())


# --- Against a real socket -------------------------------------------------------------------------------------------


def test_questions_are_put_to_a_socket_as_dpdk_speaks(tmp_path, monkeypatch):
    """Each member of a list is asked about, and each answer is one line."""
    import socket  # noqa: PLC0415

    path = tmp_path / "telemetry"
    replies = {
        "/lcores": {"/lcores": [1, 5]}, "/lcore,1": {"/lcore": {"lcore": 1}}, "/lcore,5": {"/lcore": {"lcore": 5}}, "/info": {"/info": {}},
    }  # fmt: skip
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(str(path))
    listening.listen(1)

    def serve() -> None:
        peer, _ = listening.accept()
        peer.send(b'{"version": "DPDK", "pid": 1, "max_output_len": 16384}')
        while question := peer.recv(1024):
            peer.send(json.dumps(replies[question.decode()]).encode())

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    ask = [sys.executable, "-S", "-c", dpdk_telemetry.ASK, str(path), "/info", "/lcore,*=/lcores"]
    printed = subprocess.run(ask, capture_output=True, text=True, check=True, timeout=30).stdout
    listening.close()
    said = [(question, of, found) for _, question, of, found in dpdk_telemetry.answers(printed)]
    assert said == [("/info", "", {}), ("/lcore", "1", {"lcore": 1}), ("/lcore", "5", {"lcore": 5})]
