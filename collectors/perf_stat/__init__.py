# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor's own counters (its PMU) counted on each CPU, by perf stat; docs/collectors/perf_stat.md.

Read in this order::

    wanted.py       what is to be counted, out of the event catalogue (collectors/events)
    perf.py         asking the testbed's perf
    preflight.py    can its counters be believed, and how many fit into one group
    groups.py       what is counted together, and in which window
    numbers.py      what of it is kept

Events are counted per CPU, never by task: attached to a task, counters are changed at every switch, which can slow a workload down
many times. No window counts more than one group, so nothing is multiplexed: the groups take turns, window by window.
"""

import contextlib
import functools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors.base import Collector, Recorded
from vsprof.collectors.events import catalogue, probe
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.events.entries import Metric
from vsprof.collectors.perf_stat import groups, messages, numbers, perf, preflight, wanted
from vsprof.collectors.perf_stat.groups import Group, Round
from vsprof.collectors.perf_stat.perf import STAT, Seen
from vsprof.collectors.perf_stat.preflight import Preflight
from vsprof.collectors.perf_stat.wanted import Wanted
from vsprof.terms import errors
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import CollectorWords
from vsprof.testbeds.base import Testbed

FOLDER = "/run/vsprof-perf-stat"
KERNEL_EVENTS_ROOM = 8
"""How many of the kernel's own events a group has where no hardware is counted: they need no counters, this is for the eye."""


