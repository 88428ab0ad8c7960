# SPDX-License-Identifier: GPL-2.0-or-later
"""The main thread of OVS-DPDK, as /proc and ovs-appctl really told it around five seconds of a TCP stream from a guest to its host."""

from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.ovs_main_thread import OvsMainThread
from vsprof.terms.placement import Placement, Thread

BEGIN, END = (Path(__file__).with_name("captured").joinpath(f"ovs_main_thread.{end}").read_text() for end in ("begin", "end"))
MAIN = Thread("ovs-vswitchd-dp", 623, "switch", (0,))
OTHERS = (Thread("pmd-c01/id:7", 657, "switch", (1,)), Thread("guest1:CPU 0/KVM", 670, "guest", (2,)))


def found(begin: str = BEGIN, end: str = END, threads: tuple[Thread, ...] = (MAIN, *OTHERS)) -> dict[str, float | None]:
    return {n.name: n.value for n in OvsMainThread.numbers(Recorded(begin, end, 5.0, Placement(list(threads), {})))}


def test_what_was_printed_is_read():
    assert found() == {
        "main_thread_run_seconds": pytest.approx(10.772072562 - 9.101231944),
        "main_thread_wait_seconds": pytest.approx(3.426748420 - 2.290401815),
        "main_thread_switches_voluntary": 899 - 369,
        "main_thread_switches_involuntary": 1387 - 1164,
        "main_thread_packets": 3503 - 856,
        "main_thread_upcalls": 0,
        "main_thread_lost_upcalls": 0,
    }


def test_packets_of_a_poll_mode_thread_are_not_the_main_threads():
    assert found(end=END.replace("packets received: 46602", "packets received: 99999"))["main_thread_packets"] == 3503 - 856


def test_in_the_kernels_datapath_it_moves_none():
    begin, end = (text.partition("--- pmd-stats-show")[0] + "--- pmd-stats-show\n" for text in (BEGIN, END))
    assert {"main_thread_packets", "main_thread_upcalls"}.isdisjoint(found(begin, end))
    assert found(begin, end)["main_thread_switches_voluntary"] == 530


@pytest.mark.parametrize(
    ("begin", "end", "threads"),
    [
        (BEGIN, "", (MAIN,)),
        (BEGIN, END, OTHERS),
        (BEGIN, END.partition("main thread:")[0], (MAIN,)),
        (BEGIN.replace("623", "624"), END, (MAIN,)),
    ],
    ids=["nothing printed", "a thread of no switch", "a part gone", "another process at the begin"],
)
def test_a_window_without_it_is_refused(begin, end, threads):
    with pytest.raises(ValueError, match="main thread"):
        found(begin, end, threads)


@pytest.mark.parametrize("cut", [0, 1])
def test_what_the_kernel_does_not_tell_is_an_empty_value(cut):
    """Kernels without CONFIG_SCHED_INFO have no schedstat."""
    texts = [BEGIN, END]
    texts[cut] = "\n".join(line for line in texts[cut].splitlines() if "/schedstat:" not in line)
    told = found(*texts)
    assert told["main_thread_run_seconds"] is told["main_thread_wait_seconds"] is None
    assert told["main_thread_switches_voluntary"] == 530
