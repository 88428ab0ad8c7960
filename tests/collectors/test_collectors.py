# SPDX-License-Identifier: GPL-2.0-or-later
"""Each collector's parser, on what the tools really printed around one window (captured/: OVS-DPDK, 64 B UDP at saturation).

The expected values were taken out of the files by hand: end minus begin.
"""

import json
import math
from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.context_switches import ContextSwitches
from vsprof.collectors.cpu_time import CpuTime
from vsprof.collectors.interrupts import Interrupts
from vsprof.collectors.migrations import Migrations
from vsprof.collectors.ovs_datapath import OvsDatapath
from vsprof.collectors.ovs_pmd import OvsPmd
from vsprof.collectors.ovs_pmd.histograms import Histogram
from vsprof.collectors.page_faults import PageFaults
from vsprof.collectors.perf_software import EVENTS, PerfSoftware
from vsprof.collectors.procfs import by_role, per_cpu_table, threads
from vsprof.collectors.softirqs import Softirqs
from vsprof.terms.placement import Placement, Thread
from vsprof.terms.schema import Number

CAPTURED = Path(__file__).with_name("captured")
SECONDS = 4.0
PLACEMENT = Placement.from_json(json.loads((CAPTURED / "placement.json").read_text()))


def recorded(name: str, **changed: str) -> Recorded:
    texts = {end: (CAPTURED / f"{name}.{end}").read_text() for end in ("begin", "end")}
    return Recorded(**{**texts, **changed}, seconds=SECONDS, placement=PLACEMENT)


def values(collector, record: Recorded) -> dict[tuple[str, object], float | None]:
    """Numbers by name and CPU, or by name and role where no CPU is meant."""
    numbers = list(collector.numbers(record))
    found = {(n.name, n.role if n.cpu is None else n.cpu): n.value for n in numbers}
    assert len(found) == len(numbers), "a number twice"
    return found


def test_softirqs():
    found = values(Softirqs, recorded("softirqs"))
    assert found["softirq_rcu", 0] == 15326 - 15044
    assert found["softirq_timer", 3] == 18 - 13
    assert found["softirq_net_rx", 0] == 0
    assert len(found) == 10 * 4


def test_interrupts():
    found = values(Interrupts, recorded("interrupts"))
    assert found["interrupts_local_timer", 0] == 40137 - 38039
    assert found["interrupts_reschedule", 2] == 38711 - 30856
    assert found["interrupts_function_call", 3] == 16050 - 15760
    assert found["interrupts_device", 0] == 0
    assert found["interrupts_tlb_shootdown", 1] >= 0
    assert "interrupts_ERR" not in {name for name, _ in found}


def test_the_numbered_rows_of_interrupts_are_summed_as_devices():
    table = "      CPU0  CPU1\n 25: {} 0 virtio2\n 32: {} 7 virtio0\nLOC: 5 5 Local\nERR: 0\n"
    found = values(Interrupts, recorded("interrupts", begin=table.format(10, 20), end=table.format(13, 24)))
    assert found["interrupts_device", 0] == 3 + 4
    assert found["interrupts_device", 1] == 0


def test_cpu_time_of_each_cpu():
    found = values(CpuTime, recorded("cpu_time"))
    assert found["cpu_user_seconds", 1] == pytest.approx(3.76)  # the poll-mode thread: (3676 - 3300) ticks
    assert found["cpu_kernel_seconds", 1] == pytest.approx(0.18)
    # A guest's time is also in the user's: (2777 - 2406) - (2706 - 2335) ticks are the user's own.
    assert found["cpu_guest_seconds", 2] == pytest.approx(3.71)
    assert found["cpu_user_seconds", 2] == pytest.approx(0)
    assert found["cpu_idle_seconds", 3] == pytest.approx(0.37)
    assert found["cpu_softirq_seconds", 0] == pytest.approx(0.04)


