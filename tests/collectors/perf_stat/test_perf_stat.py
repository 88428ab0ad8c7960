# SPDX-License-Identifier: GPL-2.0-or-later
"""The collector from its options to its numbers.

On this machine's own perf: with the kernel's events, which need no PMU. With a stand-in (pmu.py) for what takes a PMU; that
part shows what the collector makes of a PMU's answers, not what a PMU answers.
"""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from vsprof.collectors import perf_stat
from vsprof.collectors.base import Recorded
from vsprof.collectors.events import probe
from vsprof.collectors.perf_stat import PerfStat, numbers, perf, preflight
from vsprof.runner.window import Probe
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import Placement

CAPTURED = Path(__file__).parents[1] / "captured"
KERNELS = ["task-clock", "context_switches", "page-faults", "cpu_migrations"]
needs_perf = pytest.mark.skipif(shutil.which("perf") is None or os.geteuid() != 0, reason="needs perf, and root, which may count per CPU")


def finding(collector: PerfStat, name: str) -> dict:
    return next(one for one in collector.facts()["preflight"] if one["name"] == name)


# --- Options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"events": "cpi"}, "events: need a list of names"),
        ({"events": []}, "events: need a list of names"),
        ({"events": ["cpii"]}, "no metric or event 'cpii'; did you mean cpi?"),
        ({"events": ["l1d_missses"]}, "did you mean l1d_misses"),
        ({"event_files": ["/nowhere.json"]}, "no events in /nowhere.json"),
        ({"modes": ["user", "user"]}, "modes: need a list of user, kernel, guest, or all, found"),
        ({"modes": ["all", "user"]}, "modes: need"),
        ({"counters": 0}, "counters: need a whole number from 1 to 64, found 0"),
        ({"counters": True}, "counters: need"),
        ({"cpus": "0-"}, "cpus: need a list of CPUs such as 0-3,8, found '0-'"),
        ({"cpus": "0; reboot"}, "cpus: need"),
    ],
)
def test_options_that_will_not_do(given, said):
    with pytest.raises(BadInput, match=said.replace("'", ".").replace("?", ".")):
        PerfStat.check_options(given)


