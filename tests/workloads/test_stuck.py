# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest that does not go on waits for: from the host's words and QEMU's, which need not answer."""

import base64
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.terms.errors import RunFailed
from vsprof.workloads.endpoints import stuck

# As QEMU 10.0 prints them of a guest under KVM, cut.
REGISTERS = """
CPU#0
RAX=ffffffff81a6d0b0 RBX=ffffffff82616940 RCX=0000000000000000 RDX=0000000000000000
RIP=ffffffff81a6d0cf RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1
"""


class Monitor:
    def __init__(self, answers: str | None, connects: bool = True):
        self.answers, self.connects, self.closed = answers, connects, False

    def connect(self):
        return self.connects

    def execute(self, command, **arguments):
        if self.answers is None:
            raise RunFailed("no answer in 5 s")
        return self.answers

    def close(self):
        self.closed = True


def host(said: str):
    return SimpleNamespace(run=lambda command, check: SimpleNamespace(stdout=said))


@pytest.fixture
def told(monkeypatch):
    def told(said: str, monitor: Monitor) -> str:
        monkeypatch.setattr(stuck, "Monitor", lambda socket: monitor)
        words = stuck.processor(host(said), 700, 710, Path("/run/guest1.qmp"))
        return words

    return told


def test_a_halted_guest_is_told_with_the_place_where_its_thread_sleeps(told):
    monitor = Monitor(REGISTERS)
    assert told("S\nkvm_vcpu_block", monitor) == (
        "its CPU's thread sleeps in kvm_vcpu_block (state S), the guest is halted at 0xffffffff81a6d0cf with interrupts on"
    )
    assert monitor.closed


def test_one_in_a_loop_runs_with_interrupts_off(told):
    text = told("R\n0", Monitor(REGISTERS.replace("RFL=00000246", "RFL=00000046").replace("HLT=1", "HLT=0")))
    assert text == "its CPU's thread runs, the guest is at 0xffffffff81a6d0cf with interrupts off"


def test_whoever_does_not_answer_is_named(told):
    assert "monitor does not answer" in told("D\nfolio_wait", Monitor(None, connects=False))
    assert "no answer in 5 s" in told("D\nfolio_wait", Monitor(None))
    assert "not as we know them" in told("S\n", Monitor("(qemu)"))
    assert told("", Monitor(REGISTERS)) == "its CPU's thread is gone"


def test_how_long_it_ran_is_in_seconds():
    assert stuck.ran_seconds(host("2500000000 12 7"), 1, 2) == 2.5
    assert stuck.ran_seconds(host(""), 1, 2) == 0.0


def test_the_programs_of_a_guest_are_named_with_where_they_sleep():
    done = {"pid": 5, "exited": True, "out-data": base64.b64encode(b"iperf3 futex_wait_queue\nsh do_wait\n").decode()}
    assert stuck.programs(Monitor(done)) == "its programs and where they sleep: iperf3 futex_wait_queue, sh do_wait"
    assert "does not answer any more" in stuck.programs(Monitor(None))