def test_time_that_the_hypervisor_gave_to_others():
    line = "/proc/stat:cpu1 {} 0 0 {} 0 0 0 {} 0 0\n"
    found = values(CpuTime, recorded("cpu_time", begin=line.format(100, 50, 7), end=line.format(160, 70, 27)))
    assert found["cpu_steal_seconds", 1] == pytest.approx(0.2)
    assert found["cpu_user_seconds", 1] == pytest.approx(0.6)


def test_cpu_time_of_each_role():
    found = values(CpuTime, recorded("cpu_time"))
    pmd = [_field("cpu_time", end, "/task/651/schedstat:").split()[0] for end in ("begin", "end")]
    assert found["run_seconds", "switch"] >= (int(pmd[1]) - int(pmd[0])) / 1e9 > 3
    assert {role for name, role in found if name == "wait_seconds"} >= {"switch", "guest", "host-other"}


def test_modes_and_roles_of_cpu_time():
    numbers = [n for n in CpuTime.numbers(recorded("cpu_time")) if n.cpu == 1]
    assert {n.role for n in numbers} == {"switch"}
    assert {n.name: n.mode for n in numbers} == {
        "cpu_user_seconds": "user", "cpu_kernel_seconds": "kernel", "cpu_softirq_seconds": "kernel", "cpu_irq_seconds": "kernel",
        "cpu_guest_seconds": "guest", "cpu_idle_seconds": "all", "cpu_steal_seconds": "all",
    }  # fmt: skip


def test_context_switches_of_each_role():
    found = values(ContextSwitches, recorded("context_switches"))
    for field, name in (("voluntary", "context_switches_voluntary"), ("nonvoluntary", "context_switches_involuntary")):
        gained = [int(_field("context_switches", end, f"/task/665/status:{field}_ctxt_switches:")) for end in ("begin", "end")]
        other = [int(_field("context_switches", end, f"/task/679/status:{field}_ctxt_switches:")) for end in ("begin", "end")]
        assert found[name, "guest"] == gained[1] - gained[0] + other[1] - other[0]
    assert all(value >= 0 for value in found.values())


def test_a_thread_with_half_of_its_fields_is_left_out():
    begin = "/proc/7/task/7/status:voluntary_ctxt_switches:\t5\n"
    assert list(ContextSwitches.numbers(recorded("context_switches", begin=begin, end=begin))) == []


def test_a_thread_that_began_inside_the_window_counts_from_zero():
    placement = Placement([Thread("new", 9, "vhost", (1,))])
    assert by_role({1: 0}, {9: 5.0}, placement) == {"vhost": 5.0}
    assert by_role({9: 5.0}, {}, placement) == {}


def test_ovs_pmd():
    found = values(OvsPmd, recorded("ovs_pmd-nh"))
    expected = {
        "pmd_packets": 623792 - 430084, "pmd_busy_cycles": 21238846172 - 17660569562, "pmd_idle_cycles": 74328558321 - 68154858936,
        "emc_hits": 623479 - 429771, "upcalls": 0, "lost_upcalls": 0, "megaflow_hits": 0, "smc_hits": 0, "simple_match_hits": 0,
        "pmd_iterations": 21731194 - 20068834, "pmd_idle_iterations": 21670966 - 20022217, "pmd_busy_iterations": 60228 - 46617,
        "pmd_sleep_iterations": 0, "pmd_packets_sent": 630300 - 439714, "pmd_batches_sent": 60601 - 46990,
    }  # fmt: skip
    assert found == {(name, 1): value for name, value in expected.items()}


def test_a_pmd_field_that_this_ovs_lacks_is_missing_and_not_zero():
    without = {end: "\n".join(t for t in text.splitlines() if "simple match" not in t.lower()) for end, text in _both("ovs_pmd-nh").items()}
    lacking = [n for n in OvsPmd.numbers(recorded("ovs_pmd-nh", **without)) if n.value is None]
    assert [n.name for n in lacking] == ["simple_match_hits"]
    assert lacking[0].note


