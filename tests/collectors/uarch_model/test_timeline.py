# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened when: from what the plug-in wrote in a real window to spans."""

import copy
import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.base import Recorded
from vsprof.collectors.uarch_model import UarchModel, timeline
from vsprof.collectors.uarch_model.symbols import kernel_table
from vsprof.terms.placement import Placement
from vsprof.terms.schema import Span

CAPTURED = Path(__file__).parents[1] / "captured"
SWITCHES = ("kernel-ovs", "ovs-dpdk")
CORE = {"from_ns": 100, "to_ns": 900, "full": False, "events": []}


def captured(switch: str) -> dict:
    return json.loads((CAPTURED / f"timeline-{switch}.json").read_text())


def spans(data: dict, placement: Placement | None = None) -> list[Span]:
    return list(UarchModel.spans(Recorded("", json.dumps(data), math.nan, placement or Placement())))


def of_switch(switch: str) -> list[Span]:
    data = captured(switch)
    return spans(data, Placement.from_json(data["placement"]))


def of_events(*events: list, **core: object) -> list[Span]:
    return spans({"timeline": [{**CORE, "events": list(events), **core}]})[1:]


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_cpu_begins_with_who_has_it(switch):
    for cpu in range(4):
        here = [one for one in of_switch(switch) if one.cpu == cpu]
        assert [one for one in here if one.kind == "recorded"] == here[:1]
        begin, end = here[0].time_ns, here[0].time_ns + here[0].duration_ns
        assert (begin, end) == (1_000_000, 7_000_000)
        tasks = sorted((one for one in here if one.kind == "task" and one.mode == "all"), key=lambda one: one.time_ns)
        assert tasks[0].time_ns == begin
        # One after the other, without a gap, up to the end.
        assert [one.time_ns + one.duration_ns for one in tasks] == [*(one.time_ns for one in tasks[1:]), end]
        assert all(begin <= one.time_ns and one.time_ns + one.duration_ns <= end for one in here)


def test_over_kernel_ovs_vhost_workers_sleep_and_are_woken():
    found = of_switch("kernel-ovs")
    assert {one.role for one in found if one.kind == "recorded"} == {"host-other", "vhost", "guest"}
    workers = {one.thread: one for one in found if one.kind == "task" and one.role == "vhost"}
    assert len(workers) == 2
    assert {one.name for one in workers.values()} <= {f"vhost-{number}" for number in range(10000)}
    assert {one.thread for one in found if one.kind == "wake" and one.mode == "all"} >= workers.keys()
    assert any(one.kind == "sleep" and one.cpu == 1 for one in found)
    assert {one.name for one in found if one.kind == "work"} == {"vhost-tx", "vhost-rx"}
    assert not any(one.kind in ("poll", "empty_polls") for one in found)


def test_over_ovs_dpdk_its_thread_never_sleeps_and_finds_two_frames():
    found = [one for one in of_switch("ovs-dpdk") if one.cpu == 1]
    assert [(one.name[:4], one.role) for one in found if one.kind == "task"] == [("pmd-", "switch")]
    assert not any(one.kind == "sleep" for one in found)
    # The ping, and its reply.
    assert [one.value for one in found if one.kind == "poll"] == [1, 1]
    assert sum(one.value for one in found if one.kind == "empty_polls") > 1000


@pytest.mark.parametrize("switch", SWITCHES)
def test_interrupts_end_and_a_guests_doings_are_told_from_the_hosts(switch):
    found = of_switch(switch)
    interrupts = [one for one in found if one.kind == "irq"]
    assert interrupts
    assert max(one.duration_ns for one in interrupts) < 100_000
    assert {one.role for one in interrupts} == {"softirq", "guest"}
    received = [one for one in found if one.kind == "softirq" and one.value]
    assert {(one.name, one.role, one.mode) for one in received} == {("net_rx", "guest", "guest")}
    assert {one.name for one in found if one.kind == "guest"} >= {"halt", "interrupt"}


def test_what_is_no_thread_has_none_and_what_is_not_known_has_no_name():
    assert of_events([100, 5, "task", 0, 0, "swapper/1"]) == [Span("task", 100, 5, 0, None, "all", "idle", 0)]
    assert of_events([100, 5, "guest", 0, -1, ""]) == [Span("guest", 100, 5, 0, "guest", "all", "")]
    assert of_events([100, 5, "guest", 0, 0x4C, ""])[0].name == "exit 0x4c"
    assert of_events([100, 0, "ipi", 0, 3, ""])[0].value == 3
    assert of_events([100, 5, "task", 1, 9, "ping"]) == [Span("task", 100, 5, 0, "guest", "guest", "ping", 9)]


def test_where_the_list_was_full_it_says_so():
    (known, _) = spans({"timeline": [{**CORE, "events": [[100, 0, "ipi", 0, 3, ""]], "full": True}]})
    assert known.name == "after 1 events its list was full"
    assert spans({"timeline": [{**CORE, "to_ns": 100}]}) == [], "the window was over before"


@pytest.mark.parametrize("data", [{}, {"timeline": []}])
def test_an_earlier_vsprof_wrote_none(data):
    assert spans(data) == []


def test_the_kernels_functions_are_watched_under_any_of_a_compilers_names():
    kernel = kernel_table(
        "ffffffff81000100 try_to_wake_up\nffffffff81000200 other\nffffffff81000300 handle_softirqs.isra.0\n"
        "ffffffff81000400 handle_softirqs.cold\nffffffffc0001000 handle_rx [vhost_net]\n"
    )
    assert list(timeline.watched(kernel)) == [
        "watch wake wake ffffffff81000100 ffffffff81000200",
        "watch softirqs_end softirqs ffffffff81000300 ffffffff81000400",
        "watch work vhost-rx ffffffffc0001000 ffffffffc0001001",
    ]
    assert list(timeline.watched(kernel_table(""))) == []
    assert all(len(name) <= 15 and " " not in name for functions in timeline.WATCHED.values() for name in functions.values())


NEAR_MISSES = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["task", "guest", "", "x", [], {}])


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_whatever_stands_in_its_place_is_read_or_refused(data):
    found = copy.deepcopy({"timeline": captured(data.draw(st.sampled_from(SWITCHES)))["timeline"]})
    core = data.draw(st.sampled_from(found["timeline"]))
    event = data.draw(st.sampled_from(core["events"]))
    what = data.draw(st.sampled_from(["field", "event", "core", "shorter"]))
    if what == "field":
        event[data.draw(st.integers(0, len(event) - 1))] = data.draw(NEAR_MISSES)
    elif what == "event":
        core["events"][core["events"].index(event)] = data.draw(NEAR_MISSES)
    elif what == "core":
        core[data.draw(st.sampled_from(sorted(core)))] = data.draw(NEAR_MISSES)
    else:
        del event[data.draw(st.integers(0, len(event) - 1)) :]
    try:
        assert all(isinstance(one, Span) for one in spans(found))
    except ValueError:
        return
