# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input: exit 2, with one line that has the value seen and the next move."""

import re
import shlex

import pytest
from running import FOLDER, command, fresh, kept, lcores
from traffic import exchange, frames, mac

pytestmark = pytest.mark.dataplane
SECONDS = 5
PORT = "a,path=/run/vs/bad.a,server=1"
LONG = "/run/" + "x" * 120
BAD = {
    "unknown-option": (["--no-such-option"], "no-such-option"),
    "word-too-many": (["extra"], "extra"),
    "forward": (["--forward", "hub"], "hub.*switch.*wire.*loop"),
    "rings": (["--rings", "packed"], "packed.*librte.*own"),
    "dequeue": (["--dequeue", "two-copies"], "two-copies.*copy.*zero-copy"),
    "rx": (["--rx", "sleepy"], "sleepy.*poll.*interrupt.*adaptive"),
    "stages": (["--stages", "some"], "some.*off.*on.*pmu"),
    "sched": (["--sched", "deadline"], "deadline.*other"),
    "sched-priority": (["--sched", "fifo:1000"], "1000"),
    "zero-copy-with-librte": (["--dequeue", "zero-copy", "--rings", "librte"], "own"),
    "idle-us": (["--rx", "adaptive", "--idle-us", "soon"], "soon"),
    "idle-us-negative": (["--rx", "adaptive", "--idle-us", "-5"], "-5"),
    "hold-us": (["--hold-us", "1e3"], "1e3"),
    "age-s": (["--age-s", "-1"], "-1"),
    "pmu-every": (["--stages", "pmu", "--pmu-every", "0"], "0"),
    "pmu-event": (["--stages", "pmu", "--pmu-events", "no-such-event"], "no-such-event"),
    "cpu-latency": (["--cpu-latency-us", "never"], "never"),
    "port-twice": (["--port", PORT, "--port", "a,path=/run/vs/bad.b,server=1"], r"\ba\b"),
    "path-twice": (["--port", PORT, "--port", "b,path=/run/vs/bad.a,server=1"], r"bad\.a"),
    "path-too-long": (["--port", f"a,path={LONG},server=1"], "107"),
    "path-nowhere": (["--port", "a,path=/no/such/folder/a,server=1"], "/no/such/folder"),
    "path-in-use": (["--port", "a,path=/run/vs/used,server=1"], "/run/vs/used"),
    "port-without-path": (["--port", "a"], "path="),
    "port-without-name": (["--port", "path=/run/vs/bad.a"], "path=/run/vs/bad.a"),
    "port-with-both": (["--port", "a,path=/run/vs/bad.a,dev=net_null0"], "dev"),
    "port-with-unknown-key": (["--port", f"{PORT},colour=red"], "colour"),
    "queues": (["--port", f"{PORT},queues=0"], "queues"),
    "queues-too-many": (["--port", f"{PORT},queues=100000"], "100000"),
    "device": (["--port", "a,dev=no_such_device0"], "no_such_device0"),
    "control-too-long": (["--control", LONG], "107"),
    "control-nowhere": (["--control", "/no/such/folder/control"], "/no/such/folder/control"),
}
CORES = {
    "too-far": ("0@0,1@999", "999"),
    "nonsense": ("zero", "zero"),
    "main-alone": ("0@0", "worker|lcore"),
}
MODES = ("forward", "rings", "dequeue", "rx", "stages")


def refused(host, words: list[str], pattern: str) -> str:
    """The one line that vhost-switch ends with; EAL may have said something before."""
    done = host.run(f"timeout {SECONDS} {shlex.join(words)}", timeout=SECONDS + 5, check=False)
    said = [line for line in done.stderr.splitlines() if line.startswith("vhost-switch: ")]
    assert done.status == 2, f"status {done.status}: {done.stderr[-1500:]}"
    assert len(said) == 1, f"{len(said)} lines of vhost-switch: {done.stderr[-1500:]}"
    assert re.search(pattern, said[0]), f"not said what was wrong ({pattern}): {said[0]}"
    assert "ready" not in done.stdout
    return said[0]


def words(host, name: str, cores: str | None = None, eal: tuple[str, ...] = ("--no-huge", "-m", "160")) -> list[str]:
    return command(name, cores or lcores(host.plan().housekeeping, [host.plan().switch]), eal)


@pytest.mark.parametrize(("options", "pattern"), BAD.values(), ids=list(BAD))
def test_it_says_what_was_wrong(host, options, pattern):
    host.run(f"mkdir -p {FOLDER} && touch {FOLDER}/used")
    refused(host, [*words(host, fresh()), *options], pattern)
    assert host.run(f"ls {FOLDER}/bad.*", check=False).status, "it left sockets behind"
    assert host.run(f"test -f {FOLDER}/used", check=False).status == 0, "it removed a file that is not its own"


@pytest.mark.parametrize(("cores", "pattern"), CORES.values(), ids=list(CORES))
def test_a_wrong_list_of_cores(host, cores, pattern):
    refused(host, words(host, fresh(), cores), pattern)


def test_a_socket_that_another_switch_listens_on(host, keeper):
    for running in kept(keeper, ()):
        running.control(f"add-port taken,path={FOLDER}/taken,server=1")
        refused(host, [*words(host, fresh()), "--port", f"a,path={FOLDER}/taken,server=1"], f"{FOLDER}/taken")
        assert host.run(f"test -S {FOLDER}/taken", check=False).status == 0, "it removed the other's socket"


def test_no_hugepages(host):
    """Neither in the pool of the kernel's, nor mounted: it says which to take, or how to do without."""
    bare = words(host, fresh(), eal=("-m", "64"))
    done = ["unshare", "--mount", "sh", "-c", f"umount /dev/hugepages; exec {shlex.join(bare)}"]
    refused(host, done, "hugepage|no-huge")
    refused(host, words(host, fresh(), eal=("--in-memory", "-m", "1000000")), "hugepage|no-huge|memory")


def test_a_scheduling_policy_that_the_kernel_refuses(host):
    """Without the right to, and under a limit of 0: it does not go on with another policy than the one asked for."""
    bare = ["setpriv", "--bounding-set=-sys_nice", "prlimit", "--rtprio=0", *words(host, fresh())]
    assert "fifo:10" in refused(host, [*bare, "--sched", "fifo:10"], "fifo:10.*root")


def test_it_counts_events_or_says_why_it_can_not(host):
    tried = [*words(host, fresh()), "--stages", "pmu", "--pmu-events", "instructions,cycles"]
    done = host.run(f"timeout 2 {shlex.join(tried)}", timeout=SECONDS, check=False)
    counts = "vhost-switch: ready" in done.stdout
    said = [line for line in done.stderr.splitlines() if line.startswith("vhost-switch: ")]
    assert counts or (done.status == 2 and len(said) == 1 and re.search("rdpmc|PMU|perf_event", said[0])), done


def test_it_works_without_hugepages(keeper, guests):
    for running in kept(keeper, (), eal=("--no-huge", "-m", "256")):
        a, b = guests(), guests()
        for name, guest in (("a", a), ("b", b)):
            running.attach(guest, name)
            guest.post(100)
        exchange(a, b, frames(23, mac(1), mac(2), 1514))


def test_the_help_names_every_option(host):
    said = host.run(f"timeout {SECONDS} {shlex.join([*words(host, fresh()), '--help'])}", timeout=SECONDS + 5, check=False)
    for option in MODES:
        assert f"--{option}" in said.stdout + said.stderr
    assert said.status == 0