def test_where_both_commands_print_the_same_packets_are_known_and_cycles_are_not():
    """Open vSwitch 4.0.0, in the lab: 30 ms of modelled time, 32 packets a batch."""
    found = {one.name: one for one in OvsPmd.numbers(recorded("ovs_pmd-4.0"))}
    # But for the batch at work when they were read.
    assert found["pmd_packets"].value > 200_000
    assert found["simple_match_hits"].value == pytest.approx(found["pmd_packets"].value, abs=32)
    assert found["pmd_packets_sent"].value == found["pmd_batches_sent"].value * 32
    assert found["pmd_busy_cycles"].value is None
    assert found["pmd_idle_cycles"].note


def _histograms(**ends: str) -> dict[str, Number]:
    """Open vSwitch 3.5.0, natively, two seconds after its histograms were switched on, and 6.5 s later."""
    sound = {end: (CAPTURED / f"ovs_pmd.{end}").read_text() for end in ("begin", "end")} | ends
    return {one.name: one for one in OvsPmd.numbers(Recorded(sound["begin"], sound["end"], 6.5, Placement([])))}


def test_histograms_of_a_poll_mode_thread():
    found = _histograms()
    # What it received by its counters, in bursts that were all full.
    assert found["pmd_batch_packets_to_32"].value * 32 == pytest.approx(found["pmd_packets"].value, rel=0.01)
    assert sum(one.value for name, one in found.items() if name.startswith("pmd_batch_packets_")) == found["pmd_batch_packets_to_32"].value
    for kind in ("pmd_iteration_packets", "pmd_queue_fill"):
        rounds = [one.value for name, one in found.items() if name.startswith(f"{kind}_")]
        assert len(rounds) == 32
        assert sum(rounds) == pytest.approx(found["pmd_iterations"].value, rel=0.001)
    assert found["pmd_iteration_packets_to_0"].value == pytest.approx(found["pmd_idle_iterations"].value, rel=0.001)
    mean = found["pmd_busy_cycles"].value / found["pmd_busy_iterations"].value
    assert mean < found["pmd_iteration_cycles_p99"].value < 3 * mean
    assert found["pmd_iteration_cycles_p50"].value == 499
    assert found["pmd_upcall_cycles_p50"].value is None
    assert found["pmd_upcall_cycles_p50"].note == "nothing of the kind in this window"
    assert 0 <= found["pmd_long_iterations"].value < 100
    queues = {name: one.value for name, one in found.items() if name.startswith("rxq_load_")}
    assert queues == {"rxq_load_v0_0": 0.47, "rxq_load_v1_0": 0.47}


def test_a_short_window_has_no_load_of_queues():
    text = {end: (CAPTURED / f"ovs_pmd.{end}").read_text() for end in ("begin", "end")}
    short = {one.name: one for one in OvsPmd.numbers(Recorded(text["begin"], text["end"], 0.03, Placement([])))}
    assert short["rxq_load_v0_0"].value is None
    assert "shorter than the 5 s" in short["rxq_load_v0_0"].note


def test_histograms_with_other_bins_or_cleared_ones_are_refused():
    end = (CAPTURED / "ovs_pmd.end").read_text()
    with pytest.raises(ValueError, match="others at the end"):
        _histograms(end=end.replace("\n   716 ", "\n   717 "))
    with pytest.raises(ValueError, match="cleared"):
        _histograms(begin=end, end=(CAPTURED / "ovs_pmd.begin").read_text())


@pytest.mark.parametrize(
    ("counts", "part", "bound"), [((0, 0, 0), 0.5, None), ((1, 1, 0), 0.5, 10), ((1, 3, 0), 0.5, 20), ((0, 0, 1), 0.5, math.inf)]
)
def test_a_quantile_of_a_histogram_is_its_bins_bound(counts, part, bound):
    assert Histogram((10, 20, math.inf), counts).quantile(part) == bound


