# SPDX-License-Identifier: GPL-2.0-or-later
"""What perf told of a real host, as spans."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.timeline import NEEDED, Timeline
from vsprof.terms import errors
from vsprof.terms.placement import Placement, Thread
from vsprof.terms.schema import Span

CAPTURED = (Path(__file__).with_name("captured") / "timeline.end").read_text()
PLACEMENT = Placement([Thread("pmd-c01/id:8", 41, "switch", (1,)), Thread("vhost-7", 42, "vhost", (0,))], {1: "switch"})


def recorded(text: str, size: int | None = None) -> Recorded:
    return Recorded("", json.dumps({"bytes": len(text) if size is None else size}) + "\n" + text, math.nan, PLACEMENT)


def spans(*lines: str) -> list[Span]:
    """Without what is known of the whole."""
    return [one for one in Timeline.spans(recorded("".join(f"{line}\n" for line in lines))) if one.kind != "recorded"]


def test_a_real_recording_has_each_cpus_threads_without_a_gap():
    found = list(Timeline.spans(Recorded("", CAPTURED, math.nan, Placement())))
    known = [one for one in found if one.kind == "recorded"]
    assert [one.cpu for one in known] == [0, 1]
    for cpu in (0, 1):
        tasks = [one for one in found if one.kind == "task" and one.cpu == cpu]
        assert tasks[0].time_ns == 0
        assert [one.time_ns + one.duration_ns for one in tasks] == [*(one.time_ns for one in tasks[1:]), known[cpu].duration_ns]
    assert {one.kind for one in found} >= {"wake", "irq", "softirq", "sleep"}
    assert any(one.name == "idle" and one.role is None for one in found)
    # Each waking is before its thread's next turn.
    assert sum(one.kind == "wake" for one in found) > 10
    numbers = {one.name: one.value for one in Timeline.numbers(Recorded("", CAPTURED, math.nan, Placement()))}
    assert numbers == {"timeline_lost_events": 0, "timeline_seconds": known[0].duration_ns / 1e9}


def test_each_kind_from_its_events():
    found = spans(
        "   41 [001] 5.000000000: irq_vectors:local_timer_entry: vector=236",
        "   41 [001] 5.000001000: irq_vectors:local_timer_exit: vector=236",
        "   41 [001] 5.000001500: openvswitch:ovs_dp_upcall: dev=eth0",
        "   41 [001] 5.000002000: sched:sched_waking: comm=a name with pid=3 pid=42 prio=120 target_cpu=000",
        "    0 [000] 5.000003000: power:cpu_idle: state=4294967295 cpu_id=0",
        "    0 [000] 5.000004000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=vhost-7 next_pid=42 next_prio=120",
        "   42 [000] 5.000005000: kvm:kvm_entry: vcpu 0, rip 0xffffffff81000000",
        "   42 [000] 5.000007000: kvm:kvm_exit: vcpu 0 reason HLT rip 0xffffffff81000000 info1 0x0 info2 0x0",
        "   42 [000] 5.000008000: irq:irq_handler_entry: irq=31 name=virtio0-input.0",
        "   42 [000] 5.000009000: irq:irq_handler_exit: irq=31 ret=handled",
        "   42 [000] 5.000009000: irq:softirq_entry: vec=3 [action=NET_RX]",
        "   42 [000] 5.000010000: irq:softirq_exit: vec=3 [action=NET_RX]",
    )
    assert sorted(found, key=lambda one: (one.cpu, one.time_ns, one.duration_ns)) == [
        Span("task", 0, 4000, 0, None, "all", "idle", 0),
        Span("task", 4000, 6000, 0, "vhost", "all", "vhost-7", 42),
        Span("guest", 5000, 2000, 0, "guest", "all", "HLT"),
        Span("irq", 8000, 1000, 0, "softirq", "all", "virtio0-input.0"),
        Span("softirq", 9000, 1000, 0, "softirq", "all", "net_rx"),
        Span("irq", 0, 1000, 1, "softirq", "all", "timer"),
        Span("task", 0, 10000, 1, "switch", "all", "pmd-c01/id:8", 41),
        Span("upcall", 1500, 0, 1, "switch"),
        Span("wake", 2000, 0, 1, "vhost", "all", "a name with pid=3", 42),
    ]


def test_what_was_lost_or_cut_has_no_spans():
    line = "   41 [001] 5.000000000: irq_vectors:local_timer_entry: vector=236\n"
    assert Timeline.spans(recorded(line, size=9999)) == []
    assert Timeline.spans(recorded(line + "   41 [001] 5.1: PERF_RECORD_LOST lost 7\n")) == []


@pytest.mark.parametrize(
    "line", ["hello", "   41 [001] 5.1: sched:sched_wakeup: comm=a pid=1 prio=1 x", "   41 [001] 5.1: kvm:kvm_exit: nothing", ""]
)
def test_what_is_no_event_of_a_timeline_is_refused(line):
    with pytest.raises(ValueError, match=r"event|tells"):
        spans(line)


def test_events_that_the_host_lacks_are_left_out():
    host = SimpleNamespace(run=lambda command, **_: SimpleNamespace(stdout="kvm:kvm_entry\nkvm:kvm_exit\n", status=0, stderr=""))
    collector = Timeline(host)
    assert collector.unavailable() is None
    collector.setup()
    assert collector.facts() == {"events": [*NEEDED, "kvm:kvm_entry", "kvm:kvm_exit"]}


@pytest.mark.parametrize("given", [0, -1, 1001, "5", True])
def test_milliseconds_that_will_not_do_are_named(given):
    with pytest.raises(errors.BadInput, match=f"milliseconds are {given!r}: need a number above 0, up to 1000"):
        Timeline.check_options({"milliseconds": given})
    Timeline.check_options({"milliseconds": 5})
