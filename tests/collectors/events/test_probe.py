# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading what perf printed, and what is concluded from it: on output of perf 6.1 and 6.12, and on the forms of perf-stat(1)."""

import contextlib
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.events import catalogue, probe
from vsprof.collectors.events.probe import COUNTED, NOT_COUNTED, NOT_SUPPORTED, NOT_TRIED, REFUSED, UNKNOWN, Count, Probed, Ran

CAPTURED = Path(__file__).with_name("captured")
PRINTED = sorted(CAPTURED.glob("*.printed"))


def printed(name: str) -> str:
    return (CAPTURED / f"{name}.printed").read_text()


# --- Reading ------------------------------------------------------------------------------------------------------


def test_columns_of_perf_6_1():
    counts = {count.event: count for count in probe.read(printed("perf-6.1-x"))}
    assert counts["instructions:u"] == Count("instructions:u", None, "", 0.0, NOT_SUPPORTED)
    assert counts["r45f0"].state == NOT_SUPPORTED
    assert counts["context-switches"] == Count("context-switches", 0.0, "", 0.000507025, COUNTED)
    assert counts["task-clock"].value == 0.51
    assert counts["task-clock"].unit == "msec"
    assert len(counts) == 8


@pytest.mark.parametrize("version", ["6.1", "6.12"])
def test_json_says_what_columns_say(version):
    states = [(count.event, count.state, count.unit) for count in probe.read(printed(f"perf-{version}-j"))]
    assert states == [("instructions:u", NOT_SUPPORTED, ""), ("context-switches", COUNTED, ""), ("task-clock", COUNTED, "msec")]
    rows = [(count.event, count.state, count.unit) for count in probe.read(printed(f"perf-{version}-x"))]
    assert set(states) <= set(rows)


def test_counts_of_each_cpu():
    assert [(count.cpu, count.value) for count in probe.read(printed("perf-6.1-per-cpu"))] == [(0, 3.0), (1, 8.0)]
    counts = probe.read(printed("perf-6.12-per-cpu-j"))
    assert [(count.cpu, count.event, count.value) for count in counts[2:]] == [(0, "context-switches", 4.0), (1, "context-switches", 8.0)]
    assert {count.state for count in counts[:2]} == {NOT_SUPPORTED}


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("123;;cycles;1000000000;100.00", Count("cycles", 123.0, "", 1.0, COUNTED)),  # without a metric
        ("123;;cycles;500000000;50.00;1.25%;;", Count("cycles", 123.0, "", 0.5, COUNTED)),  # with -r: the variance
        ("<not counted>;;cycles;0;100.00;;", Count("cycles", None, "", 0.0, NOT_COUNTED)),
        ("0;;cycles;0;100.00;;", Count("cycles", None, "", 0.0, NOT_COUNTED)),  # it never ran: no zero
        ("0;;cycles;9;100.00;;", Count("cycles", 0.0, "", 9e-9, COUNTED)),  # it ran, and counted none
        ('{"event": "a", "counter-value": "7", "event-runtime": 1e9, "new": [1]}', Count("a", 7.0, "", 1.0, COUNTED)),
        ('{"event": "a", "counter-value": "7", "unit": "(null)", "event-runtime": 1e9}', Count("a", 7.0, "", 1.0, COUNTED)),
    ],
)
def test_documented_forms(line, count):
    assert probe.read(line) == [count]


@pytest.mark.parametrize(
    "line", ["", "# started on Sat Nov 21", ";;;;;1.25;insn per cycle", '{"metric-value" : 1.0, "metric-unit" : "GHz"}', "a;b", "Error:"]
)
def test_other_lines_are_passed_over(line):
    assert probe.read(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "x;;cycles;1;100;;",
        "1;;cycles;x;100;;",
        "inf;;cycles;1;100;;",
        "1,5;;a;1;2",
        '{"event":',
        '{"event": "a", "counter-value": 1}',
        '{"event": "a", "counter-value": 1, "event-runtime": 1, "cpu": Infinity}',
        "{}x",
    ],
)
def test_a_count_that_can_not_be_read(line):
    with pytest.raises(ValueError, match=r"not perf stat -[xj]"):
        probe.read(line)


