# SPDX-License-Identifier: GPL-2.0-or-later
"""What perf is told, and what is read from the lines that it prints (perf stat -x ';', of 6.1 and 6.12)."""

import pytest

from vsprof.bench import perf

COUNTED = """\
1001.58;msec;task-clock:u;1001579892;100.00;1.000;CPUs utilized
3613000000;;cycles:u;1000500000;100.00;3.607;GHz
200506;;stalled-cycles-frontend:u;1000500000;100.00;7.09;frontend cycles idle
9002000000;;instructions:u;1000500000;100.00;2.49;insn per cycle
;;;;;0.42;stalled cycles per insn
4120;;ls_dmnd_fills_from_sys.all:u;1000500000;100.00;;
80;;l1d.replacement:u;1000500000;100.00;;
"""


def test_a_cpu_is_counted_in_user_mode():
    told = perf.command(["cycles", "instructions"], cpu=1)
    assert told == ["perf", "stat", "-x", ";", "--log-fd", "1", "-C", "1", "-e", "cycles:u,instructions:u", "--"]


def test_a_command_is_counted_wherever_it_runs():
    assert "-C" not in perf.command(["cycles"])


def test_an_event_has_its_count_and_its_time():
    assert perf.read(COUNTED, ["instructions"]) == perf.Count(9_002_000_000, 1.0005)


def test_events_are_summed_up():
    counted = perf.read(COUNTED, ["ls_dmnd_fills_from_sys.all", "L1D.REPLACEMENT"])
    assert counted == perf.Count(4200, 1.0005)


def test_a_fraction_is_a_count_too():
    assert perf.read(COUNTED, ["task-clock"]) == perf.Count(1001.58, 1.001579892)


@pytest.mark.parametrize(
    "line",
    [
        "<not supported>;;instructions:u;0;100.00;;",
        "<not counted>;;instructions:u;0;0.00;;",
        # Never on a counter, and yet all of the time.
        "0;;instructions:u;0;100.00;;",
        # In turns with others: the count is a projection.
        "102889150;;instructions:u;7571044;86.00;;",
        "event syntax error: 'ls_dmnd_fills'",
        "",
    ],
)
def test_what_was_not_counted_all_the_time_is_none(line):
    assert perf.read(line, ["instructions"]) is None
    assert perf.read(f"{COUNTED.replace('instructions', 'others')}{line}\n", ["cycles", "instructions"]) is None


def test_nothing_asked_is_nothing_counted():
    assert perf.read(COUNTED, []) is None
