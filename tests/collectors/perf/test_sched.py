# SPDX-License-Identifier: GPL-2.0-or-later
"""The scheduler's story, on what perf 6.1 (Debian 12) and 6.12 (Debian 13) printed, and on short made-up ones whose end is known."""

import json
import re
from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_text import Recording, nanoseconds
from vsprof.collectors.sched import BOUNDS_US, Sched
from vsprof.collectors.sched.story import Story
from vsprof.terms.placement import Placement, Thread

CAPTURED = Path(__file__).parents[1] / "captured"
VERSIONS = ("6.1", "6.12")
PLACEMENT = Placement([Thread("a", 10, "switch", (0,)), Thread("b", 20, "guest", (0,)), Thread("c", 30, "vhost", (1,))])


def recorded(text: str, placement: Placement = PLACEMENT) -> Recorded:
    return Recorded("", Recording({"bytes": len(text.encode())}, text).recorded(), float("nan"), placement)


def captured(name: str) -> str:
    return (CAPTURED / "perf" / f"{name}.txt").read_text()


def numbers(text: str, placement: Placement = PLACEMENT) -> dict[tuple[str, str | None], float | None]:
    return {(number.name, number.role): number.value for number in Sched.numbers(recorded(text, placement))}


def switch(us: int, left: int, state: str, then: int, cpu: int = 0) -> str:
    told = f"prev_comm=t{left} prev_pid={left} prev_prio=120 prev_state={state} ==> next_comm=t{then} next_pid={then} next_prio=120"
    return f"  {left} [{cpu:03d}] 7.{us:06d}000:       sched:sched_switch: {told}\n"


def wake(us: int, thread: int, cpu: int = 0, kind: str = "sched_wakeup") -> str:
    return f"  99 [{cpu:03d}] 7.{us:06d}000: sched:{kind}: comm=t{thread} pid={thread} prio=120 target_cpu={cpu:03d}\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_switch_has_its_reason(version):
    text = captured(f"sched-{version}")
    found = numbers(text)
    for letters, name in (("S", "sleeping"), ("D", "uninterruptible"), ("R", "preempted"), ("I", "idle_worker"), ("XZ", "ended")):
        # By hand: lines of that state, but for the idle task's.
        lines = re.findall(rf"prev_pid=(?!0 )\d+ prev_prio=\d+ prev_state=[{letters}]", text)
        assert sum(value for (one, _), value in found.items() if one == f"switches_{name}") == len(lines)
    assert sum(value for (one, _), value in found.items() if one == "switches_sleeping") > 10


@pytest.mark.parametrize("version", VERSIONS)
def test_who_ran_next_is_known_of_each_switch(version):
    text = captured(f"sched-{version}")
    counts = list(Sched.functions(recorded(text)))
    assert sum(count.value for count in counts) == len(re.findall(r"prev_pid=(?!0 )", text))
    idle = [count for count in counts if count.object == "idle"]
    assert sum(count.value for count in idle) == len(re.findall(r"prev_pid=(?!0 ).* next_pid=0 ", text))
    assert {count.function for count in idle} == {"swapper"}


@pytest.mark.parametrize("version", VERSIONS)
def test_no_time_is_counted_twice(version):
    text = captured(f"sched-{version}")
    found = numbers(text)
    window = found["window_seconds", None]
    on_cpu = sum(value for (name, _), value in found.items() if name == "on_cpu_seconds")
    assert 0 < on_cpu < 2 * window  # two CPUs
    times = [nanoseconds(time) for time in re.findall(r"\] (?:\s*)(\d+\.\d{9}):", text)]
    assert window == pytest.approx((max(times) - min(times)) / 1e9)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_histogram_holds_each_wait_once(version):
    found = numbers(captured(f"sched-{version}"))
    for role in {role for name, role in found if name == "run_queue_waits"}:
        buckets = [found[f"run_queue_latency_below_{bound}us", role] for bound in BOUNDS_US] + [found["run_queue_latency_longer", role]]
        assert sum(buckets) == found["run_queue_waits", role]


@pytest.mark.parametrize("version", VERSIONS)
def test_where_events_were_lost_nothing_is_claimed(version):
    text = captured(f"sched-lost-{version}")
    told = sum(int(count) for count in re.findall(r"PERF_RECORD_LOST lost (\d+)", text))
    found = list(Sched.numbers(recorded(text)))
    assert told > 0
    assert [number.value for number in found if number.name == "lost_events"] == [told]
    others = [number for number in found if number.name != "lost_events"]
    assert others
    assert all(number.value is None and f"lost {told} events" in number.note for number in others)
    assert list(Sched.functions(recorded(text))) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_with_and_without_losses_the_same_names_are_there(version):
    whole = {number.name for number in Sched.numbers(recorded(captured(f"sched-{version}")))}
    lacking = {number.name for number in Sched.numbers(recorded(captured(f"sched-lost-{version}")))}
    assert lacking - whole == set()
    assert {name for name in whole - lacking if not name.startswith("run_queue_latency_")} == {"window_seconds"}