def test_options_that_will_do(tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_text('[{"EventName": "mine", "PerfEvent": "alignment-faults"}]')
    PerfStat.check_options({})
    PerfStat.check_options({"events": ["cpi", "MINE"], "event_files": [str(mine)], "modes": ["user"], "counters": 4, "cpus": "0-3,8"})
    mine.write_text('[{"EventName": "mine"')
    with pytest.raises(BadInput, match="is not JSON"):
        PerfStat.check_options({"event_files": [str(mine)]})


# --- This machine's perf ------------------------------------------------------------------------------------------


@needs_perf
def test_the_kernels_events_take_turns_through_the_same_path(local, measured):
    collector = PerfStat(local(), events=[*KERNELS, "minor-faults"], counters=2)
    assert collector.unavailable() is None
    collector.setup()
    assert [len(one) for one in collector.facts()["groups"]] == [2, 2, 1]
    windows = [measured(collector, number, 3) for number in (1, 2, 3)]
    for found, group in zip(windows, collector.facts()["groups"], strict=True):
        assert {number.name for number in found} == set(group)
        assert all(number.value is not None and number.running_s >= 0.05 for number in found)
        assert {number.source for number in found} == {"software"}
        assert {number.mode for number in found} == {"all"}
    clocks = [number for number in windows[0] if number.name == "task-clock"]
    assert all(number.unit == "seconds" and number.value == pytest.approx(number.running_s, rel=0.02) for number in clocks)


@needs_perf
def test_single_cpus_are_counted(local, measured):
    collector = PerfStat(local(), events=["context_switches"], cpus=0)
    assert collector.unavailable() is None
    collector.setup()
    assert [(number.name, number.cpu) for number in measured(collector)] == [("context-switches", 0)]
    collector.teardown()
    assert not Path(perf_stat.FOLDER).exists()


@needs_perf
def test_own_event_files_are_counted(local, measured, tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_text('[{"EventName": "switches", "PerfEvent": "cs"},'
                    ' {"MetricName": "switches_per_second", "MetricExpr": "switches / seconds", "ScaleUnit": "1events/s"}]')  # fmt: skip
    collector = PerfStat(local(), events=["switches_per_second", "context_switches"], event_files=[str(mine)])
    assert collector.unavailable() is None
    collector.setup()
    found = {(number.name, number.cpu): number.value for number in measured(collector, seconds=0.3)}
    # Two names of one thing, which perf prints by one name.
    both = [sum(value for (name, _), value in found.items() if name == wanted) for wanted in ("switches", "context-switches")]
    assert both[0] == pytest.approx(both[1], rel=0.01, abs=2)
    assert collector.facts()["metrics"]["switches_per_second"]["expression"] == "switches / seconds"


def compare(collector, measured, tmp_path, plain_events: str) -> dict[str, tuple[float, float]]:
    """What the collector counts, and what a plain perf stat does of the same CPUs and interval: sums over CPUs, by event."""
    plain = tmp_path / "plain"
    prepare = f"""
mkdir -p {plain}; mkfifo {plain}/c {plain}/a
perf stat -a -x ';' -o {plain}/out -D -1 --control fifo:{plain}/c,{plain}/a -e {plain_events} &
plain_pid=$!
exec 10<>{plain}/c 11<>{plain}/a; echo ping >&10; read -t 20 -u 11 answer"""
    switch = "echo {} >&10; read -t 20 -u 11 answer"
    other = Probe(switch.format("enable"), switch.format("disable"), prepare, "kill -INT $plain_pid; wait $plain_pid; true")
    # A session of its own: the half of it that answers is another process, which holds both ends of its pipe and would wait for ever.
    with subprocess.Popen(
        ["perf", "bench", "sched", "pipe", "-l", "100000000"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as load:  # fmt: skip
        try:
            time.sleep(0.3)
            found = measured(collector, seconds=2, plain=other)
        finally:
            os.killpg(load.pid, signal.SIGKILL)
    ours: Counter[str] = Counter()
    for number in found:
        assert number.value is not None, number.note
        ours[number.name] += number.value * (1000 if number.unit == "seconds" else 1)
    theirs = {count.event: count.value for count in probe.read((plain / "out").read_text())}
    return {name: (ours[name], theirs[name]) for name in ours}


def compare_until_equal(collector, measured, tmp_path, plain_events: str) -> dict[str, tuple[float, float]]:
    """As `compare`, of the first of at most five windows whose counts differ by no more than one percent, else of the last.

    One perf is enabled after the other. Beside other work tens of milliseconds pass in between, of a window of two seconds: a count
    that is wrong differs in every window, this delay does not.
    """
    for turn in range(5):
        folder = tmp_path / str(turn)
        folder.mkdir()
        both = compare(collector, measured, folder, plain_events)
        print(both)
        if all(ours == pytest.approx(theirs, rel=0.01) for ours, theirs in both.values()):
            break
    return both


@needs_perf
def test_counts_agree_with_a_plain_perf_stat_within_one_percent(local, measured, tmp_path):
    collector = PerfStat(local(), events=["task-clock", "context_switches"])
    assert collector.unavailable() is None
    collector.setup()
    both = compare_until_equal(collector, measured, tmp_path, "task-clock,context-switches")
    assert both["context-switches"][0] > 10_000
    for name, (ours, theirs) in both.items():
        assert ours == pytest.approx(theirs, rel=0.01), name


@needs_perf
def test_hardware_counts_agree_with_a_plain_perf_stat_within_one_percent(local, measured, tmp_path):
    collector = PerfStat(local(), modes=["all"])
    if why := collector.unavailable():
        pytest.skip(why)
    collector.setup()
    group = collector.facts()["groups"][0]
    specs = [collector.facts()["events"][name]["perf"] for name in group]
    for ours, theirs in compare_until_equal(collector, measured, tmp_path, "'{" + ",".join(specs) + "}'").values():
        assert ours == pytest.approx(theirs, rel=0.01)


@needs_perf
def test_a_machine_without_a_pmu_says_so(local):
    collector = PerfStat(local())
    states = {count.event: count.state for count in perf.readable(collector.seen.core)}
    if states["cycles"] == probe.COUNTED:
        pytest.skip("this machine has a PMU")
    assert "this machine has no PMU that perf can use" in collector.unavailable()


@needs_perf
def test_who_is_refused_is_told_the_level(local):
    if Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip() in ("-1", "0"):
        pytest.skip("perf_event_paranoid refuses nobody here")
    why = PerfStat(local(command=["setpriv", "--reuid=65534", "--clear-groups", "--bounding-set=-all"])).unavailable()
    assert "the kernel refuses perf to this user (perf_event_paranoid is " in why


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'bash: perf: command not found'; exit 127", "perf not found"),
        ('echo "WARNING: perf not found for kernel 6.18"; exit 2', "perf not found"),
        ('[ "$1" = --version ] && echo perf version 3.2 || echo "  12 cycles"', "it is too old"),
        ('[ "$1" = --version ] && echo perf version 6.1 || { echo broken; exit 1; }', "not even task-clock: broken"),
    ],
)
def test_a_perf_that_is_of_no_use(local, tmp_path, script, said):
    (tmp_path / "perf").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "perf").chmod(0o755)
    assert said in PerfStat(local(str(tmp_path))).unavailable()


def test_a_perf_that_hangs(local, tmp_path, monkeypatch):
    monkeypatch.setattr(perf, "EACH_S", 1)
    (tmp_path / "perf").write_text('#!/bin/sh\n[ "$1" = --version ] && echo perf version 6.1 || sleep 60\n')
    (tmp_path / "perf").chmod(0o755)
    assert "had not ended after 1 s" in PerfStat(local(str(tmp_path))).unavailable()


def test_a_window_of_a_perf_that_died_says_so_and_does_not_wait(local, measured, tmp_path):
    collector = PerfStat(local(), events=["task-clock"])
    if collector.unavailable() or os.geteuid() != 0:
        pytest.skip("needs perf, and root, which may count per CPU")
    collector.setup()
    (tmp_path / "perf").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "perf").chmod(0o755)
    collector.host = local(str(tmp_path))
    began = time.monotonic()
    found = measured(collector)
    assert time.monotonic() - began < 5
    assert [(number.name, number.value, number.note) for number in found] == [("task-clock", None, "perf printed no count")]


