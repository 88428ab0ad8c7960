# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel's tracepoints tell, counted inside the kernel by bpftrace: one file .bt beside this one a probe.

All chosen probes run as one program, for a start costs most. It is started before the window, and counts while the map ``@on`` is
set. A mark sets and clears it: the window's shell sends itself a signal that does nothing, which is one system call and no process,
and which the program sees. So it counts exactly from mark to mark, and measures that time itself; its maps are printed when it ends.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.base import Collector, Recorded
from vsprof.collectors.ebpf import messages, numbers, output, probes, program
from vsprof.collectors.ebpf.probes import Probe
from vsprof.terms import messages as terms_messages
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import CollectorWords, NumberWords
from vsprof.testbeds.base import Testbed

PROBES = probes.names()
FOLDER = "/run/vsprof-ebpf"
EVENTS = "/sys/kernel/tracing/events"
READY_SECONDS = 60
"""How long a start may take; in the lab it takes seconds."""
END_SECONDS = 20
"""How long its end may take, the printing of its maps included."""
MOST_KEYS = 16384
"""Of a map. One that has as many may lack others."""
COMMAND = f"env BPFTRACE_MAP_KEYS_MAX={MOST_KEYS} BPFTRACE_MAX_MAP_KEYS={MOST_KEYS} bpftrace -f json -B line {FOLDER}/program.bt"
"""Versions name the limit differently."""


