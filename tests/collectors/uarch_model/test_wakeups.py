# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of a wake-up, of made-up events and of those of a real window."""

import json
import math
from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import timeline, wakeups
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Span

CAPTURED = Path(__file__).parents[1] / "captured"
WORKER, OTHER = 716, 9


def wake_up(at: int, cpu: int = 1) -> list[Span]:
    """The worker is woken by CPU 2: the interrupt is sent after 300 ns, served after 30 us, and so on."""
    return [
        Span("wake", at, 0, 2, "switch", thread=WORKER),
        Span("ipi", at + 300, 0, 2, "guest", value=3.0),  # to another CPU
        Span("ipi", at + 400, 0, 2, "guest", value=float(cpu)),
        Span("irq", at + 350, 10, cpu, "softirq"),  # not this one's: it came before
        Span("irq", at + 30_400, 1_000, cpu, "softirq"),
        Span("task", at + 31_000, 200, cpu, "switch", thread=OTHER),
        Span("task", at + 32_000, 5_000, cpu, "switch", thread=WORKER),
        Span("poll", at + 33_500, 800, cpu, "switch", value=1.0),
    ]


def found(*spans: Span) -> dict[str, float | None]:
    return {one.name: one.value for one in wakeups.of(spans)}


def test_each_stage_begins_where_the_one_before_ends():
    assert found(*wake_up(1000)) == {
        "switch_wake_ups_followed": 1,
        "switch_wake_up_kick": pytest.approx(400e-9),
        "switch_wake_up_interrupt": pytest.approx(30e-6),
        "switch_wake_up_schedule": pytest.approx(1.6e-6),
        "switch_wake_up_run": pytest.approx(1.5e-6),
    }


def test_of_several_wake_ups_the_mean_is_told_and_one_that_is_cut_off_is_left_out():
    longer = [
        Span(**{**{name: getattr(one, name) for name in one.__slots__}, "time_ns": one.time_ns + 2_000}) for one in wake_up(401_000)[1:]
    ]
    both = found(*wake_up(1000), wake_up(401_000)[0], *longer, *wake_up(801_000)[:5])
    assert both["switch_wake_ups_followed"] == 2
    assert both["switch_wake_up_kick"] == pytest.approx(1.4e-6)
    assert both["switch_wake_up_run"] == pytest.approx(1.5e-6)


@pytest.mark.parametrize("kind", ["ipi", "irq", "task", "poll"])
def test_where_a_stage_was_not_written_down_there_is_no_number_and_the_reason(kind):
    numbers = list(wakeups.of(one for one in wake_up(1000) if one.kind != kind))
    assert numbers[0].value == 0
    assert [one.value for one in numbers[1:]] == [None] * 4
    assert {one.note for one in numbers[1:]} == {wakeups.NONE_SEEN}


def test_nothing_is_said_where_no_such_thread_is_woken():
    assert found(*wake_up(1000)[1:]) == {}
    assert found(Span("wake", 5, 0, 0, "host-other", thread=OTHER)) == {}


def test_over_kernel_ovs_vhost_workers_are_woken_over_ovs_dpdk_nobody():
    def of_switch(switch: str) -> dict[str, float | None]:
        data = json.loads((CAPTURED / f"timeline-{switch}.json").read_text())
        recorded = Recorded("", json.dumps(data), math.nan, Placement.from_json(data["placement"]))
        return found(*timeline.of(recorded))

    kernel = of_switch("kernel-ovs")
    assert kernel["vhost_wake_ups_followed"]
    stages = [kernel[f"vhost_wake_up_{stage}"] for stage in wakeups.STAGES if stage != "inside"]
    assert all(0 <= stage < 1e-3 for stage in stages)
    assert "vhost_wake_ups_followed" not in of_switch("ovs-dpdk")


PROGRAM = 204


def machine(at: int) -> list[Span]:
    """A switch wakes a machine, and the machine its program, as it was seen in the lab: instants as there, in ns."""
    return [
        Span("wake", at, 0, 1, "guest", "all", "CPU 1/KVM", 694),
        Span("ipi", at + 323, 0, 1, "switch", value=2.0),
        Span("irq", at + 2_924, 1_692, 2, "softirq"),
        Span("task", at + 5_795, 21_356, 2, "guest", "all", "CPU 1/KVM", 694),
        Span("guest", at + 8_996, 12_456, 2, "guest", "all", "halt"),
        Span("irq", at + 9_130, 2_897, 2, "guest", "guest", "device"),
        Span("wake", at + 10_185, 0, 2, "guest", "guest", "dpdk-worker1", PROGRAM),
        Span("task", at + 13_970, 6_239, 2, "guest", "guest", "dpdk-worker1", PROGRAM),
        Span("task", at + 27_151, 328_806, 2, None, "all", "idle", 0),
    ]


def test_a_machine_that_is_woken_wakes_its_program():
    assert found(*machine(5_000), *machine(355_000)) == {
        "guest_wake_ups_followed": 2,
        "guest_wake_up_kick": pytest.approx(323e-9),
        "guest_wake_up_interrupt": pytest.approx(2601e-9),
        "guest_wake_up_schedule": pytest.approx(2871e-9),
        "guest_wake_up_run": pytest.approx(3201e-9),
        "guest_wake_up_inside": pytest.approx(4974e-9),
    }


@pytest.mark.parametrize("kind", ["ipi", "irq", "task", "guest", "wake"])
def test_of_a_machine_nothing_is_said_where_a_stage_is_missing(kind):
    assert found(*(one for one in machine(5_000) if one.kind != kind)) == {}
    # Woken for its timer: no program of its runs.
    assert found(*(one for one in machine(5_000) if one.thread != PROGRAM)) == {}