# --- Judging ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ran", "state", "why"),
    [
        (Ran(0, "1;;cycles;9;100.00;;"), COUNTED, ""),
        (Ran(0, "<not supported>;;cycles;0;100.00;;"), NOT_SUPPORTED, ""),
        (Ran(0, "<not counted>;;cycles;0;100.00;;"), NOT_COUNTED, ""),
        (Ran(129, printed("perf-6.1-unknown")), UNKNOWN, "event syntax error: 'nosuch'"),
        (Ran(129, printed("perf-6.12-unknown")), UNKNOWN, "event syntax error: 'nosuch'"),
        (Ran(129, printed("perf-6.1-no-pmu")), UNKNOWN, "event syntax error: 'cpu/event=0x45,umask=0xf0/'"),
        (Ran(129, printed("perf-6.12-no-pmu")), UNKNOWN, "event syntax error: 'cpu/event=0x45/'"),
        (Ran(255, printed("perf-6.1-refused")), REFUSED, "the kernel refuses perf to this user"),
        (Ran(None, ""), NOT_COUNTED, "perf stat of the program `true` had not ended after 5 s"),
        (Ran(0, "x;;cycles;1;100;;"), NOT_COUNTED, "not perf stat -x"),
        (Ran(0, ""), NOT_COUNTED, "perf ended with 0, and printed nothing"),
        (Ran(1, "Workload failed\n"), NOT_COUNTED, "Workload failed"),
    ],
)
def test_verdicts(ran, state, why):
    found = probe.judge(ran)
    assert found.state == state
    assert found.why.startswith(why)
    assert found.counted == (state == COUNTED)


# --- A survey -----------------------------------------------------------------------------------------------------


YES, NO = Ran(0, "5;;e;9;100.00;;"), Ran(0, "<not supported>;;e;0;100.00;;")


class Perf:
    """A perf that counts what it is told to; it remembers what it was asked."""

    def __init__(self, answers: dict[str, Ran], otherwise: Ran = YES) -> None:
        self.answers, self.otherwise, self.asked = answers, otherwise, []

    def __call__(self, command: list[str]) -> Ran:
        if command[1] == "--version":
            return Ran(0, "perf version 6.1.187\n")
        event = command[command.index("-e") + 1]
        self.asked.append(event)
        return self.answers.get(event, self.otherwise)


ZEN4 = catalogue.load("zen4")
HARDWARE = [name for name, event in ZEN4.events.items() if event.hardware]


def test_each_event_is_tried_alone():
    perf = Perf({ZEN4.events["ex_ret_ops"].perf(): NO})
    found = probe.survey(ZEN4, perf)
    assert found.perf == "perf version 6.1.187"
    assert found.events["ex_ret_ops"] == Probed(NOT_SUPPORTED)
    assert sum(one.counted for one in found.events.values()) == len(ZEN4.events) - 1
    assert len(perf.asked) <= len(ZEN4.events) + 3
    assert all(event.count("/") in (0, 2) for event in perf.asked)


def test_no_pmu_is_said_once():
    perf = Perf({"cycles": NO, "instructions": NO})
    found = probe.survey(ZEN4, perf)
    said = [line for line in found.findings if "PMU" in line]
    assert len(said) == 1
    assert f"none of the {len(HARDWARE)} hardware events of zen4" in said[0]
    assert {found.events[name].state for name in HARDWARE} == {NOT_TRIED}
    assert not any(event.startswith("cpu/") for event in perf.asked)
    assert found.events["context-switches"].counted


def no_perf(command: list[str]) -> Ran:
    raise FileNotFoundError(command[0])


def test_no_perf():
    found = probe.survey(ZEN4, no_perf)
    assert found.perf == ""
    assert found.findings == [found.events["ex_ret_instr"].why]
    assert "perf not found" in found.findings[0]