def test_only_bins_that_are_wholly_above_count_as_above():
    assert Histogram((10, 20, math.inf), (1, 10, 100)).above(11) == 110
    assert Histogram((10, 20, math.inf), (1, 10, 100)).above(12) == 100


def test_the_main_thread_is_no_poll_mode_thread():
    assert {n.cpu for n in OvsPmd.numbers(recorded("ovs_pmd-nh"))} == {1}


@pytest.mark.parametrize(("name", "hits_before", "masks"), [("ovs_datapath", 415431, False), ("kernel_datapath", 159005, True)])
def test_ovs_datapath(name, hits_before, masks):
    found = values(OvsDatapath, recorded(name))
    hits_after = int(_field(name, "end", "lookups: hit:").split()[0])
    assert found["flow_hits", "switch"] == hits_after - hits_before
    assert found["flow_lost", "switch"] == 0
    assert found["flows_installed", "switch"] == int(_field(name, "end", "  flows: "))
    assert (("masks_hit", "switch") in found) == masks
    assert any(key[0].startswith("coverage_") for key in found)


def test_a_coverage_counter_counts_from_zero_at_its_first_time():
    before, after = _both("ovs_datapath").values()
    found = values(OvsDatapath, recorded("ovs_datapath", begin=before, end=after + "brand_new   0.0/sec   0.0/sec   0.0/sec   total: 12\n"))
    assert found["coverage_brand_new", "switch"] == 12


def test_perf_software():
    found = values(PerfSoftware, recorded("perf_software"))
    assert found["vm_exits", 2] == 9953
    assert found["vm_exits", 0] == 0
    assert found["timer_interrupts", 3] == 73
    assert {name for name, _ in found} == set(EVENTS.values())
    one = next(n for n in PerfSoftware.numbers(recorded("perf_software")) if (n.name, n.cpu) == ("vm_exits", 2))
    assert (one.enabled_s, one.running_s, one.role) == (pytest.approx(4.067274048), pytest.approx(4.067274048), "guest")


def perf_line(value: str = "7.000000", runtime: int = 1_000_000_000, percent: float = 100.0, event: str = "context-switches") -> str:
    row = {"cpu": "0", "counter-value": value, "unit": "", "event": event, "event-runtime": runtime, "pcnt-running": percent}
    return json.dumps(row)


@pytest.mark.parametrize(
    "line", [perf_line("<not counted>", 0, 0.0), perf_line("<not supported>", 0, 100.0), perf_line("0.000000", 0, 100.0)]
)
def test_what_perf_did_not_count_is_empty_and_says_so(line):
    number = next(n for n in PerfSoftware.numbers(recorded("perf_software", end=line)) if n.cpu == 0)
    assert number.value is None
    assert "did not count" in number.note


def test_a_multiplexed_counter_tells_how_long_it_ran():
    number = next(n for n in PerfSoftware.numbers(recorded("perf_software", end=perf_line(percent=25.0))) if n.cpu == 0)
    assert (number.value, number.running_s, number.enabled_s) == (7.0, 1.0, 4.0)


def test_an_event_that_the_kernel_does_not_offer_is_named():
    absent = [n for n in PerfSoftware.numbers(recorded("perf_software", end=perf_line())) if n.cpu is None]
    assert {n.name for n in absent} == set(EVENTS.values()) - {"context_switches"}
    assert all(n.value is None and "does not offer" in n.note for n in absent)


def test_the_names_of_earlier_and_of_later_perf_are_the_same():
    both = [perf_line(), perf_line(event="context-switches [software]")]
    assert [next(iter(PerfSoftware.numbers(recorded("perf_software", end=line)))).name for line in both] == ["context_switches"] * 2


def test_a_table_of_another_file_is_refused():
    with pytest.raises(ValueError, match="CPU0"):
        per_cpu_table("cat: /proc/softirqs: Permission denied\n")


