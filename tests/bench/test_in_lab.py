# SPDX-License-Identifier: GPL-2.0-or-later
"""The switches really forward in the lab under the model, and what a packet costs and takes there is of a plausible size."""

import pytest

from vsprof.bench import like_kernel, micro_guest, micro_times, switch_times, user_mode_linux
from vsprof.bench import validate_switches as switches
from vsprof.bench.model import PLUGIN
from vsprof.collectors.uarch_model import profiles
from vsprof.terms.errors import RunFailed
from vsprof.testbeds.base import KERNELS

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run", "own_kernel")]


@pytest.fixture
def own_kernel(monkeypatch):
    """The lab's own, whatever this machine has: another one would be fetched and booted, which tests/testbeds/test_kernels.py does."""
    monkeypatch.setattr(like_kernel, "choose", lambda own, say: KERNELS[0])


@pytest.mark.parametrize("switch", switches.SWITCHES, ids=lambda switch: switch.name)
def test_a_packet_costs_something(switch, monkeypatch):
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    if switch.folders and not user_mode_linux.is_whole():
        pytest.skip("User-Mode Linux was not fetched: `make validate-model` does")
    monkeypatch.setattr(switches, "WINDOWS", 1)
    monkeypatch.setattr(switches, "LAB_SECONDS", 3)
    ((found,),) = switches.modelled([switch], {"uml": user_mode_linux.FOLDER}, profiles.load(profiles.DEFAULT), print).values()
    assert found["packets"] > 1000
    assert 500 < found["instructions"] < 5000
    assert 0.2 < found["cpi"] < 5
    # 256 packets go round and round: they fit into the caches.
    assert found["llc_misses"] < 0.5
    assert found["l1d_misses"] > 1


def test_a_packet_takes_time(monkeypatch):
    """One of DPDK's switches, and one of the kernel's; what a start needs is the same for the others."""
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    monkeypatch.setattr(switch_times, "LAB_STARTS", 1)
    monkeypatch.setattr(switch_times, "LAB_WINDOWS", 2)
    monkeypatch.setattr(switch_times, "LAB_SECONDS", 0.005)
    wanted = [switch for switch in switch_times.SWITCHES if switch.name in ("vhost_switch", "linux_bridge")]
    found = switch_times.modelled(wanted, {}, profiles.load("zen4"), 1.0, print)
    assert not found.why
    for name, times in found.times.items():
        assert 10 < times[0] < 2000, name


def test_additions_take_time():
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    profile = profiles.load("zen4")
    items = [item for item in micro_times.items(profile) if item.name in ("adds", "chase_l2")]
    found, kernel = micro_times.modelled(items, profile, 1.0, 1, print)
    # The lab's kernel does what this machine's does against Spectre.
    assert ("Retpolines" in kernel) == ("Retpolines" in micro_times.own_kernel())
    # No processor does four dependent additions in a cycle, and L2 is farther than an addition.
    cycle = 1e9 / profile.frequency_hz
    assert cycle / 4 < micro_times.median(found["adds"][0]) < 2 * cycle
    assert micro_times.median(found["chase_l2"][0]) > 4 * micro_times.median(found["adds"][0])


def test_a_guests_exit_takes_what_it_is_given():
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    profile = profiles.load("zen4")
    found, entry = micro_guest.modelled([micro_guest.EXIT], wanted_ns := 5000.0, profile, 1.0, 1, print)
    assert entry > profile.values["cost.vm_entry"]
    assert micro_times.median(found["exit"][0]) == pytest.approx(wanted_ns, rel=0.05)


def test_a_program_that_ends_before_it_is_ready_is_an_error_at_once():
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    with pytest.raises(RunFailed, match="usage: micro KIND"):
        micro_guest._round([micro_times.Timed("nothing", "nothing", 0, 1)], profiles.load("zen4"), 1.0, print)
