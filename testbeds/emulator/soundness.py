# SPDX-License-Identifier: GPL-2.0-or-later
"""Is a lab sound? Asked before its state is sealed as a snapshot, and after each resume.

Seen once: a snapshot in which CPU 3's local APIC timer was dead. Everything answered, and five of six runs failed, each in
another place, because a guest whose timer never fires waits for ever. So each CPU is asked what a run will need of it.
"""

import itertools
from collections.abc import Iterable, Mapping

FEWEST_TICKS = 5
"""Timer interrupts that a CPU must take while two threads want it; ``CHECK`` waits for as many, for 2 s, which are 500 ticks (HZ=250)."""
MOST_APART_S = 5.0
"""How far the CPUs' clocks may be apart. They are read one after another, on CPUs that may have to wait for their turn."""

# Two threads that want one CPU: the kernel must tick to be fair to them. One alone runs on without a tick on an isolated CPU
# (nohz_full), and a sleep there mostly ends even with a dead timer, when another CPU keeps the time for it. So neither shows one.
# Where no tick comes, neither thread gives way to the other before it ends by itself, by its CPU's clock.
CHECK = r"""
exec 2>&1
awk '$1 == "Per" && $2 == "CPU" { cpu = $4 } $1 == "event_handler:" { if (cpu != "") print "handler", cpu, $2; cpu = "" }' /proc/timer_list
[ -e /dev/kvm ] && echo kvm
spin() {
    local end=$((${EPOCHREALTIME/./} + 2000000))
    while ((${EPOCHREALTIME/./} < end)); do :; done
}
ticks() {
    local line fields
    while read -r line && [[ $line != LOC:* ]]; do :; done < /proc/interrupts
    read -ra fields <<< "$line"
    echo ${fields[$1 + 1]}
}
want() {
    taskset -cp $1 $BASHPID > /dev/null
    spin & local rival=$! first=$(ticks $1) now=0 end=$((${EPOCHREALTIME/./} + 2000000))
    while ((now - first < 5 && ${EPOCHREALTIME/./} < end)); do now=$(ticks $1); done
    kill $rival
    echo ticks $1 $((now - first))
}
clock() {
    taskset -cp $1 $BASHPID > /dev/null
    echo clock $1 $EPOCHREALTIME
}
for cpu in $(seq 0 $(($(nproc --all) - 1))); do
    want $cpu &
done
wait
for cpu in $(seq 0 $(($(nproc --all) - 1))); do (clock $cpu); done
(clock 0)
"""
"""A shell script for the lab, whose output ``faults`` reads."""


def faults(printed: str, cpus: int) -> list[str]:
    """What is wrong with a lab of ``cpus`` CPUs that printed this for ``CHECK``, a phrase each; empty for a sound one."""
    lines = [line.split() for line in printed.splitlines()]
    handlers = {line[1]: line[2] for line in lines if len(line) == 3 and line[0] == "handler"}
    ticks = {line[1]: line[2] for line in lines if len(line) == 3 and line[0] == "ticks"}
    stamps = [(line[1], line[2]) for line in lines if len(line) == 3 and line[0] == "clock"]
    found = [] if ["kvm"] in lines else ["/dev/kvm is missing"]
    for cpu in map(str, range(cpus)):
        found += _timer_faults(cpu, handlers, ticks)
    return [*found, *_clock_faults(stamps, cpus)]


def _timer_faults(cpu: str, handlers: Mapping[str, str], ticks: Mapping[str, str]) -> Iterable[str]:
    if (handler := handlers.get(cpu, "nothing")) != "hrtimer_interrupt":
        yield f"CPU {cpu}'s timer is handled by {handler} instead of hrtimer_interrupt"
    counted = ticks.get(cpu, "")
    if not counted.isdigit() or int(counted) < FEWEST_TICKS:
        yield f"CPU {cpu} took {counted or 'no'} timer interrupts while two threads wanted it, need {FEWEST_TICKS}"


def _clock_faults(stamps: list[tuple[str, str]], cpus: int) -> Iterable[str]:
    """Stamps in the order in which they were taken, of CPU 0 to the last one and 0 again."""
    try:
        read = [(cpu, float(stamp)) for cpu, stamp in stamps]
    except ValueError:
        read = []
    if len(read) != cpus + 1:
        yield f"the clocks of {cpus} CPUs can't be compared, got {len(read)} stamps"
        return
    for (before, earlier), (cpu, later) in itertools.pairwise(read):
        if not 0 <= later - earlier <= MOST_APART_S:
            yield f"CPU {cpu}'s clock is {later - earlier:+.6f} s from CPU {before}'s"