class PerfStat(Collector):
    words = "processor events, by perf stat"
    source = "hardware"
    options: ClassVar[dict[str, str]] = {
        "events": "names of metrics and events of the catalogue, in place of the default; each must be had, or the run fails",
        "event_files": "paths of JSON files with events and metrics of your own",
        "modes": f"what is distinguished: {', '.join(groups.SPLIT)}; or [all]",
        "counters": "how many events a group has beside cycles and instructions, in place of the tested number",
        "cpus": "the CPUs to count on, such as 0-3,8, in place of all",
    }

    def __init__(
        self,
        host: Testbed,
        events: Sequence[str] | None = None,
        event_files: Sequence[str] | None = None,
        modes: Sequence[str] | None = None,
        counters: int | None = None,
        cpus: str | int | None = None,
    ) -> None:
        super().__init__(host)
        self.events, self.files, self.modes = events, wanted.paths(event_files), modes
        self.counters, self.cpus = counters, cpus
        self._groups: list[Group] = []
        self._left_out: dict[str, str] = {}
        self._preflight = Preflight()
        self._window = (1, 1)

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        wanted.check(given)

    # --- What is there --------------------------------------------------------------------------------------------

    @functools.cached_property
    def seen(self) -> Seen:
        return perf.look(self.host)

    @functools.cached_property
    def known(self) -> Catalogue:
        """The catalogue of the testbed's processor. Raises ``BadInput``."""
        return catalogue.load(files=self.files, seen=self.seen.processor, pmu=self.seen.pmu)

    @functools.cached_property
    def wanted(self) -> Wanted:
        return wanted.choose(self.known, self.events)

    def unavailable(self) -> str | None:
        needed = {event for name in self.wanted.names for event in self.known.needs(name)}
        hardware = sum(self.known.events[name].hardware for name in needed)
        return self.seen.obstacle(hardware, self.known.microarchitecture)

    # --- Making ready ---------------------------------------------------------------------------------------------

    def setup(self) -> None:
        sets = [one for name in self.wanted.names for one in self._together(name)]
        anchors = wanted.anchors(self.known) if any(self._hardware(name) for one in sets for name in one) else ()
        tried = dict.fromkeys([*anchors, *(name for one in sets for name in one)])
        self._left_out = self._uncountable(list(tried))
        anchors = tuple(name for name in anchors if name not in self._left_out)
        sets = [tuple(name for name in one if name not in self._left_out) for one in sets]
        self._preflight = self._examine(anchors, [name for one in sets for name in one])
        if self._preflight.room:
            self._groups = self._that_count(groups.pack(sets, anchors, self._preflight.room, self.known.events), anchors)
        else:
            self._left_out.update({name: messages.no_room(anchors) for one in sets for name in one if name not in anchors})
            self._groups = [anchors] if anchors else []
        self._refuse_named()

    def _together(self, name: str) -> list[Group]:
        metric = self.known.metrics.get(name)
        return groups.together(self.known.needs(name), metric.constraint if metric else "", self.seen.watchdog == "1")

    def _hardware(self, name: str) -> bool:
        return self.known.events[name].hardware

    def _uncountable(self, names: Sequence[str]) -> dict[str, str]:
        """Each event is tried alone, for one that perf does not know ends all others with it."""
        outside = {name: messages.outside_cores(unit) for name in names if (unit := self.known.events[name].unit)}
        commands = {name: f"{STAT} -a -e {shlex.quote(self._perf(name, 'all'))} true" for name in names if name not in outside}
        verdicts = {name: probe.judge(ran, perf.EACH_S, self.seen.level) for name, ran in perf.ask(self.host, commands).items()}
        return {
            **outside,
            **{name: found.why or messages.not_counted(found.state) for name, found in verdicts.items() if not found.counted},
        }

    def _examine(self, anchors: Group, countable: Sequence[str]) -> Preflight:
        hardware = [name for name in (*countable, *anchors) if self._hardware(name)]
        if not hardware:
            return preflight.of_kernel_events(self.counters or KERNEL_EVENTS_ROOM)
        # An event that any counter can count, so that it tells of all of them.
        branches = [] if self.known.missing("branches") else self.known.needs("branches")[:1]
        copied = next((name for name in branches if name not in self._uncountable(branches)), hardware[0])
        return preflight.examine(self.host, self.seen, self.known, anchors, copied, self.counters)

    def _that_count(self, wanted_groups: Sequence[Group], anchors: Group) -> list[Group]:
        """Each group as perf counts it; one that it does not is halved. What is known of an event's counters may not be all there is."""
        done: list[Group] = []
        todo = list(wanted_groups)
        while todo:
            commands = {str(place): f"{STAT} -a -e {perf.group(self._specs(one, 'all'))} true" for place, one in enumerate(todo)}
            answers = list(perf.ask(self.host, commands).values())
            done += [one for one, ran in zip(todo, answers, strict=True) if perf.counted(ran, len(one)) is not None]
            failed = [one for one, ran in zip(todo, answers, strict=True) if perf.counted(ran, len(one)) is None]
            todo = [half for one in failed for half in groups.halves(one, anchors)]
            for one in failed:
                if not groups.halves(one, anchors):
                    self._left_out.update(dict.fromkeys(one[len(anchors) :] or one, messages.not_beside_anchors(anchors)))
        return done

    def _refuse_named(self) -> None:
        """Raise ``BadInput`` if one of the metrics that were asked for by name can't be had."""
        for name in self.wanted.names if self.wanted.named else ():
            for event in self.known.needs(name):
                if why := self._left_out.get(event):
                    raise messages.not_here(name, f"{event}: {why}")

    def vocabulary(self) -> CollectorWords:
        shown = {*self._counted(), *self._metrics()}
        return CollectorWords(self.words, {name: words for name, words in self.known.says().items() if name in shown})

    def _counted(self) -> set[str]:
        return {name for one in self._groups for name in one}

    def _metrics(self) -> dict[str, Metric]:
        """Those that can be made of what is counted."""
        known, counted = self.known, self._counted()
        return {name: one for name, one in known.metrics.items() if not known.missing(name) and set(known.needs(name)) <= counted}

    def facts(self) -> dict[str, Any]:
        known = self.known
        metrics = {
            name: {"expression": metric.text, "unit": metric.unit, "factor": metric.factor, "description": metric.description}
            for name, metric in self._metrics().items()
        }
        return {
            "perf": self.seen.perf,
            "processor": known.processor.id,
            "processor_name": known.processor.name,
            "microarchitecture": known.microarchitecture,
            "vendor_defined": known.vendor_defined,
            "preflight": self._preflight.to_json(),
            "groups": [list(one) for one in self._groups],
            "modes": list(self._modes()),
            "events": {name: self._described(name) for name in sorted(self._counted())},
            "metrics": metrics,
            "left_out": self._left_out,
            "missing": {name: why for name in known.metrics if (why := known.missing(name))},
        }

    def _described(self, name: str) -> dict[str, str]:
        event = self.known.events[name]
        texts = {"perf": self._perf(name, "all"), "description": event.description, "source": event.source, "errata": event.errata}
        return {key: text for key, text in texts.items() if text}

    def _modes(self) -> Sequence[str]:
        """Guests are distinguished where there can be any; the kernel's own events have no modes."""
        if not any(self._hardware(name) for one in self._groups for name in one):
            return list(groups.WHOLE)
        return self.modes or [mode for mode in groups.SPLIT if mode != "guest" or self.seen.kvm]

    def _perf(self, name: str, mode: str) -> str:
        """The kernel's own events take no mode: it counts them where they happen, which is always in the kernel."""
        event = self.known.events[name]
        return event.perf(groups.MODIFIERS[mode] if event.hardware else "", self.known.pmu)

    def _specs(self, names: Iterable[str], mode: str) -> list[str]:
        return [self._perf(name, mode) for name in names]

    # --- A window -------------------------------------------------------------------------------------------------

    def next_window(self, number: int, count: int) -> None:
        self._window = number, count

    @property
    def rounds(self) -> list[Round]:
        return groups.rounds(self._groups, self._modes(), self._window[1])

    @property
    def _round(self) -> Round | None:
        rounds = self.rounds
        return rounds[(self._window[0] - 1) % len(rounds)] if rounds else None

    def prepare(self) -> str:
        if (now := self._round) is None:
            return ""
        where = "-a" if self.cpus is None else f"-a -C {self.cpus}"
        return f"""
rm -rf {FOLDER}; mkdir {FOLDER}; mkfifo {FOLDER}/control {FOLDER}/ack
{self.host.housekeeping} perf stat {where} -A -j -o {FOLDER}/out -D -1 --control fifo:{FOLDER}/control,{FOLDER}/ack \\
    -e {perf.group(self._specs(now.events, now.mode))} &
perf_stat_pid=$!
exec 5<>{FOLDER}/control 6<>{FOLDER}/ack
answer=; echo ping >&5
for try in {{1..40}}; do read -t 0.5 -u 6 answer && break; kill -0 $perf_stat_pid || break; done
[ "$answer" ] || perf_stat_pid="""

    def begin(self) -> str:
        number, count = self._window
        now, rounds = self._round, self.rounds
        left_out = dict(self._left_out) if number == 1 else {}
        if number == count:
            left_out.update(dict.fromkeys(groups.never_due(rounds, count), messages.too_few_windows(len(rounds), count)))
        events = list(now.events) if now else []
        software = [name for name in (*events, *left_out) if not self._hardware(name)]
        mode = now.mode if now else "all"
        header = numbers.Header(number, count, len(rounds), mode, events, software, self._preflight.distrust, left_out)
        # The text first, for the counters are to begin as late as they can.
        return f"echo {shlex.quote(header.to_json())}\n{self._control('enable')}"

    def end(self) -> str:
        return self._control("disable")

    def _control(self, word: str) -> str:
        """Nobody waits for a perf that did not begin."""
        return f'[ ! "$perf_stat_pid" ] || {{ echo {word} >&5; read -t 20 -u 6 answer; echo $answer; }}' if self._round else ""

    def finish(self) -> str:
        ended = f"kill -INT $perf_stat_pid; wait $perf_stat_pid; cat {FOLDER}/out || :"
        return f'[ ! "$perf_stat_pid" ] || {{ {ended}; }}' if self._round else ""

    def teardown(self) -> None:
        # A host that is gone has nothing left to be taken away, and that it is gone is what must be told.
        with contextlib.suppress(errors.VsprofError):
            self.host.run(f"rm -rf {FOLDER}", check=False)

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        return list(numbers.of(recorded))


COLLECTOR = PerfStat
