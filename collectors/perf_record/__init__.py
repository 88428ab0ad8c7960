# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the CPUs are, sampled by perf record with call stacks: by role, CPU, function and stack. With the option ``events``: where these
events happen.

Each sample is an interrupt, and its stack is walked there: that slows the host down, so it has windows of its own, and an experiment
must name it. docs/collectors/perf_record.md says what the samples miss.
"""

import functools
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from vsprof.collectors import messages, perf_text
from vsprof.collectors.base import Apart, Recorded
from vsprof.collectors.events import catalogue
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.perf_record import events as own_events
from vsprof.collectors.perf_record import samples
from vsprof.collectors.perf_stat import perf
from vsprof.collectors.uarch_model import symbols
from vsprof.terms.schema import FunctionCount, Number, StackCount
from vsprof.terms.vocabulary import NumberWords
from vsprof.testbeds.base import Testbed

FREQUENCY_HZ = 499
"""A prime: a round number would step with what the host itself does a hundred or a thousand times a second."""
LEAST_HZ, MOST_HZ = 1, 10_000
EVENTS = ("cycles:GH", "cpu-clock")
"""Of these the first that the host counts; GH: the host, and its guests."""
KNOWN_TO_ALL = "comm,pid,tid,cpu,time,misc,event,ip,sym,dso"
FIELDS = (f"{KNOWN_TO_ALL},dsoff", KNOWN_TO_ALL)
"""From 6.4 on perf tells the place in a program by dsoff; earlier ones tell it as ip."""
WEIGHED = tuple(fields.replace("event", "period,event") for fields in FIELDS)
"""With the number of events that each sample stands for."""
STACK_BYTES = 16_384
"""With 8 KiB, what OVS-DPDK does when it sends packets loses its outermost callers; one function of its keeps more than 16 KiB."""
SAMPLE_BYTES = 1024
"""Of a sample beside its copied stack: the registers, and the kernel's part of the stack."""
MOST_STACK_BYTES = 65_528
"""perf's own limit, a multiple of 8."""
MODULES = "awk '{ print $6, $2, $1 }' /proc/modules"
# What ran in a guest is left out of the text unless something is asked of guests.
OPTIONS = "--guest-code --no-inline"


