# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever perf script prints, the parsers give numbers or a ValueError, and count no sample or switch twice."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.base import Recorded
from vsprof.collectors.perf_record import PerfRecord
from vsprof.collectors.perf_text import Recording
from vsprof.collectors.sched import Sched
from vsprof.terms.placement import Placement

CAPTURED = Path(__file__).parents[1] / "captured" / "perf"
PIECES = st.sampled_from([
    "perf 1/2 [000] K 7.1: cpu-clock: ", "perf 1/2 [000] K 7.1:  12 page-faults: ", "a 1/2 [000] U 7.1:  9999999 l1:GHpp: ", "gzip 1/2 [001] U 7.000000001: cycles:GH: ", "[guest/1] 1/2 [001] g 7.2: cpu-clock:", "a b 0/0 [000]", "\n", "\n\n",
    "\t 1f main (/bin/a)", "\tffffffff81000000 f ([kernel.kallsyms])", "\t 1 [unknown] ([unknown])", "\t 1 x (/a.ko+0x12)", "\t zz", "PERF_RECORD_LOST lost 3",
    "  5 [000] 7.1: sched:sched_switch: prev_comm=a prev_pid=5 prev_prio=1 prev_state=R ==> next_comm=b next_pid=0 next_prio=9",
    "  5 [001] 7.05: sched:sched_switch: prev_comm=b prev_pid=0 prev_prio=1 prev_state= ==> next_comm=b next_pid=5 next_prio=9",
    "  5 [000] 7.2: sched:sched_wakeup: comm=a pid=5 prio=1 target_cpu=000", "  5 [000] 7.3: sched:other: x", "²", "[٣]", "7.٣",
])  # fmt: skip
TEXTS = st.text(max_size=60) | st.lists(PIECES, max_size=14).map("\n".join) | st.lists(PIECES, max_size=8).map("".join)


def reads(collector, text: str, **header: object) -> None:
    window = Recorded("", Recording({"bytes": len(text.encode(errors="replace")), **header}, text).recorded(), 1.0, Placement())
    try:
        numbers = list(collector.numbers(window))
        functions, stacks = list(collector.functions(window)), list(collector.stacks(window))
        assert collector.source_of(window) in ("software", "hardware")
    except ValueError:
        return
    assert numbers
    samples = sum(number.value or 0 for number in numbers if number.name == "samples")
    if collector is PerfRecord:
        estimated = sum(number.value or 0 for number in numbers if number.name.startswith("sampled_"))
        assert sum(one.value for one in functions) == sum(one.value for one in stacks) == samples + estimated
    else:
        switches = sum(number.value or 0 for number in numbers if number.name.startswith("switches_"))
        assert sum(one.value for one in functions) == switches


@pytest.mark.parametrize("collector", [PerfRecord, Sched])
@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_any_text(collector, text):
    reads(collector, text + "\n")


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, events=st.dictionaries(st.sampled_from(["page-faults", "l1", "l1:GHpp", "cpu-clock"]), st.lists(st.sampled_from("abc"))))
def test_any_text_of_events(text, events):
    reads(PerfRecord, text + "\n", events=events, left_out={"d": "not here"})


@pytest.mark.parametrize("name", ["samples-6.1-dwarf", "samples-6.12-fp", "samples-lost-6.12", "sched-6.1", "sched-lost-6.12"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_real_text_with_pieces_gone(name, data):
    text = (CAPTURED / f"{name}.txt").read_text()
    lines = text.splitlines(keepends=True)
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=5))
    reads(Sched if name.startswith("sched") else PerfRecord, "".join(line for at, line in enumerate(lines) if at not in gone))
