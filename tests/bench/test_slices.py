# SPDX-License-Identifier: GPL-2.0-or-later
"""Ratios of slices that follow one another, whatever the machine does meanwhile."""

import random

import pytest

from vsprof.bench import slices
from vsprof.terms.errors import RunFailed


class Machine:
    """Two programs, one of which is twice as fast, on a machine whose speed changes by a factor with each look."""

    def __init__(self, drift: float) -> None:
        self.speed, self.drift, self.looks = 1.0, drift, ""

    def look(self, name: str, rate: float) -> float:
        self.looks += name
        self.speed *= self.drift
        return rate * self.speed


@pytest.mark.parametrize("drift", [1.0, 0.5, 1.3])
@pytest.mark.parametrize("seed", range(4))
def test_a_machine_that_grows_slower_by_the_same_factor_changes_no_ratio(drift, seed):
    random.seed(seed)
    machine = Machine(drift)
    assert slices.ratio(lambda: machine.look("a", 2e6), lambda: machine.look("b", 1e6)) == pytest.approx(2)
    assert machine.looks in ("abba", "baab")


def test_either_of_the_two_begins():
    seen = set()
    for _ in range(40):
        machine = Machine(1.0)
        slices.ratio(lambda machine=machine: machine.look("a", 1.0), lambda machine=machine: machine.look("b", 1.0))
        seen.add(machine.looks)
    assert seen == {"abba", "baab"}


def test_something_is_done_before_each_look():
    done = []
    slices.ratio(lambda: 1.0, lambda: 2.0, lambda: done.append(None))
    assert len(done) == 4


class Host:
    """Writes down when it was frozen."""

    def __init__(self) -> None:
        self.done = []

    def freeze(self) -> None:
        self.done.append("freeze")

    def thaw(self) -> None:
        self.done.append("thaw")


def test_a_slice_in_which_nothing_came_is_tried_again():
    # Both ends of each slice: the first has none.
    counted = iter([10, 10, 10, 110])
    host = Host()
    assert slices.Contender(host, lambda: next(counted), dict).slice(lambda: None).packets_per_second > 0
    assert host.done == ["thaw", "freeze"] * 2


def test_where_never_anything_comes_it_is_an_error_and_all_is_frozen():
    host = Host()
    with pytest.raises(RunFailed, match="no packet arrived in 3 slices"):
        slices.Contender(host, lambda: 10, dict).slice(lambda: None)
    assert host.done == ["thaw", "freeze"] * 3


def test_busy_cycles_are_of_the_packets_that_were_timed():
    counted, busy = iter([0, 1000]), iter([(500.0, 10.0), (8500.0, 110.0)])
    contender = slices.Contender(
        Host(), lambda: next(counted), lambda: dict(zip(("busy_cycles", "timed_packets"), next(busy), strict=True))
    )
    seen = contender.slice(lambda: None)
    assert seen.busy_cycles_per_packet == 80.0
    assert seen.behind is None


def test_how_often_the_ends_were_behind_is_of_the_worse_one():
    counted = iter([0, 1000])
    sent = iter([{"send_rounds": 10.0, "sent_dry": 5.0}, {"send_rounds": 110.0, "sent_dry": 15.0}])
    received = iter([{"receive_rounds": 0.0, "received_full": 0.0}, {"receive_rounds": 10.0, "received_full": 4.0}])
    contender = slices.Contender(Host(), lambda: next(counted), dict, lambda: next(sent), lambda: next(received))
    assert contender.slice(lambda: None).behind == pytest.approx(0.4)


def test_the_calibration_says_how_much_the_slowest_loops_were_slowed():
    disturbance = slices.Disturbance(0)
    disturbance.loops = dict(enumerate([1.0] * 15 + [1.5] * 5))
    assert disturbance.slowed() == pytest.approx(0.5)
    disturbance.look()
    assert 0 < [*disturbance.loops.values()][-1] < 1
    assert disturbance.stolen() >= 0


@pytest.mark.parametrize(("middle", "took"), [(0.5, 0.4), (1.5, 0.4), (2.5, 0.7), (3.5, 0.7), (9.0, 0.5)])
def test_a_slice_knows_the_longer_of_the_loops_beside_it(middle, took):
    disturbance = slices.Disturbance(0)
    disturbance.loops = {1.0: 0.4, 2.0: 0.3, 3.0: 0.7, 4.0: 0.5}
    assert disturbance.beside(slices.Slice(1e6, 70.0, middle=middle)) == slices.Slice(1e6, 70.0, middle=middle, loop_s=took)


def test_a_program_that_ended_is_one_clear_error():
    telemetry = slices.Telemetry.__new__(slices.Telemetry)
    ours, theirs = slices.socket.socketpair(slices.socket.AF_UNIX, slices.socket.SOCK_SEQPACKET)
    telemetry._socket, telemetry._prefix = ours, "vhost-switch"
    theirs.close()
    with pytest.raises(RunFailed, match="vhost-switch does not answer DPDK's telemetry"):
        telemetry.ask("/ethdev/stats,1")
    telemetry.close()