class PerfRecord(Apart):
    words = "samples of call stacks"
    says: ClassVar[Mapping[str, NumberWords]] = {
        "samples": NumberWords("samples of CPUs at work"),
        "sampled_*": NumberWords("events of this name, estimated from samples with their callers"),
        "samples_idle": NumberWords("samples of idle CPUs"),
        "samples_lost": NumberWords("samples that perf could not write in time", better="less"),
        "sampling_rate": NumberWords("rate at which samples came"),
        "window_seconds": NumberWords("from the first sample to the last"),
    }
    automatic = False
    options: ClassVar[dict[str, str]] = {
        "frequency": f"samples a second and CPU, {LEAST_HZ} to {MOST_HZ} (default {FREQUENCY_HZ})",
        "events": "what to sample, in place of cycles or the clock: events of the catalogue, or sums of such (l1d_misses)",
        "stack_bytes": f"of a program's stack copied with each sample to find callers (default {STACK_BYTES}); 0: by the frame pointer",
    }

    def __init__(
        self, host: Testbed, frequency: int = FREQUENCY_HZ, stack_bytes: int = STACK_BYTES, events: str | Sequence[str] = ()
    ) -> None:
        super().__init__(host)
        self.frequency, self.stack_bytes = frequency, stack_bytes
        self._names = own_events.names_of(events) or []
        self._event = EVENTS[-1]

    @functools.cached_property
    def _seen(self) -> perf.Seen:
        return perf.look(self.host)

    @functools.cached_property
    def _known(self) -> Catalogue:
        """The catalogue of the testbed's processor. Raises ``BadInput``."""
        return catalogue.load(seen=self._seen.processor, pmu=self._seen.pmu)

    @functools.cached_property
    def _chosen(self) -> own_events.Chosen:
        """Of the option ``events``. Raises ``BadInput``."""
        return own_events.choose(self.host, self._seen, self._known, self._names)

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        frequency = given.get("frequency", FREQUENCY_HZ)
        if type(frequency) is not int or not LEAST_HZ <= frequency <= MOST_HZ:
            raise messages.bad_frequency(frequency, LEAST_HZ, MOST_HZ)
        stack = given.get("stack_bytes", STACK_BYTES)
        if type(stack) is not int or not 0 <= stack <= MOST_STACK_BYTES or stack % 8:
            raise messages.bad_stack_bytes(stack, MOST_STACK_BYTES)
        if "events" in given and own_events.names_of(given["events"]) is None:
            raise messages.bad_events(given["events"])

    def unavailable(self) -> str | None:
        if self._names:
            return self._not_sampled()
        tried = perf_text.tried(self.host, f"-e {EVENTS[-1]} -g")
        return None if tried.status == 0 else messages.can_not_record(" ".join(tried.stderr.split()))

    def _not_sampled(self) -> str | None:
        wanted = own_events.wanted(self._known, self._names)
        hardware = sum(self._known.events[event].hardware for needs in wanted.values() for event in needs)
        if why := self._seen.obstacle(hardware, self._known.microarchitecture):
            return why
        return None if self._chosen.events else next(iter(self._chosen.left_out.values()))

    def setup(self) -> None:
        self._event = next((event for event in EVENTS if self._counts(event)), EVENTS[-1])
        self._kptr = self.host.run("cat /proc/sys/kernel/kptr_restrict; grep -m 1 ' _stext$' /proc/kallsyms", check=False).stdout.split()
        # Some perf takes modules for the kernel itself: where each one's code begins, its size and its name. A kernel may have none.
        self._modules = [line.split() for line in self.host.run(MODULES, check=False).stdout.splitlines()]

    def _counts(self, event: str) -> bool:
        # perf record takes cpu-clock in silence where there are no cycles; perf stat says what was counted.
        tried = self.host.run(f"LC_ALL=C perf stat -x , -a -e {event} true", check=False)
        return tried.status == 0 and tried.stderr.strip().partition(",")[0].isdigit()

    def facts(self) -> dict[str, Any]:
        level, *address = self._kptr
        hidden = not address or not address[0].strip("0")
        known = messages.kernel_symbols_hidden(level) if hidden else "known"
        settings = {"frequency_hz": self.frequency, "stack_bytes": self.stack_bytes}
        return {**self.facts_of_events(), **settings, "kernel_symbols": known}

    def facts_of_events(self) -> dict[str, Any]:
        """What is sampled: of ``facts``, the part that needs no ``setup``."""
        if not self._names:
            return {"event": self._event}
        events = {name: [one.perf for one in found] for name, found in self._chosen.events.items()}
        precise = [name for name, found in self._chosen.events.items() if all(one.precise for one in found)]
        return {"events": events, "precise": precise, "left_out": dict(self._chosen.left_out)}

    def measure(self, seconds: float) -> str:
        callers = f"dwarf,{self.stack_bytes}" if self.stack_bytes else "fp"
        asked = [one.perf for one in self._chosen.sampled] if self._names else [self._event]
        what = f"-F {self.frequency} {' '.join(f'-e {shlex.quote(one)}' for one in asked)} --call-graph {callers}"
        buffer = math.ceil(seconds * self.frequency * len(asked) * (self.stack_bytes + SAMPLE_BYTES))
        printed = perf_text.record(self.host, what, seconds, WEIGHED if self._names else FIELDS, OPTIONS, buffer)
        recording = perf_text.Recording.of(printed, **self._header(), modules=self._modules)
        # Programs are stripped; what names their functions is at hand now, and need not be when this is parsed again.
        names = self._place_names(samples.unnamed(recording))
        return perf_text.Recording({**recording.header, "names": names}, recording.text).recorded()

    def _header(self) -> dict[str, Any]:
        if not self._names:
            return {"event": self._event}
        kernels_own = not any(one.hardware for one in self._chosen.sampled)
        return {"events": self._chosen.printed(), "left_out": dict(self._chosen.left_out), "kernels_own": kernels_own}

    def _place_names(self, places: Mapping[str, Iterable[int]]) -> dict[str, dict[str, str]]:
        """By program and place in it (hexadecimal) what the program's own tables say."""
        local = {path: self.host.file(path) for path in places}
        return {path: dict(_named(file, sorted(places[path]))) for path, file in local.items() if file is not None}

    @classmethod
    def source_of(cls, recorded: Recorded) -> str:
        return "software" if samples.is_clock(recorded) else "hardware"

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        return samples.numbers(recorded)

    @classmethod
    def functions(cls, recorded: Recorded) -> Iterable[FunctionCount]:
        return samples.functions(recorded)

    @classmethod
    def stacks(cls, recorded: Recorded) -> Iterable[StackCount]:
        return samples.stacks(recorded)


def _named(path: Path, places: Iterable[int]) -> Iterable[tuple[str, str]]:
    size = path.stat().st_size if path.is_file() else 0
    table = symbols.program(path)
    for place in places:
        # Behind the last function there is always its name.
        if place < size and (found := table.find(place)):
            yield f"{place:x}", found[1]


COLLECTOR = PerfRecord
