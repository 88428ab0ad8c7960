# SPDX-License-Identifier: GPL-2.0-or-later
"""The switches' numbers, from what the scripts and perf printed natively (captured/: on a machine without a PMU, with software
events), and with a processor's counts put into the same lines."""

import subprocess
from pathlib import Path

import pytest

from vsprof.bench import validate_switches as switches
from vsprof.bench.validate_switches import SWITCHES, Window, per_packet
from vsprof.collectors.uarch_model import profiles
from vsprof.terms import errors

CAPTURED = Path(__file__).with_name("captured")
OVS_DPDK, KERNEL_OVS = SWITCHES
# What the captured windows were opened with, in this order.
EVENTS = {"instructions": ["task-clock"], "cycles": ["page-faults", "task-clock"], "l1d_misses": ["instructions"]}


@pytest.fixture(autouse=True)
def two_windows(monkeypatch):
    monkeypatch.setattr(switches, "WINDOWS", 2)


def captured(switch: switches.Switch) -> str:
    return (CAPTURED / f"{switch.name}.printed").read_text()


def test_what_was_printed_before_the_first_window_is_no_part_of_it():
    windows = switches.read_windows(captured(KERNEL_OVS))
    assert len(windows) == 2 * len(EVENTS)
    assert windows[0][1] == "1001.52;msec;task-clock:u;1001516639;100.00;1.000;CPUs utilized"


def test_a_window_is_rates():
    window, _ = switches.read_windows(captured(OVS_DPDK))[0]
    seconds = 1795257276.397474 - 1795257275.326979
    assert window.packets == pytest.approx((11055456 - 1080224) / seconds)
    assert window.idle == pytest.approx((27692571 - 27232975) / seconds)
    # Two queues of 32 at most.
    assert window.facts["packets_per_poll"] == pytest.approx((11055456 - 1080224) / (27865407 - 27249862 - (27692571 - 27232975)))


def test_a_switch_that_does_not_poll_has_no_packets_per_poll():
    window, _ = switches.read_windows(captured(KERNEL_OVS))[0]
    assert list(window.facts) == ["packets"]


@pytest.mark.parametrize("printed", ["", "circulating\n", "microseconds=1 packets=2 idle=3 polls=4\n"])
def test_counts_that_are_not_in_pairs_are_an_error(printed):
    with pytest.raises(errors.RunFailed, match="in pairs"):
        switches.read_windows(printed)


def test_a_metric_is_per_packet_by_the_rates_of_its_own_window():
    first, _ = switches.read_native(KERNEL_OVS, captured(KERNEL_OVS), EVENTS)
    per_second = (10509824 - 4365376) / (1795257291.411622 - 1795257290.386223)
    assert first["instructions"] == pytest.approx(1001.52 / 1.001516639 / per_second)


def test_a_metric_that_perf_could_not_count_is_left_out():
    for found in switches.read_native(OVS_DPDK, captured(OVS_DPDK), EVENTS):
        assert "l1d_misses" not in found
        assert {"packets", "packets_per_poll", "instructions", "cycles", "cpi"} == found.keys()


def test_without_events_there_are_rates_alone():
    two_windows = "\n".join(captured(KERNEL_OVS).splitlines()[:8])
    assert [list(found) for found in switches.read_native(KERNEL_OVS, two_windows, {})] == [["packets"]] * 2


def test_polls_in_vain_are_taken_out_at_their_own_price():
    # 100 instructions a poll in vain; 1000 packets of 250 instructions, and 500 polls in vain among them.
    traffic = Window(packets=1000, polls=600, idle=500, events={"instructions": 1000 * 250 + 500 * 100})
    rest = Window(packets=0, polls=8000, idle=8000, events={"instructions": 8000 * 100})
    assert per_packet(traffic, rest) == {"instructions": 250}
    assert per_packet(traffic, None) == {"instructions": 300}


def test_of_a_processor_that_counts():
    counted = ("4000000000;;instructions:u;1000000000;100.00;2.00;insn per cycle", "2000000000;;cycles:u;1000000000;100.00;2.000;GHz")
    begin, end = "microseconds=0 packets=0 idle=0 polls=0", "microseconds=1100000 packets=2200000 idle=0 polls=0"
    printed = "".join(f"{begin}\n{line}\n{end}\n" for line in 2 * counted)
    found = switches.read_native(KERNEL_OVS, printed, {"instructions": ["instructions"], "cycles": ["cycles"]})
    assert found == [pytest.approx({"packets": 2e6, "instructions": 2000, "cycles": 1000, "cpi": 0.5})] * 2


def test_every_event_has_a_window_of_its_own_and_a_poller_idle_ones_too():
    lines = switches.native_script(OVS_DPDK, {"cycles": ["cycles"], "l1d_misses": ["x.y", "z"]}).splitlines()
    call = "/mnt/bench/switch_ovs_dpdk.sh"
    windows = [f"{call} window perf stat -x ';' --log-fd 1 -C 1 -e {events} -- sleep 2" for events in ("cycles:u", "x.y:u,z:u")]
    assert lines == [f"{call} up 1 0 0", *2 * windows, f"{call} idle", *2 * windows, f"{call} down"]
    assert not any("idle" in line for line in switches.native_script(KERNEL_OVS, {}).splitlines())


def test_a_profile_with_all_events_gives_all_metrics():
    assert list(switches.hardware_events(profiles.load("zen5"))) == list(switches.METRICS)


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_the_scripts_are_programs_and_refuse_what_they_do_not_know(switch):
    assert switch.script.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", switch.script], check=False).returncode == 0
    ran = subprocess.run([switch.script, "fly"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "no action 'fly'" in ran.stderr
