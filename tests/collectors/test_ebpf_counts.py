# SPDX-License-Identifier: GPL-2.0-or-later
"""The probes of ebpf count what is known beforehand: on this host, and in the lab."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.ebpf import Ebpf, probes
from vsprof.collectors.ovs import APPCTL
from vsprof.switches.kernel_ovs import KernelOvs
from vsprof.switches.ovs import BRIDGE
from vsprof.terms.placement import CpuPlan, Placement, Thread
from vsprof.testbeds.base import Testbed
from vsprof.testbeds.lab import Lab
from vsprof.testbeds.native import Native

SLEEPS, CALLS, FRAMES, UPCALLS = 100, 1000, 500, 10
FOLDER = "/tmp/vsprof-ebpf-test"
# Works once for each line that it reads, and says when it has done so, and by how many seconds all its sleeps together were longer than
# they should be. Nothing reads the frames: a full socket drops them.
WORKER = f"""
import os, socket, sys, time
inbox, outbox = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
inbox.bind(("127.0.0.1", 0))
outbox.connect(inbox.getsockname())
os.write(1, b"%d\\n" % os.getpid())
while os.read(0, 1):
    begun = time.monotonic()
    for _ in range({SLEEPS}):
        time.sleep(0.01)
    late = time.monotonic() - begun - 0.01 * {SLEEPS}
    for _ in range({CALLS}):
        os.getppid()
    for _ in range({FRAMES}):
        outbox.send(b"x")
    os.write(1, b"%d us late\\n" % (1e6 * late))
"""
START_WORKER = """
mkfifo go done
python3 worker.py < go > done &
exec 7> go 8< done
read -u 8 worker
echo $worker > worker.pid
"""
WORK = """
for file in schedstat status; do cat /proc/$worker/$file > $file.before; done; cat /proc/softirqs > softirqs.before
echo -n x >&7; read -t 60 -u 8 answer
for file in schedstat status; do cat /proc/$worker/$file > $file.after; done; cat /proc/softirqs > softirqs.after
echo $answer > late
"""


@pytest.fixture(
    scope="module",
    params=[pytest.param("native", marks=pytest.mark.native), pytest.param("lab", marks=[pytest.mark.lab, pytest.mark.long])],
)
def host(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    request.getfixturevalue(f"{request.param}_can_run")
    with Native() if request.param == "native" else Lab() as testbed:
        yield testbed


def run_window(host: Testbed, collector: Ebpf, before: str, work: str) -> Recorded:
    """What the collector records around ``work``, in the order in which a window's script has it."""
    assert collector.unavailable() is None
    collector.setup()
    host.run(f"rm -rf {FOLDER}; mkdir {FOLDER}")
    host.push(WORKER, f"{FOLDER}/worker.py")
    parts = [f"cd {FOLDER}", before, collector.prepare(), collector.begin(), work, collector.end(), collector.finish()]
    host.push("\n".join(parts), f"{FOLDER}/window.sh")
    return Recorded("", host.run(f"bash {FOLDER}/window.sh", timeout=180).stdout, 0.0, Placement())


@pytest.fixture(scope="module")
def worked(host: Testbed) -> Recorded:
    chosen = ["context_switches_by_reason", "run_queue_latency", "softirq_time", "syscalls"]
    recorded = run_window(host, Ebpf(host, probes=chosen), START_WORKER, WORK)
    worker = Thread("worker", int(host.run(f"cat {FOLDER}/worker.pid").stdout), "guest", (0,))
    if kept := os.environ.get("VSPROF_TEST_KEEP"):
        Path(kept, f"ebpf-{host.name}.end").write_text(recorded.end)
    return Recorded("", recorded.end, 0.0, Placement([worker], dict.fromkeys(range(host.cpus), "host-other")))


def worker_counts(recorded: Recorded) -> dict[str, float | None]:
    return {number.name: number.value for number in Ebpf.numbers(recorded) if number.role == "guest"}


def test_each_sleep_is_one_switch(host: Testbed, worked: Recorded) -> None:
    found = worker_counts(worked)
    before, after = (_slept(host, at) for at in ("before", "after"))
    # A sleep whose timer has run out before the task has left its CPU is none: a slow emulator has some.
    assert SLEEPS * 0.9 <= after - before <= SLEEPS + 5
    # One more when it waits for the next line, which the kernel's count may not have yet.
    # The kernel's count has what a lock of the pipe took, too.
    assert after - before <= found["left_cpu_slept"] + found["left_cpu_blocked"] <= after - before + 1
    to = sum(value for name, value in found.items() if name.startswith("left_cpu_to_"))
    assert to == sum(value for name, value in found.items() if name.startswith("left_cpu_")) - to


def test_each_call_is_one_system_call(worked: Recorded) -> None:
    known = SLEEPS + CALLS + FRAMES + len(["write", "read"])
    assert known <= worker_counts(worked)["syscalls"] <= known + 5


