# SPDX-License-Identifier: GPL-2.0-or-later
"""The parser of ebpf, on what bpftrace 0.17 and 0.23 really printed around the worker of test_ebpf_counts.py; and the heads of probes."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.base import Recorded
from vsprof.collectors.ebpf import MOST_KEYS, PROBES, Ebpf, probes
from vsprof.terms import errors
from vsprof.terms.placement import Placement, Thread
from vsprof.terms.schema import Number

CAPTURED = Path(__file__).with_name("captured")
WORKER = {"0.17": 6742, "0.23": 6465}
"""Its thread, by the version of bpftrace."""
HEAD = "// number: slept_{reason}, events, @slept[cpu, reason]\n// reason: 1 well, 2 badly\n"


def captured(version: str) -> str:
    return (CAPTURED / f"ebpf-{version}.end").read_text()


def numbers(version: str) -> list[Number]:
    placement = Placement([Thread("worker", WORKER[version], "guest", (0,))], {0: "host-other", 1: "switch"})
    return list(Ebpf.numbers(Recorded("", captured(version), 0.0, placement)))


def recording(head: str, *lines: str, missing: dict[str, str] | None = None) -> Recorded:
    described = json.dumps({"probes": {"sleep": head}, "missing": missing or {}})
    frame = [
        '{"type": "ended", "data": 0}',
        '{"type": "map", "data": {"@on": 0}}',
        '{"type": "map", "data": {"@counted_ns": 2e9}}',
    ]
    return Recorded("", "\n".join([described, *frame, *lines]), 0.0, Placement([], {0: "switch", 1: "guest"}))


def found(recorded: Recorded) -> dict[tuple[str, int | None], float | None]:
    return {(number.name, number.cpu): number.value for number in Ebpf.numbers(recorded)}


@pytest.mark.parametrize("version", WORKER)
def test_what_both_versions_print(version):
    by_role = {(n.name, n.role): n.value for n in numbers(version) if n.cpu is None}
    assert by_role["left_cpu_slept", "guest"] in (101, 102)
    assert 1602 <= by_role["syscalls", "guest"] <= 1606
    assert by_role["left_cpu_to_idle", "guest"] + by_role["left_cpu_to_host_other", "guest"] == by_role["left_cpu_slept", "guest"] + (
        by_role["left_cpu_preempted", "guest"] + by_role["left_cpu_blocked", "guest"]
    )
    assert by_role["left_cpu_stopped", "guest"] == 0
    text = captured(version)
    calls = next(
        json.loads(line)["data"]["@syscalls"] for line in text.splitlines() if '"@syscalls"' in line and line.startswith('{"type": "map')
    )
    assert by_role["syscalls", "guest"] + by_role["syscalls", "host-other"] == sum(calls.values())


@pytest.mark.parametrize("version", WORKER)
def test_softirqs_have_their_cpus_role_and_the_programs_own_time(version):
    softirqs = {(n.name, n.cpu): n for n in numbers(version) if n.name.startswith("softirq_")}
    assert len(softirqs) == 2 * 10 * 2
    assert sum(softirqs["softirq_net_rx_runs", cpu].value for cpu in (0, 1)) >= 500
    assert softirqs["softirq_hi_seconds", 1].value == 0
    assert {n.role for (_, cpu), n in softirqs.items() if cpu == 1} == {"switch"}
    assert {n.unit for n in softirqs.values()} == {"seconds", "events"}
    seconds = {n.running_s for n in softirqs.values()}
    assert len(seconds) == 1
    assert 0.1 < seconds.pop() < 2


def test_ten_upcalls_of_the_lab_and_how_long_they_took():
    recorded = Recorded("", (CAPTURED / "ebpf-upcalls.end").read_text(), 0.0, Placement([], dict.fromkeys(range(4), "host-other")))
    numbers = {(n.name, n.cpu): n.value for n in Ebpf.numbers(recorded)}
    assert (numbers["kernel_upcalls", 0], numbers["kernel_upcalls", 3], numbers["upcalls_answered", None]) == (10, 0, 10)
    assert numbers["upcall_seconds", None] == pytest.approx(0.138658245)
    assert (numbers["upcalls_answered_from_1048576ns", None], numbers["upcalls_answered_from_2097152ns", None]) == (1, 4)


def test_a_window_without_marks_is_empty_and_says_what_bpftrace_said():
    lines = [line for line in captured("0.23").splitlines() if '"@counted_ns"' not in line]
    gone = list(Ebpf.numbers(Recorded("", "\n".join([*lines, "# stdin: ERROR: out of memory"]), 0.0, Placement())))
    assert gone
    assert all(n.value is None and "out of memory" in n.note for n in gone)
    once = captured("0.23").replace('{"@on": 0}', '{"@on": 1}')
    assert all(n.value is None for n in Ebpf.numbers(Recorded("", once, 0.0, Placement())))


def test_maps_that_a_killed_bpftrace_did_not_print_are_no_zeros():
    killed = captured("0.23").replace('{"type": "ended", "data": 0}', '{"type": "ended", "data": 137}')
    assert killed != captured("0.23")
    for text in (killed, captured("0.23").replace('{"type": "ended", "data": 0}', "")):
        assert all(n.value is None for n in Ebpf.numbers(Recorded("", text, 0.0, Placement())))


def test_what_has_a_word_but_no_key_is_zero_and_what_has_no_word_is_other():
    assert found(recording(HEAD)) == {("slept_well", 0): 0, ("slept_well", 1): 0, ("slept_badly", 0): 0, ("slept_badly", 1): 0}
    counted = found(recording(HEAD, '{"type": "map", "data": {"@slept": {"0,2": 5, "0,7": 1, "3,1": 4}}}'))
    assert (counted["slept_badly", 0], counted["slept_other", 0], counted["slept_well", 3]) == (5, 1, 4)


def test_a_probe_that_was_missing_is_empty_and_not_zero():
    assert found(recording(HEAD, missing={"sleep": "no tracepoint"})) == {("slept_well", None): None, ("slept_badly", None): None}


def test_a_full_map_is_empty_and_not_too_small():
    full = {f"0,{key}": 1 for key in range(MOST_KEYS)}
    assert set(found(recording(HEAD + "{ @slept[0, 0] }", json.dumps({"type": "map", "data": {"@slept": full}}))).values()) == {None}


def test_maps_without_keys_of_each_kind():
    head = "// number: all, events, @n\n// number: waits, events, count of @h\n// number: waits_{bucket}, events, buckets of @h\n// number: spent, us, total of @s\n"
    lines = [
        '{"type": "map", "data": {"@n": 3}}', '{"type": "stats", "data": {"@s": {"count": 2, "average": 5, "total": 10}}}',
        '{"type": "hist", "data": {"@h": [{"min": 2, "max": 3, "count": 4}, {"min": 4, "max": 7, "count": 0}, {"min": 8, "max": 15, "count": 1}]}}',
    ]  # fmt: skip
    assert found(recording(head, *lines)) == {
        ("all", None): 3,
        ("waits", None): 5,
        ("waits_2", None): 4,
        ("waits_8", None): 1,
        ("spent", None): pytest.approx(1e-5),
    }


def test_lost_events_are_told_on_every_row():
    lost = list(Ebpf.numbers(recording(HEAD, '{"type": "lost_events", "data": {"events": 5}}')))
    assert all("5" in number.note for number in lost)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"type": "map", "data": {"@slept": {"0": 1}}}',
        '{"type": "hist", "data": {"@slept": {"0,1": 7}}}',
        "\x00",
        "Attaching 3 probes...",
    ],
)
def test_what_is_not_bpftraces_is_refused(line):
    with pytest.raises(ValueError, match=r"slept|bpftrace"):
        found(recording(HEAD, line))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tracepoint:a:b { @x = count(); }", "no number"),
        ("// number: x, parsecs, @x\n", "parsecs"),
        ("// number: x_{why}, events, @x[cpu]\n", "{why}"),
        ("// number: x_{why}, events, @x[why]\n// why: 1\n", "why: 1"),
        ("// number: x_{bucket}, events, @x[cpu]\n", "{bucket}"),
        ("// number: x_{, events, @x[cpu]\n", "x_{"),
        ("// number: x, events, @x\nEND { clear(@x); }\n", "END"),
    ],
)
def test_a_wrong_head_says_what_is_wrong(text, words):
    with pytest.raises(ValueError, match=r"mine\.bt: ") as refused:
        probes.Probe.of("mine", text)
    assert words in str(refused.value)


PIECES = st.sampled_from(
    ["// number: ", "x", "_{why}", "{", "}", ", events, ", "@x", "[cpu, why]", "\n", "// why: ", "role", "0 no", ",", "BEGIN", "count of "]
)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=60) | st.lists(PIECES, max_size=14).map("".join), keys=st.sampled_from(["", "1,2", "x,y", "1"]))
def test_any_head_is_read_or_refused(text, keys):
    try:
        list(Ebpf.numbers(recording(text, json.dumps({"type": "map", "data": {"@x": {keys: 1} if keys else 1}}))))
    except ValueError:
        return


def test_two_probes_with_one_map_are_refused(monkeypatch, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.bt").write_text("// number: x, events, @x\ntracepoint:a:b /@on/ { @x = count(); }\n")
    monkeypatch.setattr(probes, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="@x is in the probes one and two"):
        probes.read(probes.names())


def test_the_shipped_probes_can_be_read_together_and_count_inside_the_window_only():
    for probe in probes.read(PROBES):
        assert probe.tracepoints
        predicates = [line for line in probe.text.splitlines() if line.startswith("/@on")]
        assert len(predicates) >= len(probe.text.split("\n{\n")) - 1


@pytest.mark.parametrize("given", [{"probes": "syscalls"}, {"probes": []}, {"probes": ["nonsense"]}])
def test_wrong_options_are_refused(given):
    with pytest.raises(errors.BadInput, match="probe"):
        Ebpf.check_options(given)