class Ebpf(Collector):
    words = "tracepoints, by bpftrace"
    automatic = False
    options: ClassVar[Mapping[str, str]] = {"probes": f"which probes, a list of {', '.join(PROBES)}; without it, all"}

    def __init__(self, host: Testbed, probes: Sequence[str] = PROBES) -> None:
        super().__init__(host)
        self._names = probes
        self._chosen: list[Probe] = []
        self._missing: dict[str, str] = {}
        self._version = ""

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        chosen = given.get("probes", list(PROBES))
        if not isinstance(chosen, list) or not chosen:
            raise collectors_messages.no_list("ebpf", "probes", chosen, "syscalls")
        for name in chosen:
            if name not in PROBES:
                raise terms_messages.unknown_value("probe", name, PROBES)

    def unavailable(self) -> str | None:
        try:
            self._chosen = probes.read(self._names)
        except ValueError as error:
            return str(error)
        version = self.host.run("bpftrace --version", check=False)
        if version.status:
            return messages.no_bpftrace(_first_error(version.stderr))
        self._version = version.stdout.strip().removeprefix("bpftrace v")
        btf = self.host.run("test -r /sys/kernel/btf/vmlinux || uname -r", check=False).stdout.strip()
        if btf:
            return messages.no_btf(btf)
        without = self._without_tracepoints([Probe("the mark", program.text([]), ()), *self._chosen])
        if "the mark" in without:
            return without["the mark"]
        return messages.nothing_works(without.values()) if len(without) == len(self._chosen) else None

    def setup(self) -> None:
        self.host.run(f"mkdir -p {FOLDER}")
        self._missing = self._without_tracepoints(self._chosen)
        if self._refused(self._working()):
            # One that bpftrace refuses ends all: each is tried alone.
            tried = {probe.name: self._refused([probe]) for probe in self._working()}
            self._missing |= {name: why for name, why in tried.items() if why}
            self._refused(self._working())
        described = {"probes": {probe.name: probe.text for probe in self._chosen}, "missing": self._missing}
        self.host.push(json.dumps(described) + "\n", f"{FOLDER}/description")

    def _working(self) -> list[Probe]:
        return [probe for probe in self._chosen if probe.name not in self._missing]

    def _without_tracepoints(self, probes: Iterable[Probe]) -> dict[str, str]:
        """The probes that want a tracepoint which this kernel has not, and why they can't work."""
        wanted = {probe.name: sorted(probe.tracepoints) for probe in probes}
        paths = " ".join(f"{EVENTS}/{category}/{event}" for names in wanted.values() for category, event in names)
        there = set(self.host.run(f"ls -d {paths} 2>/dev/null", check=False).stdout.split())
        lacking = {
            name: [f"{category}:{event}" for category, event in names if f"{EVENTS}/{category}/{event}" not in there]
            for name, names in wanted.items()
        }
        return {name: messages.no_tracepoint(names) for name, names in lacking.items() if names}

    def _refused(self, probes: Sequence[Probe]) -> str | None:
        """Why bpftrace does not run these, or None. Leaves their program on the host."""
        self.host.push(program.text(probes), f"{FOLDER}/program.bt")
        tried = self.host.run(f"timeout -s KILL {READY_SECONDS} {COMMAND} 0", timeout=READY_SECONDS + 30, check=False)
        return None if tried.status == 0 else messages.refused(_first_error(tried.stderr))

    def vocabulary(self) -> CollectorWords:
        names = {re.sub(r"{\w+}", "*", number.name): NumberWords(probe.about) for probe in self._chosen for number in probe.numbers}
        return CollectorWords(self.words, names)

    def facts(self) -> dict[str, Any]:
        return {"bpftrace": self._version, "probes": [probe.name for probe in self._working()], "missing": self._missing}

    def prepare(self) -> str:
        # the housekeeping CPU, as for every other tool; and its end if the window's shell ends early.
        return f"""
{self.host.housekeeping} setpriv --pdeathsig KILL {COMMAND} $$ < /dev/null > {FOLDER}/printed 2> {FOLDER}/messages &
ebpf_pid=$!
for try in {{1..{READY_SECONDS * 2}}}; do
    {program.HELLO}; sleep 0.5
    grep -q '{program.READY}' {FOLDER}/printed && break
    [ -e /proc/$ebpf_pid ] || break
done"""

    def begin(self) -> str:
        return program.MARK

    def end(self) -> str:
        return program.MARK

    def finish(self) -> str:
        return f"""
{program.END}
for try in {{1..{END_SECONDS * 5}}}; do
    [ -e /proc/$ebpf_pid ] || break
    sleep 0.2
done
[ -e /proc/$ebpf_pid ] && kill -KILL $ebpf_pid
wait $ebpf_pid; status=$?
cat {FOLDER}/description {FOLDER}/printed
echo '{{"type": "ended", "data": '$status'}}'
grep . {FOLDER}/messages | sed 's/^/# /'"""

    def teardown(self) -> None:
        self.host.run(f"rm -rf {FOLDER}", check=False)

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        described, printed, said = _parts(recorded.end)
        missing = dict(described["missing"])
        seconds = printed.maps.get("@counted_ns", {}).get("", 0.0) / 1e9
        # Marked once only, the time is that since boot; ended by force, maps are lacking that are not zero.
        if not seconds or printed.maps.get("@on") != {"": 0.0} or not printed.ended_well:
            missing = dict.fromkeys(described["probes"], messages.window_not_seen(_first_error(said))) | missing
        note = messages.lost_events(printed.lost_events) if printed.lost_events else ""
        for name, text in described["probes"].items():
            probe = Probe.of(name, text)
            if name in missing:
                yield from numbers.empty(probe, missing[name])
            else:
                yield from numbers.of(probe, printed, recorded.placement, seconds, MOST_KEYS, note)


def _parts(text: str) -> tuple[dict[str, Any], output.Printed, str]:
    """The description of the probes, what bpftrace printed, and its messages."""
    first, _, rest = text.partition("\n")
    try:
        described = json.loads(first)
        if not all(isinstance(value, str) for key in ("probes", "missing") for value in described[key].values()):
            raise messages.no_description()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise messages.no_description() from error
    said = [line for line in rest.splitlines() if line.startswith("#")]
    return described, output.read("\n".join(line for line in rest.splitlines() if not line.startswith("#"))), "\n".join(said)


def _first_error(words: str) -> str:
    """The first line that says what is wrong. A limit of locked memory is not: since 5.11 the kernel has none for BPF."""
    lines = [" ".join(line.lstrip("# ").split()) for line in words.splitlines() if "RLIMIT_MEMLOCK" not in line]
    return next((line for line in lines if "ERROR" in line), " ".join(lines))[:200]


COLLECTOR = Ebpf