def test_a_wait_lasts_from_being_woken_to_running():
    found = numbers(switch(0, 10, "S", 0) + wake(100, 20) + switch(130, 0, "R", 20) + switch(200, 20, "S", 0))
    assert found["run_queue_latency_max", "guest"] == found["run_queue_latency_p50", "guest"] == 30e-6
    assert found["run_queue_latency_below_32us", "guest"] == 1
    assert found["run_queue_waits", "guest"] == 1
    assert found["slice_mean", "guest"] == 70e-6
    assert found["preempted_wait_seconds", "guest"] == 0


def test_who_lost_a_cpu_waits_for_another():
    found = numbers(switch(0, 10, "R+", 20) + switch(50, 20, "S", 10) + switch(90, 10, "S", 0))
    assert found["switches_preempted", "switch"] == 1
    assert found["preempted_wait_seconds", "switch"] == 50e-6
    # That is no wait for a CPU after being woken.
    assert found["run_queue_waits", "switch"] == 0
    assert found["run_queue_latency_p99", "switch"] is None


def test_a_thread_woken_while_it_runs_does_not_wait():
    found = numbers(switch(0, 0, "R", 10) + wake(10, 10) + switch(500, 10, "S", 0) + switch(900, 0, "R", 10))
    assert found["run_queue_waits", "switch"] == 0


def test_a_thread_woken_twice_has_waited_since_the_first_time():
    found = numbers(wake(0, 20) + wake(10, 20, kind="sched_wakeup_new") + switch(40, 10, "S", 20))
    assert found["run_queue_latency_max", "guest"] == 40e-6


def test_time_on_a_cpu_reaches_to_both_ends_of_the_window():
    found = numbers(wake(0, 30, 1) + switch(100, 10, "S", 20) + switch(101, 0, "R", 30, cpu=1) + wake(300, 10))
    assert found["on_cpu_seconds", "switch"] == 100e-6  # since before the window
    assert found["on_cpu_seconds", "guest"] == 200e-6  # and still at its end
    assert found["slices", "switch"] == found["slices", "guest"] == 0
    assert found["slice_max", "switch"] is None


def test_a_role_that_never_switched_has_zeros():
    found = numbers(switch(0, 20, "S", 0))
    assert found["switches_preempted", "switch"] == 0
    assert found["switches_sleeping", "vhost"] == 0


def test_a_state_that_nobody_knows_is_counted_as_other():
    assert numbers(switch(0, 10, "Q|W", 0))["switches_other", "switch"] == 1


def test_names_may_hold_anything():
    line = switch(0, 10, "S", 20).replace("prev_comm=t10", "prev_comm=a b=c prev_pid=7").replace("next_comm=t20", "next_comm=x ==> y")
    assert [(count.function, count.object) for count in Sched.functions(recorded(line))] == [("x ==> y", "guest")]


def test_migrations_are_the_threads():
    line = "  1 [000] 7.000001000: sched:sched_migrate_task: comm=t10 pid=10 prio=120 orig_cpu=0 dest_cpu=1\n"
    assert numbers(line)["task_migrations", "switch"] == 1


@pytest.mark.parametrize("text", ["\n", "x\n", "  1 [000] 7.1: sched:sched_switch: prev_comm=\n", "  1 [000] 7.1: sched:sched_wakeup: \n"])
def test_what_is_no_story_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        list(Sched.numbers(recorded(text)))


def test_times_are_exact():
    assert nanoseconds("145.410750") == 145_410_750_000
    assert nanoseconds("145.410750123") == 145_410_750_123


def test_a_story_ends_when_its_events_end():
    story = Story.of(Recording({"bytes": 1}, wake(3, 10) + wake(9, 20)), PLACEMENT)
    assert story.end - story.begin == 6000


def test_the_lab_by_role():
    """The begin of a window of the lab: OVS-DPDK, 64 B UDP at saturation. Its poll-mode thread was never made to go."""
    placement = Placement.from_json(json.loads((CAPTURED / "perf" / "placement.json").read_text()))
    window = Recorded("", (CAPTURED / "sched.end").read_text(), float("nan"), placement)
    found = {(number.name, number.role): number.value for number in Sched.numbers(window)}
    assert found["lost_events", None] == 0
    assert found["switches_preempted", "switch"] == 0
    assert found["switches_sleeping", "switch"] == 3
    # Two vCPUs, of which one never leaves its CPU.
    assert found["window_seconds", None] < found["on_cpu_seconds", "guest"] < 2 * found["window_seconds", None]
