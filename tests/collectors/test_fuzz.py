# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever a tool prints, a parser gives numbers or a ValueError, for that is what the runner records as a failed run."""

import fnmatch
import functools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.base import Collector, Recorded
from vsprof.terms import plugins, units
from vsprof.terms.placement import Placement, Thread
from vsprof.terms.schema import FunctionCount, Number, Span

CAPTURED = Path(__file__).with_name("captured")
PLACEMENT = Placement.from_json(json.loads((CAPTURED / "placement.json").read_text()))
COLLECTORS = plugins.find("vsprof.collectors", "COLLECTOR")


@functools.cache
def sound(name: str) -> tuple[str, str]:
    """What the collector's commands really printed at both ends of a window. One that is new fails here alone."""
    files = [CAPTURED / f"{name}.{end}" for end in ("begin", "end")]
    for path in files:
        assert path.exists(), f"no captured output of {name}: copy a run's raw/r001/*/w1/{name}.begin and .end to {path.parent}"
    return files[0].read_text(), files[1].read_text()


# Near misses find more than noise does: words of the real formats, in any order.
WORDS = st.sampled_from([
    '{"timeline": [{"from_ns": 0, "to_ns": 9, "full": false, "events": [[1, 2, "task", 0, 7, "x"]]}]}', '{"timeline": [{"from_ns": 0, "to_ns": 1e9}]}',
    "CPU0", "CPU1", "LOC:", "25:", "cpu0", "cpu1 1 2", "--- threads", "--- pmd-perf-show", "--- coverage/show", "\n", "\n  ", "1", "-1", "x",
    "/proc/1/task/1/schedstat:", "/proc/1/task/1/status:voluntary_ctxt_switches:", "/proc/1/task/1/status:nonvoluntary_ctxt_switches:", "\t7",
    "pmd thread numa_id 0 core_id 1:", "packets received: 5", "lookups: hit:1 missed:2 lost:3", '{"event": "context-switches", "cpu": "0"}',
    '{"bytes": 0}', '{"bytes": 9}\nperf 1/2 [000] K 7.1: cpu-clock: ', "\t 1f main (/bin/a)", "  5 [000] 7.2: sched:sched_wakeup: comm=a pid=5 prio=1 x",
    '{"event": 1}', "{", "[]", "²", "total: 9",
    "--- seconds\n4\n--- cpuinfo\nprocessor: 0\nphysical id: 0\ncore id: 0\n--- perf\n", "CPU0;<not counted>;;cycles", "--- toplev\n",
    "CPUs,Area,Value,Unit,Description,Sample,Stddev,Multiplex,Bottleneck,Idle\n", "CPU0,Retiring,", "1.5,% Slots <,,,", "100.0,,",
    "--- hw-events\n", "Function,Hardware Event Count:A.B:Self (K),Module\n", "f,1,m\n", "--- summary\n", "Hierarchy Level,Metric Name,Metric Value\n",
    "0,Elapsed Time,4\n", "1,MUX Reliability,0.5\n", "1,A(%),N/A\n", "2,B,1,2\n", "nan", "1e999",
    '{"probes": {"x": "// number: n_{k}, events, @x[tid, k]"}, "missing": {}}\n', '\n{"type": "map", "data": {"@x": {"1,2": 5}}}\n', '{"type": "ended", "data": 0}',
    '\n{"type": "map", "data": {"@counted_ns": 5, "@on": 0}}\n', '\n{"type": "hist", "data": {"@x": [{"min": 1e999}]}}', "--- softirqs 1 0\n", "--- runqlat 1 0\n",
    '\n{"clock": 1, "of": 1, "/vhost_switch/lcore": {"cpu": 1}}\n', '{"clock": 1, "/vhost_switch/settings": {"stages": "on"}}', '\n{"clock": 1, "of": "p1", "/vhost_switch/port": null}\n',
    '{"clock": 1, "/vhost_switch/units": {"rx_packets": "packets"}}\n', "tid = 7", "0 -> 1 : 5 |", "SOFTIRQ TOTAL_usecs",
])  # fmt: skip
TEXTS = st.text(max_size=80) | st.lists(WORDS, max_size=12).map(" ".join) | st.lists(WORDS, max_size=12).map("\n".join)


def reads(name: str, begin: str, end: str) -> None:
    collector = COLLECTORS[name]
    for parser, kind in ((collector.numbers, Number), (collector.functions, FunctionCount), (collector.spans, Span)):
        try:
            found = list(parser(Recorded(begin, end, 1.0, PLACEMENT)))
        except ValueError:
            continue
        assert all(isinstance(one, kind) for one in found)


@pytest.mark.parametrize("name", COLLECTORS)
def test_sound_output_has_known_units(name):
    if name == "ovs_main_thread":
        pytest.skip("its sound output needs another placement, which tests of its own have")
    found = list(COLLECTORS[name].numbers(Recorded(*sound(name), 1.0, PLACEMENT)))
    assert not units.unknown((name, one.unit, one.name) for one in found)


@pytest.mark.parametrize("name", COLLECTORS)
@settings(max_examples=60, deadline=None)
@given(begin=TEXTS, end=TEXTS)
def test_any_text(name, begin, end):
    reads(name, begin, end)


@pytest.mark.parametrize("name", COLLECTORS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_sound_output_with_a_piece_gone(name, data):
    begin, end = (_damaged(data, text) for text in sound(name))
    reads(name, begin, end)


def _damaged(data: st.DataObject, text: str) -> str:
    """The text without some of its lines, and cut short."""
    lines = text.splitlines(keepends=True)
    gone = data.draw(st.sets(st.integers(0, max(0, len(lines) - 1)), max_size=4))
    left = "".join(line for number, line in enumerate(lines) if number not in gone)
    return left[: data.draw(st.just(len(left)) | st.integers(0, len(left)))]


@pytest.mark.parametrize("name", COLLECTORS)
def test_nothing_recorded(name):
    reads(name, "", "")
    reads(name, sound(name)[0], "")
    reads(name, "", sound(name)[1])


@pytest.mark.parametrize("name", [name for name in COLLECTORS if COLLECTORS[name].vocabulary is Collector.vocabulary])
def test_what_it_counts_is_in_words(name):
    """Those that have words of their own say them when they know what they count."""
    begin, end = sound(name)
    # One collector looks for the switch's main thread, which another run than the others' had.
    placement = Placement([Thread("ovs-vswitchd-dp", 623, "switch", (0,))]) if name == "ovs_main_thread" else PLACEMENT
    names = {one.name for one in COLLECTORS[name].numbers(Recorded(begin, end, 1.0, placement))}
    assert names
    bare = [one for one in names if not any(fnmatch.fnmatchcase(one, pattern) for pattern in COLLECTORS[name].says)]
    assert not bare