@pytest.mark.parametrize(
    ("ran", "said"),
    [
        (Ran(255, printed("perf-6.1-refused")), "the kernel refuses perf to this user (perf_event_paranoid is "),
        (Ran(0, "a form of another time"), "perf version 6.1.187 prints counts in a form that vsprof can't read"),
        (Ran(None, ""), "had not ended after 5 s"),
        (Ran(2, "WARNING: perf not found for kernel 6.18\n"), "not even task-clock: WARNING: perf not found for kernel"),
        (Ran(1, ""), "not even task-clock: it printed nothing"),
    ],
)
def test_a_perf_that_is_of_no_use_is_asked_once(ran, said):
    perf = Perf({}, ran)
    found = probe.survey(ZEN4, perf)
    assert len(found.findings) == 1
    assert said in found.findings[0]
    assert perf.asked == [probe.SURE]
    assert {one.state for one in found.events.values()} == {NOT_TRIED}


def test_a_level_of_paranoia_is_told_to_others_than_root(monkeypatch, tmp_path):
    level = tmp_path / "perf_event_paranoid"
    monkeypatch.setattr(probe, "PARANOID", level)
    monkeypatch.setattr(probe.os, "geteuid", lambda: 1000)
    for text, told in (("2\n", True), ("1\n", True), ("0\n", False), ("-1\n", False)):
        level.write_text(text)
        assert any("perf_event_paranoid is" in line for line in probe.survey(ZEN4, Perf({})).findings) == told
    monkeypatch.setattr(probe.os, "geteuid", lambda: 0)
    level.write_text("4\n")
    assert probe.survey(ZEN4, Perf({})).findings == []


def test_the_time_is_bounded():
    clock = iter(range(0, 10_000, 10))
    found = probe.survey(ZEN4, Perf({}), now=lambda: float(next(clock)))
    states = [one.state for one in found.events.values()]
    assert states[:5] == [COUNTED] * 5
    assert states[-1] == NOT_TRIED
    assert "probing had taken 60 s" in found.events[list(ZEN4.events)[-1]].why


def test_a_perf_that_hangs_is_ended_with_all_that_it_started(monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "EACH_S", 0.3)
    began = time.monotonic()
    assert probe.run(["sh", "-c", f"sleep 60 & echo $! >{tmp_path}/child; wait"]) == Ran(None, "")
    assert time.monotonic() - began < 10
    child = Path("/proc", (tmp_path / "child").read_text().strip(), "status")
    for _ in range(100):
        if not child.exists() or "State:\tZ" in child.read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child of perf still runs")


def test_what_a_program_prints_and_ends_with():
    assert probe.run(["sh", "-c", "echo a; echo b >&2; exit 3"]) == Ran(3, "a\nb\n")
    with pytest.raises(OSError, match="no-such-perf"):
        probe.run(["no-such-perf"])


# --- Whatever perf prints -----------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["CPU0;", "CPU²;", ";", ";;", "1", "-1", "1e999", "<not supported>", "<not counted>", "cycles", "msec", "nan", "{", "}", "\n"]
)
ROW = st.dictionaries(
    st.sampled_from(["event", "counter-value", "event-runtime", "unit", "cpu"]),
    st.none() | st.integers() | st.floats() | st.text(max_size=5),
)


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(max_size=80) | st.lists(WORDS, max_size=15).map("".join) | ROW.map(str) | ROW.map(json.dumps),
    status=st.sampled_from([0, 129, None]),
)
def test_any_text_is_read_or_refused(text, status):
    try:
        counts = probe.read(text)
    except ValueError:
        counts = []
    assert all((count.value is None) == (count.state != COUNTED) for count in counts)
    assert probe.judge(Ran(status, text)).state in (COUNTED, NOT_COUNTED, NOT_SUPPORTED, UNKNOWN, REFUSED)


@pytest.mark.parametrize("path", PRINTED, ids=lambda path: path.stem)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_sound_output_cut_short(path, data):
    text = path.read_text()
    end = data.draw(st.integers(0, len(text)))
    with contextlib.suppress(ValueError):
        probe.read(text[:end])
