# SPDX-License-Identifier: GPL-2.0-or-later
"""What is shown of the lab's CPUs while a window lasts."""

from __future__ import annotations

from vsprof.collectors.base import Glance
from vsprof.runner.live import Live, lines

ROLES = {0: "host-other", 1: "switch", 2: "guest"}
BEFORE = Glance(1.0, 100, (0, 1_000_000, 0), (0, 2_000_000, 0), 2e9)
NOW = Glance(1.01, 12_100, (0, 18_000_000, 20_000_100), (0, 36_000_000, 10_000_050), 2e9)


class Clock:
    def __init__(self, *seen):
        self.seen = list(seen)

    def glance(self):
        return self.seen.pop(0)


def test_a_line_a_cpu_with_role_load_and_cpi():
    assert lines(BEFORE, NOW, ROLES) == [
        "1,200,000 packets/s received by kernels",
        "CPU 0  host-other    0% busy  idle",
        "CPU 1  switch       85% busy  CPI 0.50",
        "CPU 2  guest       100% busy  CPI 2.00",
    ]


def test_where_no_kernel_receives_there_is_no_rate():
    quiet = Glance(1.01, 100, NOW.cycles, NOW.instructions, 2e9)
    assert lines(BEFORE, quiet, ROLES)[0].startswith("CPU 0")


def test_the_first_look_and_one_too_soon_say_nothing():
    said = []
    soon = Glance(1.0001, 101, *(BEFORE.cycles, BEFORE.instructions), 2e9)
    live = Live(Clock(BEFORE, soon, NOW), ROLES, said.append)
    for _ in range(3):
        live()
    assert len(said) == 1
    assert said[0].splitlines()[2] == "CPU 1  switch       85% busy  CPI 0.50"


def test_a_clock_that_begins_again_is_looked_at_anew():
    said = []
    live = Live(Clock(NOW, BEFORE, NOW), ROLES, said.append)
    for _ in range(3):
        live()
    assert len(said) == 1