# --- A stand-in for a PMU -----------------------------------------------------------------------------------------


def test_the_room_is_what_the_copies_agree_on(with_pmu):
    collector = with_pmu({"counters": 5})
    assert collector.unavailable() is None
    collector.setup()
    assert finding(collector, "group_size")["value"] == 5
    assert finding(collector, "dead_counters")["state"] == "ok"
    assert finding(collector, "known_count") == {
        "name": "known_count", "state": "ok", "value": 1e6, "text": "a program of exactly 1,000,000 instructions was counted as 1,000,000",
    }  # fmt: skip
    assert finding(collector, "every_cpu")["state"] == "ok"
    groups = collector.facts()["groups"]
    assert all(one[:2] == ["ls_not_halted_cyc", "ex_ret_instr"] and len(one) <= 7 for one in groups)


def test_a_dead_counter_is_not_used(with_pmu):
    collector = with_pmu({"counters": 4, "dead": True})
    collector.setup()
    assert finding(collector, "group_size")["value"] == 3
    assert finding(collector, "dead_counters")["state"] == "warning"
    assert "4 copies of one event in one group counted 1,000,000, 1,000,000, 1,000,000, 41" in finding(collector, "dead_counters")["text"]
    assert max(len(one) for one in collector.facts()["groups"]) == 5


