# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a testbed's counters can be believed, found out by counting what is known; once a run, before any traffic.

Each finding is kept in the manifest. Two of them decide: how many events a group may have, and, where a known number of
instructions is not counted right, that no value of these counters is kept.
"""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.events.probe import Ran
from vsprof.collectors.perf_stat import messages, perf, programs
from vsprof.collectors.perf_stat.perf import STAT, Seen
from vsprof.testbeds.base import Testbed

OK, WARNING, FAILED = "ok", "warning", "failed"
MOST_COPIES = 16
"""No core has more counters than that."""
TOLERANCE = 0.01
FOLDER = "/run/vsprof-perf-preflight"
PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run")
"""Where programs may perhaps be executed: one of these is often mounted noexec."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: str
    """``ok``, ``warning`` or ``failed``."""
    value: float | str | None
    text: str


@dataclass
class Preflight:
    """What came of it."""

    findings: list[Finding] = field(default_factory=list)
    room: int = 0
    """How many events a group can have beside its anchors."""
    distrust: str = ""
    """Why no hardware value is to be kept, or nothing."""

    def add(self, name: str, state: str, value: float | str | None, text: str) -> None:
        self.findings.append(Finding(name, state, value, text))

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(one) for one in self.findings]


def examine(host: Testbed, seen: Seen, known: Catalogue, anchors: Sequence[str], copied: str, counters: int | None) -> Preflight:
    """Look at all of it. ``copied``: the event of the N copies; ``counters``: a group's room, where it is not to be tested."""
    found = Preflight()
    found.add("virtualised", *_virtualised(seen))
    found.add("nmi_watchdog", *_watchdog(seen))
    found.add("pmu_in_use", *_in_use(host))
    programs_at = _push_programs(host, seen)
    try:
        _room(found, host, programs_at, [known.events[name].perf("u", known.pmu) for name in (*anchors, copied)], counters)
        _known_count(found, host, seen, programs_at, known)
        _every_cpu(found, host, [known.events[name].perf("", known.pmu) for name in (*anchors, *[copied] * found.room)])
        found.add("rdpmc", *_rdpmc(host, seen, programs_at))
    finally:
        if programs_at:
            host.run(f"rm -rf {shlex.quote(programs_at)}", check=False)
    return found


def of_kernel_events(room: int) -> Preflight:
    """Where no hardware is counted: nothing needs to be looked at."""
    found = Preflight(room=room)
    found.add("group_size", OK, room, messages.kernel_only())
    return found


def _virtualised(seen: Seen) -> tuple[str, str, str]:
    return (WARNING, "yes", messages.virtualised()) if seen.hypervisor else (OK, "no", messages.no_hypervisor())


def _watchdog(seen: Seen) -> tuple[str, str | None, str]:
    if not seen.watchdog:
        return OK, None, messages.watchdog_unknown()
    on = seen.watchdog != "0"
    return WARNING if on else OK, seen.watchdog, messages.watchdog(on)


def _in_use(host: Testbed) -> tuple[str, int, str]:
    """Processes that hold counters open. That takes root, or they are one's own; whom it misses, ``every_cpu`` may find."""
    listed = host.run("find /proc/[0-9]*/fd -lname 'anon_inode:*perf_event*' 2>/dev/null | cut -d/ -f3 | sort -u | head -n 50 |"
                      " while read -r pid; do echo $(cat /proc/$pid/comm) $pid; done", check=False)  # fmt: skip
    others = [line for line in listed.stdout.splitlines() if line.strip()]
    return (WARNING, len(others), messages.others(others)) if others else (OK, 0, messages.nobody_else())


def _push_programs(host: Testbed, seen: Seen) -> str:
    """The folder of the testbed in which the test programs can be executed; nothing if there is none."""
    if seen.machine != programs.MACHINE:
        return ""
    host.run(f"mkdir -p {FOLDER}")
    host.push(programs.counted(), f"{FOLDER}/counted")
    host.push(programs.rdpmc(), f"{FOLDER}/rdpmc")
    script = f"""
for place in {" ".join(PLACES)}; do
    folder=$(mktemp -d $place/vsprof-XXXXXX) || continue
    cp {FOLDER}/* $folder/ && chmod 755 $folder/* && $folder/counted 2>/dev/null && {{ echo $folder; break; }}
    rm -rf $folder
done
rm -rf {FOLDER}"""
    return host.run(script, check=False).stdout.strip()


