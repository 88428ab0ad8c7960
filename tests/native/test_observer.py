# SPDX-License-Identifier: GPL-2.0-or-later
"""Does `make bench-observer` see an instrument that disturbs? One that takes half of the switch's CPU must show; its absence must not."""

import pytest

from vsprof.bench import observer
from vsprof.bench.flood import Flow, flowing
from vsprof.collectors.base import Apart, Collector
from vsprof.runner.experiment import Case
from vsprof.testbeds.native import Native

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
TURNS, SECONDS = 3, 0.5
"""Of a window: the thief's shells take a part of it to begin. With 0.25 s the ratio of a thief apart was 0.71 on one machine."""


class Thief(Collector):
    """Two loops that compete with the switch's thread for its CPU while a window passes: a third is left."""

    def begin(self) -> str:
        cpu = self.host.plan().switch
        return f"for i in 1 2; do timeout 20 taskset -c {cpu} sh -c 'while :; do :; done' & done"

    def end(self) -> str:
        return "kill $(jobs -p)"

    @classmethod
    def numbers(cls, recorded):
        return ()


class ThiefApart(Thief, Apart):
    def measure(self, seconds: float) -> str:
        self.host.run(f"{self.begin()}\nsleep {seconds}\n{self.end()}")
        return ""


@pytest.fixture(scope="module")
def flow() -> Flow:
    case = Case("vm2vm", "ovs-dpdk", "virtio-user", 64, 1)
    with flowing(Native(), case, print) as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("thief", [Thief, ThiefApart])
def test_an_instrument_that_takes_the_switchs_cpu_is_seen(flow, thief, monkeypatch):
    monkeypatch.setitem(observer.COLLECTORS, "thief", thief)
    ratio = observer._of_collector(flow, "thief", TURNS, SECONDS, observer.Undisturbed(), print)
    assert ratio.n == TURNS
    assert ratio.median < 0.7


def test_one_that_can_not_work_is_named_with_its_reason(flow, capsys, monkeypatch):
    monkeypatch.setattr(Thief, "unavailable", lambda self: "nothing to steal")
    monkeypatch.setitem(observer.COLLECTORS, "thief", Thief)
    assert observer._of_collector(flow, "thief", TURNS, SECONDS, observer.Undisturbed(), print) is None
    assert "thief not measured: nothing to steal" in capsys.readouterr().out


def test_every_case_has_a_name_of_its_own():
    _, experiment = observer.experiments.load("vm2vm")
    cases = observer.experiments.cases(experiment)
    assert {observer._named("softirqs_throughput_ratio", case) for case in cases} == {
        "softirqs_throughput_ratio", "softirqs_throughput_ratio_kernel-ovs"
    }  # fmt: skip
