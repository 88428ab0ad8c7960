# SPDX-License-Identifier: GPL-2.0-or-later
"""What is seen of a window while it lasts and once it is over, and how it is written."""

import io

import pytest
from rich.console import Console

from vsprof.collectors.base import Glance, Load
from vsprof.collectors.cpu_time import CpuTime
from vsprof.runner import screen
from vsprof.runner.live import Seen, Watch, loads
from vsprof.terms.placement import Placement

ROLES = {0: "host-other", 1: "switch", 2: "guest"}
BEFORE = Glance(1.0, 100, (0, 1_000_000, 0), (0, 2_000_000, 0), 2e9)
NOW = Glance(1.01, 12_100, (0, 18_000_000, 20_000_100), (0, 36_000_000, 10_000_050), 2e9)
LATER = Glance(1.02, 12_100, (2_000_000, 19_000_000, 40_000_100), (1_000_000, 37_000_000, 30_000_050), 2e9)
CPUS = ((0, "host-other", Load(0.0)), (1, "switch", Load(0.85, 0.5)), (2, "guest", Load(1.0, 2.0)))
OVER = Seen("udp_flood-saturation, window 1 of 2", True, 1_203_000.0, CPUS)


class Clock:
    def __init__(self, *seen):
        self.seen = list(seen)

    def glance(self):
        return self.seen.pop(0)

    def loads(self, recorded):
        return {1: Load(float(recorded.end), 0.5)}


@pytest.fixture
def said():
    return []


def watch(said, *glances):
    made = Watch(said.append, "udp_flood-saturation", "kernel-ovs", ["tap2"], Placement([], ROLES), Clock(*glances) if glances else None)
    made.begin(1, 2)
    for _ in glances:
        made()
    return made


def test_each_cpu_has_its_load_and_cpi():
    found = loads(BEFORE, NOW)
    assert [one.cpi for one in found.values()] == [None, pytest.approx(0.5), pytest.approx(2.0)]
    assert [one.busy for one in found.values()] == pytest.approx([0.0, 0.85, 1.0], abs=0.001)


def test_a_cpu_that_did_more_than_its_time_allows_worked_for_probes():
    assert loads(BEFORE, Glance(1.01, 0, (30_000_000, 1_000_000, 0), (60_000_000, 2_000_000, 0), 2e9))[0] == Load(None, 0.5)
    assert screen.one_line(Seen("idle", True, None, ((0, "guest", Load(None, 0.5)),))).endswith("CPU 0 guest – CPI 0.50")


def test_a_window_is_looked_at_while_it_lasts(said):
    watch(said, BEFORE, NOW, LATER)
    assert [(one.window, one.over) for one in said] == [("udp_flood-saturation, window 1 of 2", False)] * 2
    assert said[0].packets == pytest.approx(1_200_000)


def test_where_no_kernel_receives_there_is_no_rate_yet(said):
    watch(said, NOW, LATER)
    assert said[0].packets is None


def test_the_first_look_and_one_too_soon_say_nothing(said):
    soon = Glance(1.0001, 101, *(BEFORE.cycles, BEFORE.instructions), 2e9)
    watch(said, BEFORE, soon, NOW)
    assert len(said) == 1
    assert [cpu[:2] for cpu in said[0].cpus] == [*ROLES.items()]
    assert said[0].cpus[1][2].cpi == pytest.approx(0.5)


def test_a_clock_that_begins_again_is_looked_at_anew(said):
    watch(said, NOW, BEFORE, NOW)
    assert len(said) == 1


@pytest.fixture
def recorded(tmp_path):
    """A window of 2 s in which the switch sent 3000 packets to the port tap2, as kernel OVS prints it."""
    for end, packets, stamp in (("begin", 1000, 10.0), ("end", 4000, 12.0)):
        counts = f"rx pkts=5, bytes=300, drop=0\n           tx pkts={packets}, bytes={packets * 60}, drop=0"
        (tmp_path / f"ports.{end}").write_text(f"OFPST_PORT reply (xid=0x2): 1 ports\n  port tap2: {counts}\n")
        (tmp_path / f"ports.{'began' if end == 'begin' else 'ended'}").write_text(f"{stamp}\n")
    return tmp_path


def test_a_window_that_is_over_has_the_switchs_rate_and_what_the_clock_counted_in_all_of_it(said, recorded):
    (recorded / "model.end").write_text("0.25")
    watch(said, BEFORE, NOW, LATER).end(recorded, {}, recorded / "model.end")
    assert said[-1] == Seen("udp_flood-saturation, window 1 of 2", True, 1500.0, ((1, "switch", Load(0.25, 0.5)),))


def test_the_next_window_knows_nothing_of_the_one_before(said):
    watching = watch(said, BEFORE)
    watching.begin(2, 2)
    watching._clock.seen = [NOW]
    watching()
    assert said == []


def test_on_a_real_host_the_load_is_what_the_kernel_booked(said, recorded):
    for end, lines, stamp in (("begin", "cpu1 0 0 0 0 0 0 0 0 0 0", 10.0), ("end", "cpu1 30 0 20 50 0 0 100 0 0 0", 12.0)):
        (recorded / f"cpu_time.{end}").write_text(f"/proc/stat:{lines}\n")
        (recorded / f"cpu_time.{'began' if end == 'begin' else 'ended'}").write_text(f"{stamp}\n")
    watch(said).end(recorded, {"cpu_time": CpuTime(None)})
    assert said == [Seen("udp_flood-saturation, window 1 of 2", True, 1500.0, ((1, "switch", Load(0.75)),))]


def test_what_can_not_be_read_costs_the_run_nothing(said, tmp_path):
    (tmp_path / "model.end").write_text("nothing")
    watch(said, BEFORE).end(tmp_path, {"cpu_time": CpuTime(None)}, tmp_path / "model.end")
    assert said == [Seen("udp_flood-saturation, window 1 of 2", True, None, ())]


def test_a_log_has_a_line_for_a_window():
    assert screen.one_line(OVER) == (
        "udp_flood-saturation, window 1 of 2: 1.20 Mpps out of the switch; CPU 0 host-other 0 %; CPU 1 switch 85 % CPI 0.50; "
        "CPU 2 guest 100 % CPI 2.00"
    )


def test_a_verbose_log_has_a_line_for_each_cpu():
    assert screen.lines(Seen("ping_paced, window 1 of 1", False, 700.0, CPUS)) == [
        "ping_paced, window 1 of 1: 700 pps received by kernels just now",
        "CPU 0  host-other    0 % busy",
        "CPU 1  switch       85 % busy  CPI 0.50",
        "CPU 2  guest       100 % busy  CPI 2.00",
    ]


def test_a_terminal_of_80_columns_has_a_table():
    out = io.StringIO()
    case = "vm2vm_ovs-dpdk_vhost-user_64B_1f_main_thread=housekeeping-cpu_sched=nice_tx_interrupts=off"
    Console(file=out, width=80, force_terminal=True, color_system=None).print(screen.drawn([f"run 1 of 2: {case}", "", "a step"], OVER))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    assert "".join(lines[:3]).replace(" ", "") == f"run1of2:{case}"
    assert [line.split() for line in lines[-3:]] == [
        ["0", "host-other", "0", "%", "–"],
        ["1", "switch", "85", "%", "0.50"],
        ["2", "guest", "100", "%", "2.00"],
    ]


def test_a_switch_that_counts_nothing_is_said_so():
    assert screen.headline(Seen("forward, window 1 of 1", True, None, ())) == "forward, window 1 of 1: no packets counted"