def _room(found: Preflight, host: Testbed, programs_at: str, events: Sequence[str], counters: int | None) -> None:
    """Grow a group by copies of one event until they disagree, or are not counted. ``events``: the anchors, and the one to copy."""
    if counters is not None:
        found.room = counters
        found.add("group_size", OK, counters, messages.group_given(counters))
        return
    *anchors, copied = events
    program = f"{programs_at}/counted" if programs_at else "true"
    commands = {str(copies): f"{STAT} -e {perf.group([*anchors, *[copied] * copies])} {program}" for copies in range(1, MOST_COPIES + 1)}
    dead: list[float] = []
    for copies, ran in enumerate(perf.ask(host, commands).values(), 1):
        values = perf.counted(ran, len(anchors) + copies)
        if values is None:
            break
        if not _agree(values[len(anchors) :]):
            dead = values[len(anchors) :]
            break
        found.room = copies
    if found.room:
        found.add("group_size", OK, found.room, messages.group_size(len(anchors), found.room))
    else:
        found.add("group_size", FAILED, 0, messages.no_usable_group(" ".join(ran.text.split())[:200]))
    if dead:
        found.add("dead_counters", WARNING, len(dead), messages.dead(len(dead), dead))
    elif found.room:
        found.add("dead_counters", OK, 0, messages.all_alive(found.room))


def _agree(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= TOLERANCE * max(values)


def _known_count(found: Preflight, host: Testbed, seen: Seen, programs_at: str, known: Catalogue) -> None:
    def skipped(why: str) -> None:
        found.add("known_count", WARNING, None, messages.known_count_untested(why))

    if not programs_at:
        return skipped(messages.no_program(seen.machine))
    if known.missing("instructions"):
        return skipped(messages.no_instructions())
    needs = known.needs("instructions")
    events = ",".join(known.events[name].perf("u", known.pmu) for name in needs)
    ran = perf.ask(host, {"counted": f"{STAT} -e {shlex.quote(events)} {programs_at}/counted"})["counted"]
    values = perf.counted(ran, len(needs))
    if values is None:
        return skipped(messages.program_not_run(ran.status) if ran.status else messages.never_ran())
    seen_count = known.evaluate("instructions", dict(zip(needs, values, strict=True))).value
    if seen_count is not None and abs(seen_count / programs.INSTRUCTIONS - 1) <= TOLERANCE:
        return found.add("known_count", OK, seen_count, messages.known_count(programs.INSTRUCTIONS, seen_count))
    found.distrust = messages.known_count_failed(programs.INSTRUCTIONS, seen_count or 0)
    return found.add("known_count", FAILED, seen_count, found.distrust)


def _every_cpu(found: Preflight, host: Testbed, events: Sequence[str]) -> None:
    """A full group, on every CPU, for a moment: each should count all the time."""
    command = f"{STAT} -a -A -e {perf.group(events)} sleep 0.1"
    counts = perf.readable(perf.ask(host, {"full": command})["full"])
    lacking = sorted({one.cpu for one in counts if one.value is None or one.percent < 100}, key=str)
    if not counts or lacking:
        found.add("every_cpu", WARNING, len(lacking) or None, messages.some_cpus_do_not(lacking) if lacking else messages.perf_silent())
    else:
        cpus = len({one.cpu for one in counts})
        found.add("every_cpu", OK, cpus, messages.every_cpu_counts(cpus))


def _rdpmc(host: Testbed, seen: Seen, programs_at: str) -> tuple[str, float | None, str]:
    """Seconds for one read of a counter by its own process."""
    if not programs_at:
        return OK, None, messages.rdpmc_skipped(messages.no_program(seen.machine))
    if seen.rdpmc in ("", "0"):
        return OK, None, messages.rdpmc_skipped(f"{perf.RDPMC} is {seen.rdpmc or 'not there'}")
    ran = perf.ask(host, {"rdpmc": f"set -o pipefail; {programs_at}/rdpmc | od -An -v -t d8 -w32"})["rdpmc"]
    cost = _seconds(ran)
    if cost is None:
        return OK, None, messages.rdpmc_skipped(messages.RDPMC_FAILED.get(ran.status or 0) or messages.program_not_run(ran.status))
    return WARNING if cost > messages.TRAPPED_S else OK, cost, messages.rdpmc(cost)


def _seconds(ran: Ran) -> float | None:
    """Per read, from the two times that the program wrote: seconds, nanoseconds, seconds, nanoseconds."""
    try:
        began_s, began_ns, ended_s, ended_ns = map(int, ran.text.split())
    except ValueError:
        return None
    return (ended_s - began_s + (ended_ns - began_ns) / 1e9) / programs.RDPMC_READS if ran.status == 0 else None
