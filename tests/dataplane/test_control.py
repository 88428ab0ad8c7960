# SPDX-License-Identifier: GPL-2.0-or-later
"""The control socket, telemetry, and a graceful end."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from frontend import eventually
from modes import DATAPATHS
from running import FOLDER, IDLE, Switch, fresh, kept
from traffic import BROADCAST, Load, exchange, frames, introduce, mac

pytestmark = pytest.mark.dataplane
NONSENSE = {
    "no-such-command": "frobnicate",
    "empty": "",
    "remove-what-is-not-there": "remove-port nobody",
    "remove-nothing": "remove-port",
    "add-nothing": "add-port",
    "add-without-path": "add-port x",
    "add-too-long": f"add-port x,path=/run/{'x' * 120},server=1",
    "add-nowhere": "add-port x,path=/no/such/folder/x,server=1",
    "add-no-device": "add-port x,dev=no_such_device0",
    "learn-no-port": "learn nobody 52:54:00:00:00:01",
    "learn-no-address": "learn",
    "learn-half-an-address": "learn nobody 52:54",
    "set-nothing": "set",
    "set-unknown": "set colour red",
    "set-stages-unknown": "set stages some",
    "long": "x" * 5000,
    "not-text": "\0\1\2\x7f",
}
PORT_COUNTERS = {
    "name", "kind", "up", "queues", "numa_node", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "tx_dropped_full", "tx_dropped_down",
    "rx_refused", "tx_too_long", "broken_rings", "connects", "in_flight", "features",
}  # fmt: skip
LCORE_COUNTERS = {
    "lcore", "cpu", "rx_bursts", "rx_packets", "empty_polls", "busy_cycles", "idle_cycles", "sleeps", "wakeups", "sleep_ns",
    "stage_dequeue_cycles", "stage_parse_cycles", "stage_lookup_cycles", "stage_enqueue_cycles", "stage_other_cycles",
    "split_bursts", "split_packets", "flooded", "filtered", "tsc_hz",
}  # fmt: skip
POLICIES = {"other": os.SCHED_OTHER, "batch": os.SCHED_BATCH, "idle": os.SCHED_IDLE, "fifo:3": os.SCHED_FIFO, "rr:1": os.SCHED_RR}
WHO = {"name", "kind", "features", "up", "queues", "numa_node", "lcore", "cpu", "pid"}
"""What is no counter."""


@pytest.fixture
def plain(keeper) -> Iterator[Switch]:
    yield from kept(keeper, ())


@pytest.fixture
def two(plain, guests):
    made = guests(), guests()
    for name, guest in zip("ab", made, strict=True):
        plain.attach(guest, name)
        guest.post(100)
    return made


@pytest.mark.parametrize("line", NONSENSE.values(), ids=list(NONSENSE))
def test_nonsense_is_answered_with_an_error(plain, line):
    answer = plain.answer(line)
    assert answer.startswith("error: "), answer
    assert plain.ports() == []


def test_a_name_is_given_once(plain):
    spec = f"a,path={FOLDER}/once,server=1"
    plain.control(f"add-port {spec}")
    assert plain.answer(f"add-port {spec}").startswith("error: ")
    assert "a" in plain.answer(f"add-port {spec}")
    assert plain.ports() == ["a"]
    plain.control("remove-port a")
    plain.control(f"add-port {spec}")


def test_there_is_a_last_port(plain):
    most = 64
    answers = [plain.answer(f"add-port p{number},path={FOLDER}/{plain.name}.p{number},server=1") for number in range(most)]
    taken = [answer for answer in answers if answer.startswith("ok")]
    assert 8 <= len(taken) < most
    assert answers[len(taken)].startswith("error: ")
    assert len(plain.ports()) == len(taken)


def test_one_who_says_nothing_keeps_nobody_waiting(plain, two):
    path = str(plain.local(f"{FOLDER}/{plain.name}.control"))
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(10)]
    for one in silent:
        one.connect(path)
        one.send(b"por")
    assert plain.control("ports")
    exchange(*two, frames(5, mac(1), mac(2)))
    silent[0].settimeout(5)
    silent[0].send(b"ts\n")
    assert silent[0].recv(100).startswith(b"ok")
    for one in silent:
        one.close()
    assert plain.control("ports")


def test_several_commands_in_one_connection(plain):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(5)
        talk.connect(str(plain.local(f"{FOLDER}/{plain.name}.control")))
        talk.sendall(b"ports\nnonsense\nflush-macs\n")
        answers = talk.makefile("rb")
        assert [answers.readline().split()[0] for _ in range(3)] == [b"ok", b"error:", b"ok"]


def test_telemetry_has_what_is_promised(plain, two):
    exchange(*two, frames(23, mac(1), mac(2)))
    assert plain.ask("/vhost_switch/ports") == [*IDLE, "a", "b"]
    port = plain.port("a")
    assert port.keys() >= PORT_COUNTERS, PORT_COUNTERS - port.keys()
    assert (port["name"], port["kind"], port["up"], port["queues"], port["connects"]) == ("a", "vhost", 1, 1, 1)
    assert int(port["features"], 16) == two[0].features
    queue = plain.ask("/vhost_switch/queue,a,0")
    assert (queue["rx_packets"], queue["rx_bytes"]) == (23, 23 * 60)
    [number] = plain.ask("/vhost_switch/lcores")
    lcore = plain.ask(f"/vhost_switch/lcore,{number}")
    assert lcore.keys() >= LCORE_COUNTERS, LCORE_COUNTERS - lcore.keys()
    bursts = plain.ask(f"/vhost_switch/burst_histogram,{number}")
    assert len(bursts) == 33
    assert sum(size * times for size, times in enumerate(bursts)) == lcore["rx_packets"]
    cycles = plain.ask(f"/vhost_switch/cycles_histogram,{number}")
    assert 1 <= sum(cycles["counts"]) == lcore["split_bursts"] <= lcore["timed_bursts"] == sum(bursts[1:])
    units = plain.ask("/vhost_switch/units")
    counted = {*port, *lcore} - WHO
    assert counted <= units.keys(), f"no unit is told of {sorted(counted - units.keys())}"
    assert plain.ask("/vhost_switch/settings")["forward"] == "switch"


def test_the_stages_of_one_burst_in_eight_are_told_apart(plain, two):
    """By chance, and at least one in sixteen; all bursts are timed, and no stage takes longer than they."""
    with Load(*two, frames(32, mac(1), mac(2))) as load:
        eventually(lambda: load.received > 32 * 200, "200 bursts", plain.log)
    [number] = plain.ask("/vhost_switch/lcores")
    lcore = plain.ask(f"/vhost_switch/lcore,{number}")
    assert lcore["timed_packets"] == lcore["rx_packets"]
    assert lcore["timed_bursts"] / 17 <= lcore["split_bursts"] < lcore["timed_bursts"] / 4
    stages = sum(lcore[f"stage_{stage}_cycles"] for stage in ("dequeue", "parse", "lookup", "enqueue"))
    assert 0 < stages < lcore["busy_cycles"]


@pytest.mark.parametrize("question", ["port,nobody", "port", "queue,a,99", "queue,a", "lcore,999", "lcore,x", "burst_histogram,999"])
def test_telemetry_of_what_is_not_there_is_no_crash(plain, two, question):
    plain.ask(f"/vhost_switch/{question}")
    exchange(*two, frames(5, mac(1), mac(2)))


def test_stages_can_be_switched_on_and_off_under_load(plain, two):
    with Load(*two, frames(32, mac(1), mac(2))) as load:
        for stages in ("off", "on") * 5:
            plain.control(f"set stages {stages}")
            load.flows()


@pytest.mark.parametrize(("sched", "policy"), POLICIES.items(), ids=list(POLICIES))
def test_workers_have_the_scheduling_policy_and_forward(keeper, guests, sched, policy):
    for switch in kept(keeper, ("--rx", "interrupt", "--sched", sched)):
        lcore = switch.ask("/vhost_switch/lcore,1")
        assert os.sched_getscheduler(lcore["pid"]) == policy
        assert os.sched_getscheduler(switch.process.pid) == os.SCHED_OTHER
        a, b = switch.attach(guests(), "a"), switch.attach(guests(), "b")
        b.post(50)
        exchange(a, b, frames(23, mac(1), mac(2)))


def test_sleep_states_are_limited_as_long_as_it_runs(host, keeper):
    limit = Path("/dev/cpu_dma_latency")
    if not limit.exists():
        pytest.skip(f"this kernel has no {limit}")
    for switch in kept(keeper, ("--cpu-latency-us", "20")):
        held = [os.readlink(one) for one in Path(f"/proc/{switch.process.pid}/fd").iterdir() if one.is_symlink()]
        assert any(one.endswith(str(limit)) for one in held), held


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("options", DATAPATHS.values(), ids=list(DATAPATHS))
def test_it_ends_gracefully_under_load(host, keeper, guests, options, number):
    keeper.stop()
    switch = Switch(host, fresh(), (*options, "--hold-us", "100000"), workers=2)
    try:
        a, b, c, d = (guests() for _ in range(4))
        for name, guest in zip("abc", (a, b, c), strict=True):
            switch.attach(guest, name)
        switch.attach(d, "d", server=False)
        for guest in (b, d):
            guest.post(100)
        introduce(b, 2, [d])
        with Load(a, b, [*frames(32, mac(1), mac(2)), *frames(2, mac(1), BROADCAST)]) as load:
            load.flows()
            switch.process._child.send_signal(number)
            eventually(lambda: not switch.alive(), "it to end", switch.log)
    finally:
        switch.stop()
    assert switch.status() == 0, switch.log()
    for guest in (a, b, c, d):
        assert not guest.connection.open()
    left = host.run(f"ls {FOLDER}").stdout.split()
    assert [one for one in left if one.startswith(f"{switch.name}.")] == [f"{switch.name}.d"], "the guest's socket alone is left"


def test_a_guest_that_listens_is_found_again_by_the_next_switch(host, keeper, guests):
    keeper.stop()
    guest = guests()
    host.run(f"mkdir -p {FOLDER}")
    path = f"{FOLDER}/{fresh()}.g"
    guest.listen(host.socket(path))
    for _ in range(2):
        switch = Switch(host, fresh(), ("--port", f"g,path={path}"))
        try:
            guest.accept()
            switch.await_up("g")
            other = switch.attach(guests(), "o")
            guest.post(30)
            exchange(other, guest, frames(23, mac(1), mac(2)))
        finally:
            status = switch.stop()
        assert status == 0
        guest.die()
        guest.reset()
