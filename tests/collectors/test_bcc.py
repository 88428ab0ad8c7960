# SPDX-License-Identifier: GPL-2.0-or-later
"""The parsers of bcc's tools, on what bcc 0.31 really printed in the lab."""

from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.bcc import Bcc
from vsprof.terms import errors
from vsprof.terms.placement import Placement, Thread

CAPTURED = (Path(__file__).with_name("captured") / "bcc.end").read_text()


def recorded(text: str, *threads: Thread) -> Recorded:
    return Recorded("", text, 0.0, Placement(list(threads)))


def test_each_kind_of_softirq_has_its_time_and_one_without_a_line_had_none():
    found = {n.name: n for n in Bcc.numbers(recorded(CAPTURED)) if n.name.startswith("bcc_softirq_")}
    assert len(found) == 10
    row = next(line for line in CAPTURED.splitlines() if line.startswith("timer"))
    assert found["bcc_softirq_timer_seconds"].value == int(row.split()[1]) / 1e6
    assert found["bcc_softirq_block_seconds"].value == 0
    assert found["bcc_softirq_block_seconds"].running_s == 1.0


def test_the_waits_of_a_thread_have_its_role():
    tid = int(next(line for line in CAPTURED.splitlines() if line.startswith("tid = ")).split()[2])
    without = {(n.name, n.role): n.value for n in Bcc.numbers(recorded(CAPTURED))}
    found = {(n.name, n.role): n.value for n in Bcc.numbers(recorded(CAPTURED, Thread("x", tid, "guest", (1,))))}
    rows = CAPTURED.partition(f"tid = {tid}\n")[2].partition("tid = ")[0].splitlines()
    waits = sum(int(row.partition(":")[2].split()[0]) for row in rows if "->" in row)
    assert found["bcc_run_queue_waits", "guest"] == waits > 0
    assert found["bcc_run_queue_waits", "host-other"] + waits == without["bcc_run_queue_waits", "host-other"]
    buckets = sum(value for (name, role), value in found.items() if role == "guest" and "_from_" in name)
    assert buckets == waits


def test_a_tool_that_failed_gives_no_number_but_its_last_words():
    failed = list(Bcc.numbers(recorded("--- softirqs 1 1\nUnable to find kernel headers.\n--- runqlat 1 124\n\n")))
    assert len(failed) == 11
    assert all(number.value is None for number in failed)
    assert "kernel headers" in failed[0].note


@pytest.mark.parametrize("text", ["--- softirqs 1 0\nnothing\n", "--- runqlat 1 0\nnothing\n", "--- other 1 0\nx\n", "x"])
def test_what_is_no_tools_table_is_refused(text):
    with pytest.raises(ValueError, match=r"nothing|other|bcc"):
        list(Bcc.numbers(recorded(text)))


@pytest.mark.parametrize("given", [{"tools": "softirqs"}, {"tools": []}, {"tools": ["opensnoop"]}])
def test_wrong_options_are_refused(given):
    with pytest.raises(errors.BadInput, match="softirqs"):
        Bcc.check_options(given)
