# SPDX-License-Identifier: GPL-2.0-or-later
"""The program that bpftrace runs: the probes, between a head and a tail that let a shell say when to count.

Its argument is the process id of that shell, which sends signals to itself that do nothing to it: each is one system call, no
process, and is seen here. Argument 0 is a trial, which ends at once.
"""

from collections.abc import Iterable

from vsprof.collectors.ebpf.probes import Probe

READY = "vsprof: ready"
HELLO, MARK, END = "kill -0 $$", "kill -CONT $$", "kill -URG $$"
"""What the shell does to ask whether the program is ready, to begin or end the counting, and to end the program.

An interrupt would do for the last, but bpftrace 0.17 at times misses it.
"""
HEAD = """
tracepoint:syscalls:sys_enter_kill
/args->pid == $1 && args->sig == 0/
{
    @asked = tid;
}

tracepoint:syscalls:sys_enter_kill
/args->pid == $1 && args->sig == 18/
{
    @on = !@on;
    // First the time of the begin, then the time since.
    @counted_ns = nsecs - @counted_ns;
}

tracepoint:syscalls:sys_enter_kill
/args->pid == $1 && args->sig == 23/
{
    exit();
}

BEGIN
{
    if (!$1) { exit(); }
}
"""
TAIL = f"""
tracepoint:syscalls:sys_exit_kill
/@asked == tid/
{{
    @asked = 0;
    printf("{READY}\\n");
}}
"""
"""Probes are attached one after the other, and BEGIN comes before all: so the program is ready when the first and the last of its
probes have seen a hello."""


def text(probes: Iterable[Probe]) -> str:
    return "\n".join([HEAD, *(probe.text for probe in probes), TAIL])