def test_each_wake_up_is_one_wait_and_all_together_took_what_the_scheduler_says(host: Testbed, worked: Recorded) -> None:
    found = worker_counts(worked)
    # Some are missed: what happens in an interrupt of another probe's program is not counted.
    assert SLEEPS * 0.9 <= found["run_queue_waits"] <= SLEEPS + 1 + found["left_cpu_preempted"] + 5
    assert sum(value for name, value in found.items() if name.startswith("run_queue_waits_from_")) == found["run_queue_waits"]
    before, after = (int(host.run(f"cat {FOLDER}/schedstat.{at}").stdout.split()[1]) / 1e9 for at in ("before", "after"))
    # Between the wake-up that the probe sees and the switch that it sees all four probes run, which the scheduler does not count as waiting,
    # and which take their time on a slow machine. But a sleep is late by all that lies between.
    late = int(host.run(f"cat {FOLDER}/late").stdout.split()[0]) / 1e6
    at_most = 1.3 * (after - before) + late
    assert 0.7 * (after - before) <= found["run_queue_wait_seconds"] <= at_most


def test_each_frame_through_loopback_is_one_softirq(host: Testbed, worked: Recorded) -> None:
    numbers = list(Ebpf.numbers(worked))
    for name, row in (("net_rx", "NET_RX:"), ("timer", "TIMER:")):
        found = sum(number.value for number in numbers if number.name == f"softirq_{name}_runs")
        before, after = (_softirqs(host, at, row) for at in ("before", "after"))
        # Some are missed, as wake-ups are: those that an interrupt raises while another probe's program runs. Of few, one is a large part.
        assert (after - before) * 0.9 - 2 <= found <= (after - before) * 1.1 + 20
        assert (name != "net_rx") or found >= FRAMES * 0.9
    assert 0 < sum(number.value for number in numbers if number.name == "softirq_net_rx_seconds") < 1


def _slept(host: Testbed, at: str) -> int:
    return int(host.run(f"grep ^voluntary_ctxt_switches: {FOLDER}/status.{at}").stdout.split()[1])


def _softirqs(host: Testbed, at: str, row: str) -> int:
    table = host.run(f"grep -w {row} {FOLDER}/softirqs.{at}").stdout
    return sum(map(int, table.split()[1:]))


def test_the_time_between_the_marks_is_the_programs_own(host: Testbed) -> None:
    recorded = run_window(host, Ebpf(host, probes=["syscalls"]), "", "echo $EPOCHREALTIME > slept; sleep 1; echo $EPOCHREALTIME >> slept")
    (seconds,) = {number.running_s for number in Ebpf.numbers(recorded)}
    began, ended = map(float, host.run(f"cat {FOLDER}/slept").stdout.split())
    # Held against the sleep's own length: on a busy machine that is late by as much as it likes.
    assert 1 <= ended - began < seconds < ended - began + 0.5


def test_a_probe_that_can_not_work_says_why_and_the_others_count(host: Testbed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    head = "// number: events_of_{name}, events, @of_{name}\n"
    bodies = {
        "absent": "tracepoint:vsprof:absent",
        "refused": "tracepoint:raw_syscalls:sys_enter /no_such_word/",
        "sound": "tracepoint:raw_syscalls:sys_enter /@on/",
    }
    for name, attached in bodies.items():
        (tmp_path / f"{name}.bt").write_text(head.replace("{name}", name) + attached + f" {{ @of_{name} = count(); }}\n")
    monkeypatch.setattr(probes, "FOLDER", tmp_path)
    found = {number.name: number for number in Ebpf.numbers(run_window(host, Ebpf(host, probes=probes.names()), "", "sleep 0.2"))}
    assert found["events_of_sound"].value > 0
    assert found["events_of_absent"].value is None
    assert "vsprof:absent" in found["events_of_absent"].note
    assert found["events_of_refused"].value is None
    assert "no_such_word" in found["events_of_refused"].note


UPCALL_SETUP = f"""
exec 2>&1
for end in a b; do
    ovs-vsctl add-port {BRIDGE} port-$end -- set interface port-$end type=internal
    ip netns add $end
    ip link set port-$end netns $end
    ip netns exec $end sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n $end link set port-$end up
done
ip -n a address add 10.9.0.1/24 dev port-a
ip -n a neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev port-a
"""
UPCALL_WORK = f"""
for frame in {{1..{UPCALLS}}}; do
    {APPCTL} dpctl/del-flows
    ip netns exec a bash -c "echo $frame > /dev/udp/10.9.0.2/9"
    sleep 0.3
done
"""


@pytest.mark.lab
def test_each_frame_without_a_flow_is_one_upcall_that_is_answered(lab_can_run: None) -> None:
    with Lab() as host:
        switch = KernelOvs(host, CpuPlan.of(host.cpus))
        try:
            switch.start()
            host.run(UPCALL_SETUP)
            recorded = run_window(host, Ebpf(host), "", UPCALL_WORK)
            if kept := os.environ.get("VSPROF_TEST_KEEP"):
                Path(kept, "ebpf-upcalls.end").write_text(recorded.end)
        finally:
            switch.stop()
    found = list(Ebpf.numbers(Recorded("", recorded.end, 0.0, Placement([], dict.fromkeys(range(4), "host-other")))))
    assert sum(number.value for number in found if number.name == "kernel_upcalls") == UPCALLS
    assert next(number.value for number in found if number.name == "upcalls_answered") == UPCALLS
    assert 0 < next(number.value for number in found if number.name == "upcall_seconds") < UPCALLS * 1.0


def test_nothing_is_left_running(host: Testbed) -> None:
    assert host.run("pgrep -x bpftrace", check=False).stdout == ""
