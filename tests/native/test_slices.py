# SPDX-License-Identifier: GPL-2.0-or-later
"""Several switches alive on this host, one of which runs at a time: what `make bench-dataplane` does, on a small scale."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from vsprof.bench import dataplane
from vsprof.bench.dataplane_seen import PLACES, Enough
from vsprof.terms import errors
from vsprof.testbeds.native import HUGEPAGES, Native

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]


def ran_s(pid: int) -> float:
    """proc_pid_stat(5): user and system time, in hundredths."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


def test_what_is_frozen_stands_still_and_goes_on_where_it_was():
    with Native() as host:
        process = host.start("spins", "bash -c 'while :; do :; done'", cpus=[host.plan().switch])
        host.freeze()
        before = ran_s(process.pid)
        time.sleep(0.3)
        assert ran_s(process.pid) == before
        for asked in (lambda: host.run("true"), lambda: host.start("more", "true", cpus=[host.plan().switch])):
            with pytest.raises(errors.RunFailed, match="frozen"):
                asked()
        host.thaw()
        end = time.monotonic() + 30
        while ran_s(process.pid) == before:
            assert time.monotonic() < end
            time.sleep(0.02)
        # It can be taken away as it is.
        host.freeze()


def test_a_testbed_whose_keeper_was_killed_says_so_and_fills_no_disk():
    with Native() as host:
        os.kill(int((host._folder / "keeper").read_text()), signal.SIGKILL)
        host._keeper.wait(20)
        with contextlib.suppress(OSError):
            (host._cgroup / "cgroup.kill").write_text("1")
        end = time.monotonic() + 20
        while host._cgroup.exists():
            assert time.monotonic() < end
            with contextlib.suppress(OSError):
                host._cgroup.rmdir()
            time.sleep(0.05)
        with pytest.raises(errors.RunFailed, match="keeper"):
            host.freeze()


def test_two_testbeds_are_apart_and_leave_the_host_as_it_was():
    before = HUGEPAGES.read_text()
    with Native() as one, Native(beside=one) as other:
        assert other.plan() == one.plan()
        for host in (one, other):
            host.run("ip link add vsprof-try type bridge && touch /run/vsprof-try")
        other.run("ip link del vsprof-try && rm /run/vsprof-try")
        one.run("ip link show vsprof-try && ls /run/vsprof-try")
    assert HUGEPAGES.read_text() == before


@pytest.mark.long
def test_contenders_take_turns_and_each_ratio_is_of_neighbours():
    ends = {"driver": "frame-flood", "path": "vector"}
    # Several turns: of those during which a hypervisor moves the CPUs nothing is told.
    found, _ = dataplane.measure(Enough(1, None, 1), 3, [64, 512], ["vhost_switch", "zero_copy"], ends, print)
    for frame in (64, 512):
        told = [place for place in PLACES if f"zero_copy_over_copy_{frame}_{place}" in found]
        assert told
        for place in told:
            assert found[f"zero_copy_over_copy_{frame}_{place}"][0].median > 0
            for name in ("vhost_switch", "zero_copy"):
                # What each is on a busy machine nobody knows.
                for of in ("busy_cycles_per_packet", "cycles_per_packet"):
                    assert found[f"{name}_{of}_{frame}_{place}"][0].median > 10
                assert 0 <= found[f"{name}_behind_{frame}_{place}"][0].median <= 1
    assert found["stage_counters_cost"][0].median < 0.9
    assert found["time_stolen_by_the_hypervisor"][0].median >= 0
    assert not any(name.startswith("vhost_switch_over_ovs_dpdk") for name in found)
