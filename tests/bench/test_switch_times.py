# SPDX-License-Identifier: GPL-2.0-or-later
"""Times of packets, from what the scripts print; the switches themselves forward in tests/bench/test_in_lab.py."""

import subprocess
import sys

import pytest

from vsprof.bench import switch_times
from vsprof.bench.switch_times import HERE, Start
from vsprof.terms.errors import RunFailed

PRINTED = "microseconds=1000 packets=10 idle=0 polls=0\nmicroseconds=2000 packets=20 idle=0 polls=0\nmicroseconds=2600 packets=32 idle=0 polls=0\n"


def test_a_window_lies_between_two_samples():
    assert switch_times.windows(PRINTED) == [100_000.0, 50_000.0]


@pytest.mark.parametrize("printed", ["", PRINTED.splitlines()[0] + "\n", PRINTED.replace("packets=20", "packets=10")])
def test_no_window_and_no_packet_are_errors(printed):
    with pytest.raises(RunFailed):
        switch_times.windows(printed)


def test_starts_with_cpus_far_apart_count_where_there_are_no_others():
    far, near = Start(150.0, near=False), Start(100.0, near=True)
    assert switch_times.counted([far, near, near]) == [100.0, 100.0]
    assert switch_times.counted([far, far]) == [150.0, 150.0]


def test_samples_are_of_an_interface_and_the_time():
    ran = subprocess.run(
        [sys.executable, str(HERE / "sample_packets.py"), "3", "0.01", "interface=lo"], capture_output=True, text=True, check=True
    )
    found = switch_times.SAMPLE.findall(ran.stdout)
    assert len(found) == 3
    assert int(found[0][0]) < int(found[2][0])
    assert int(found[0][1]) <= int(found[2][1])


@pytest.mark.parametrize("switch", switch_times.SWITCHES, ids=lambda switch: switch.name)
def test_a_script_names_its_actions(switch):
    ran = subprocess.run(["bash", str(switch.script), "nothing"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "sample" in ran.stderr