def test_page_faults_of_each_role():
    found = values(PageFaults, recorded("page_faults"))
    # The sum over all threads: fields 10 and 12, of which the first two end with the name's parenthesis.
    both = [
        {line.split()[0]: [int(line.rpartition(") ")[2].split()[at]) for at in (7, 9)] for line in text.splitlines()}
        for text in ((CAPTURED / f"page_faults.{end}").read_text() for end in ("begin", "end"))
    ]
    for at, name in enumerate(("faults_minor", "faults_major")):
        gained = sum(counts[at] - both[0].get(tid, [0, 0])[at] for tid, counts in both[1].items())
        assert sum(value for (word, _), value in found.items() if word == name) == gained
    assert found["faults_minor", "switch"] == 55


def test_a_threads_name_may_have_spaces_and_parentheses():
    text = "7 (a) b (c) S 1 2 3 4 5 6 11 8 22 " + "0 " * 30
    (minor, major) = PageFaults.numbers(recorded("page_faults", begin=text.replace(" 11 8 22 ", " 1 8 2 "), end=text))
    assert (minor.value, major.value) == (10, 20)


def test_migrations_of_each_role():
    found = values(Migrations, recorded("migrations"))
    assert found["migrations", "switch"] == 0
    assert found["migrations", "host-other"] == 4


def test_rows_without_a_count_for_each_cpu_are_left_out():
    assert per_cpu_table("  CPU0 CPU1\nLOC: 1 2 Local timer\nERR: 0\n") == {"LOC": ([1, 2], "Local timer")}


def test_lines_that_are_no_threads_are_ignored():
    assert threads("grep: x\n/proc/1/task/2/schedstat:1 2 3\n") == {2: ["1 2 3"]}


NO_BEGIN = {
    "softirqs": (Softirqs, ""),
    "interrupts": (Interrupts, ""),
    "context_switches": (ContextSwitches, ""),
    "migrations": (Migrations, ""),
    "page_faults": (PageFaults, ""),
    "cpu_time": (CpuTime, "--- threads\n"),
    "ovs_pmd": (OvsPmd, "--- pmd-perf-show\n"),
    "ovs_datapath": (OvsDatapath, "--- coverage/show\n"),
}


@pytest.mark.parametrize("name", NO_BEGIN)
def test_counters_that_were_not_read_at_the_begin_never_become_totals_since_boot(name):
    collector, begin = NO_BEGIN[name]
    with pytest.raises(ValueError):  # noqa: PT011
        list(collector.numbers(recorded(name, begin=begin)))


def test_coverage_that_was_not_read_at_the_begin_never_becomes_totals_since_the_start():
    begin = _both("ovs_datapath")["begin"].partition("--- coverage/show")[0]
    try:
        found = values(OvsDatapath, recorded("ovs_datapath", begin=begin))
    except ValueError:
        return
    assert not any(name.startswith("coverage_") and value for (name, _), value in found.items())


def test_a_line_of_perf_that_lacks_a_field_is_refused():
    for line in (
        '{"event": "context-switches", "cpu": "0"}',
        perf_line().replace('"0"', "null"),
        perf_line().replace("100.0", "null"),
        "{",
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            list(PerfSoftware.numbers(recorded("perf_software", end=line)))


@pytest.mark.parametrize("name", ["softirqs", "interrupts"])
def test_a_table_with_fewer_cpus_at_the_begin_is_refused(name):
    collector, _ = NO_BEGIN[name]
    with pytest.raises(ValueError):  # noqa: PT011
        list(collector.numbers(recorded(name, begin="  CPU0\nHI: 1\nRCU: 1\nLOC: 2\n 25: 3 x\n")))


def _both(name: str) -> dict[str, str]:
    return {end: (CAPTURED / f"{name}.{end}").read_text() for end in ("begin", "end")}


def _field(name: str, end: str, marker: str) -> str:
    return _both(name)[end].partition(marker)[2].partition("\n")[0].strip()