def test_groups_and_modes_take_turns(with_pmu, measured):
    collector = with_pmu({"counters": 4})
    collector.setup()
    groups = collector.facts()["groups"]
    count = 2 * len(groups)
    assert collector.facts()["modes"] == ["user", "kernel"]
    seen = set()
    for number in range(1, count + 1):
        found = measured(collector, number, count)
        assert {one.mode for one in found} == {("user", "kernel")[(number - 1) % 2]}
        assert {one.name for one in found} == set(groups[(number - 1) // 2])
        assert {(one.cpu, one.role) for one in found} == {(0, "host-other"), (1, "switch")}
        assert {one.value for one in found} == {1e6 if found[0].mode == "user" else 1e5}
        assert {one.source for one in found} == {None}
        seen |= {(one.name, one.mode) for one in found}
    assert seen == {(name, mode) for one in groups for name in one for mode in ("user", "kernel")}


def test_too_few_windows_are_told_once(with_pmu, measured):
    collector = with_pmu({"counters": 2})
    collector.setup()
    groups = collector.facts()["groups"]
    first, second = (measured(collector, number, 2) for number in (1, 2))
    assert {one.mode for one in first} == {"all"}
    assert all(one.value is not None for one in first)
    empty = {one.name: one.note for one in second if one.value is None}
    assert set(empty) == {name for one in groups[2:] for name in one} - {*groups[0], *groups[1]}
    assert set(empty.values()) == {f"{len(groups)} windows are needed for all groups, 2 were measured: raise windows.count"}


def test_counters_that_count_wrong_leave_every_value_empty(with_pmu, measured):
    collector = with_pmu({"factor": 0.5})
    collector.setup()
    assert finding(collector, "known_count")["state"] == "failed"
    found = measured(collector)
    assert all(one.value is None for one in found)
    assert any("was counted as 500,000: these counters are not to be believed" in one.note for one in found)


def test_what_counted_a_part_of_the_time_is_empty(with_pmu, measured, tmp_path):
    collector = with_pmu()
    collector.setup()
    (tmp_path / "bin" / "pmu.json").write_text('{"percent": 66.6}')
    found = [one for one in measured(collector) if one.cpu is not None]
    assert {one.value for one in found} == {None}
    assert {one.note for one in found} == {"it counted 66.6 % of the time only, and perf made up the rest: somebody else uses the PMU"}
    assert found[0].enabled_s == pytest.approx(found[0].running_s / 0.666)


def test_what_never_ran_is_empty(with_pmu, measured, tmp_path):
    collector = with_pmu({"counters": 4})
    collector.setup()
    (tmp_path / "bin" / "pmu.json").write_text('{"counters": 1}')
    found = [one for one in measured(collector) if one.cpu is not None]
    assert {(one.value, one.note) for one in found} == {(None, "perf did not count it: its counter never ran")}


def test_an_event_that_perf_does_not_know_is_left_out(with_pmu, measured):
    event = "ls_l1_d_tlb_miss.all_l2_miss"
    collector = with_pmu({"unknown": [f"{event}/"]})
    collector.setup()
    assert event not in {name for one in collector.facts()["groups"] for name in one}
    assert "dtlb_walks" not in collector.facts()["metrics"]
    note = {one.name: one.note for one in measured(collector)}[event]
    assert note.startswith("event syntax error")
    with pytest.raises(BadInput, match="dtlb_walks can't be counted on this testbed"):
        with_pmu({"unknown": [f"{event}/"]}, events=["cpi", "dtlb_walks"]).setup()


def test_a_group_that_perf_does_not_count_is_halved(with_pmu):
    event = "ex_ret_brn_misp"
    collector = with_pmu({"alone": [event]})
    collector.setup()
    assert collector.facts()["left_out"] == {event: "perf does not count it in one group with ls_not_halted_cyc and ex_ret_instr"}
    assert "l1d_misses_per_packet" in collector.facts()["metrics"]


def test_what_this_processor_does_not_have_is_an_error_if_it_is_named(with_pmu):
    with pytest.raises(BadInput, match="walk_cycles can't be counted on this testbed: zen4 has no walk_cycles"):
        with_pmu(events=["walk_cycles"]).unavailable()
    with pytest.raises(BadInput, match=r"no metric or event 'L1D\.REPLACEMENT'"):
        with_pmu(events=["L1D.REPLACEMENT"]).unavailable()


def test_the_default_has_the_models_words(with_pmu):
    collector = with_pmu({"counters": 6})
    collector.setup()
    words = {"cpi", "l1d_misses_per_packet", "llc_misses_per_packet", "dtlb_walks_per_kilo_instructions", "cycles_per_second"}
    assert words <= set(collector.facts()["metrics"])
    assert "zen4 has no walk_cycles" in collector.facts()["missing"]["walk_cycles"]
    json.dumps(collector.facts())


# --- The preflight on this machine --------------------------------------------------------------------------------


@needs_perf
def test_copies_of_a_kernel_event_agree_on_this_machine(local):
    """The growing of groups on a real perf: page faults need no PMU."""
    host = local()
    seen = perf.look(host)
    folder = preflight._push_programs(host, seen)
    try:
        found = preflight.Preflight()
        preflight._room(found, host, folder, ["page-faults:u", "page-faults:u"], None)
        assert found.room == preflight.MOST_COPIES
    finally:
        host.run(f"rm -rf {folder}")


@needs_perf
def test_who_else_counts_is_seen(local):
    with subprocess.Popen(["perf", "stat", "-e", "task-clock", "sleep", "20"], stderr=subprocess.DEVNULL) as other:
        try:
            for _ in range(50):
                state, number, text = preflight._in_use(local())
                if number:
                    break
                time.sleep(0.1)
            assert (state, "perf" in text) == ("warning", True)
        finally:
            other.kill()


def test_nothing_of_the_preflight_is_left(local, with_pmu):
    before = set(Path("/tmp").glob("vsprof-*"))
    with_pmu().setup()
    assert {path for path in set(Path("/tmp").glob("vsprof-*")) - before if (path / "counted").exists()} == set()
    assert not Path(preflight.FOLDER).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("changed", "name", "state", "said"),
    [
        ({"hypervisor": True}, "virtualised", "warning", "a virtual machine"),
        ({"hypervisor": False}, "virtualised", "ok", "no hypervisor"),
        ({"watchdog": "1"}, "nmi_watchdog", "warning", "sysctl kernel.nmi_watchdog=0"),
        ({"watchdog": ""}, "nmi_watchdog", "ok", "no NMI watchdog"),
        ({"rdpmc": "0"}, "rdpmc", "ok", "/cpu/rdpmc is 0"),
        ({"machine": "aarch64"}, "known_count", "warning", "for x86_64, and this is aarch64"),
        ({"machine": "aarch64"}, "rdpmc", "ok", "not measured"),
    ],
)
def test_findings(with_pmu, changed, name, state, said):
    collector = with_pmu()
    collector.seen = dataclasses.replace(collector.seen, **changed)
    collector.setup()
    found = finding(collector, name)
    assert found["state"] == state
    assert said in found["text"]


@pytest.mark.parametrize(
    ("text", "status", "cost"),
    [("5 0 5 200000000", 0, 2e-6), ("5 900000000 6 0", 0, 1e-6), ("", 0, None), ("5 0 5 1", 3, None), ("a b c d", 0, None)],
)
def test_the_cost_of_a_read(text, status, cost):
    assert preflight._seconds(probe.Ran(status, text)) == (cost if cost is None else pytest.approx(cost))


# --- Recordings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["perf_stat", "perf_stat-6.1"])
def test_what_both_perfs_printed(name):
    """captured/: perf 6.12 (perf_stat) and 6.1, half a second of this machine; the sums were taken out by hand."""
    begin, end = ((CAPTURED / f"{name}.{at}").read_text() for at in ("begin", "end"))
    found = {(one.name, one.cpu): one for one in PerfStat.numbers(Recorded(begin, end, 0.5, Placement()))}
    expected = {"perf_stat": (1444, 5396), "perf_stat-6.1": (118, 384)}[name]
    assert (found["context-switches", 0].value, found["page-faults", 1].value) == expected
    assert found["task-clock", 1].value == pytest.approx(0.5034, abs=0.001)
    assert "2 windows are needed" in found["minor-faults", None].note
    assert len(found) == 9


def header(**changed: object) -> str:
    one = numbers.Header(1, 1, 1, "user", ["a", "b"])
    return dataclasses.replace(one, **changed).to_json() + "\nack\n"


LINE = '{{"cpu" : "{cpu}", "counter-value" : "{value}", "event" : "{event}", "event-runtime" : 1000, "pcnt-running" : {percent}}}'


def lines(*rows: tuple) -> str:
    return "ack\n" + "\n".join(LINE.format(event=event, cpu=cpu, value=value, percent=100) for event, cpu, value in rows)


def read(begin: str, end: str) -> dict:
    return {(one.name, one.cpu): (one.value, one.note) for one in PerfStat.numbers(Recorded(begin, end, 1.0, Placement()))}


def test_names_may_come_out_in_another_form():
    found = read(header(), lines(("a:u", 0, 1), ("a:u", 1, 2), ("cpu/whatever/", 0, 3), ("cpu/whatever/", 1, 4)))
    assert found == {("a", 0): (1, ""), ("a", 1): (2, ""), ("b", 0): (3, ""), ("b", 1): (4, "")}


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lines(("a", 0, 1), ("b", 0, 1), ("b", 1, 1)), "3 counts of 2 events"),
        (lines(("b", 0, 1), ("a", 0, 1)), "b stands where a should"),
        ("ack\n{broken", "not perf stat -j: {broken"),
        ("ack\n", "perf printed no count"),
        (lines(("a", 0, 1), ("b", 5, 1)), "no whole number of CPUs"),
    ],
)
def test_what_can_not_be_read_is_empty_with_its_reason(end, said):
    found = read(header(), end)
    assert set(found) == {("a", None), ("b", None)}
    assert all(value is None and said in note for value, note in found.values())


@pytest.mark.parametrize("begin", ["", "ack", "{}", "[]", '{"window": 1}', header(mode="idle"), header(left_out={"a": 1})])
def test_a_begin_that_is_not_ours_is_refused(begin):
    with pytest.raises(ValueError):  # noqa: PT011
        read(begin, lines())
