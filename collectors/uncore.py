# SPDX-License-Identifier: GPL-2.0-or-later
"""What memory controllers moved, and what devices found in the last-level cache (DDIO), counted outside the cores by perf stat.

These counters stand beside the cores, one set for a socket's channel of memory or slice of cache, and do not know who asked. So there
is one number for the whole host: no role, no CPU, no mode, and nothing in common with the groups of ``perf_stat``. Which events there
are is the catalogue's (``Unit``; collectors/events/<microarchitecture>/uncore.json). Not run on a real PMU yet;
docs/collectors/uncore.md.
"""

import contextlib
import functools
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from vsprof.collectors import messages as collectors_messages
from vsprof.collectors.base import Collector, Recorded
from vsprof.collectors.events import catalogue, probe
from vsprof.collectors.events import messages as events_messages
from vsprof.collectors.events.catalogue import Catalogue
from vsprof.collectors.events.probe import Count
from vsprof.collectors.perf_stat import messages as perf_messages
from vsprof.collectors.perf_stat import perf
from vsprof.collectors.perf_stat.perf import STAT, Seen
from vsprof.terms import errors, expression
from vsprof.terms.expression import Formula
from vsprof.terms.schema import Number
from vsprof.terms.vocabulary import CollectorWords
from vsprof.testbeds.base import Testbed

FOLDER = "/run/vsprof-uncore"


class Uncore(Collector):
    words = "memory controllers and devices' share of the cache, by perf stat"
    source = "hardware"
    automatic = False  # it has not been seen at work yet
    options: ClassVar[Mapping[str, str]] = {"events": "metrics and events outside the cores, by name; default: the catalogue's metrics"}

    def __init__(self, host: Testbed, events: Sequence[str] | None = None) -> None:
        super().__init__(host)
        self.events = events
        self._left_out: dict[str, str] = {}

    @functools.cached_property
    def seen(self) -> Seen:
        return perf.look(self.host)

    @functools.cached_property
    def known(self) -> Catalogue:
        """The catalogue of the testbed's processor. Raises ``BadInput``."""
        return catalogue.load(seen=self.seen.processor, pmu=self.seen.pmu)

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        events = given.get("events")
        if events is not None and not (isinstance(events, list) and events and all(isinstance(name, str) for name in events)):
            raise collectors_messages.no_list("uncore", "events", events, "memory_read_bytes")

    @functools.cached_property
    def wanted(self) -> dict[str, tuple[str, ...]]:
        """What was asked for; or the metrics that are made of nothing but events outside the cores. And those events.

        Raises ``BadInput`` for what the catalogue does not have, and for what cores count.
        """
        outside = {name for name, event in self.known.events.items() if event.unit}
        if self.events is not None:
            found = {self.known.find(name).name: self.known.needs(name) for name in self.events}
            for name, events in found.items():
                if inside := [event for event in events if event not in outside]:
                    raise events_messages.by_core(name, inside)
            return found
        needs = {name: self.known.needs(name) for name in self.known.metrics if not self.known.missing(name)}
        return {name: events for name, events in needs.items() if events and set(events) <= outside and not self.known.needs_data(name)}

    @property
    def _events(self) -> list[str]:
        """Those that can be counted."""
        events = dict.fromkeys(event for needs in self.wanted.values() for event in needs)
        return [name for name in events if name not in self._left_out]

    def unavailable(self) -> str | None:
        if not self.wanted:
            return events_messages.no_uncore(self.known.microarchitecture)
        if why := self.seen.obstacle(0, self.known.microarchitecture):
            return why
        self._try()
        return None if self._events else next(iter(self._left_out.values()))

    def _try(self) -> None:
        """Each by itself: one that perf does not know ends all others with it."""
        self._left_out = {}
        commands = {name: f"{STAT} -a -e {shlex.quote(self._perf(name))} true" for name in self._events}
        verdicts = {name: probe.judge(ran, perf.EACH_S, self.seen.level) for name, ran in perf.ask(self.host, commands).items()}
        self._left_out = {name: one.why or perf_messages.not_counted(one.state) for name, one in verdicts.items() if not one.counted}

    def _perf(self, name: str) -> str:
        return self.known.events[name].perf()

    def vocabulary(self) -> CollectorWords:
        return CollectorWords(self.words, {name: words for name, words in self.known.says().items() if name in self.wanted})

    def facts(self) -> dict[str, Any]:
        events = {name: {"perf": self._perf(name), "source": self.known.events[name].source} for name in self._events}
        return {"microarchitecture": self.known.microarchitecture, "events": events, "left_out": self._left_out}

    # --- A window -------------------------------------------------------------------------------------------------

    def prepare(self) -> str:
        # The shell chooses the numbers of the pipes, so that they are no other collector's.
        return f"""
rm -rf {FOLDER}; mkdir {FOLDER}; mkfifo {FOLDER}/control {FOLDER}/ack
{self.host.housekeeping} perf stat -a -j -o {FOLDER}/out -D -1 --control fifo:{FOLDER}/control,{FOLDER}/ack \\
    -e {shlex.quote(",".join(self._perf(name) for name in self._events))} &
uncore_pid=$!
exec {{uncore_control}}<>{FOLDER}/control {{uncore_ack}}<>{FOLDER}/ack
answer=; echo ping >&$uncore_control
for try in {{1..40}}; do read -t 0.5 -u $uncore_ack answer && break; kill -0 $uncore_pid || break; done
[ "$answer" ] || uncore_pid="""

    def begin(self) -> str:
        formulas = {name: self._formula(name) for name in self.wanted}
        header = json.dumps({"formulas": formulas, "left_out": self._left_out})
        return f"echo {shlex.quote(header)}\n{_control('enable')}"

    def _formula(self, name: str) -> list[Any]:
        """Formula, factor and unit; an event has no formula."""
        metric = self.known.metrics.get(name)
        return [metric.text, metric.factor, metric.unit] if metric else [None, 1.0, "events"]

    def end(self) -> str:
        return _control("disable")

    def finish(self) -> str:
        ended = f"kill -INT $uncore_pid; wait $uncore_pid; cat {FOLDER}/out || :"
        return f'[ ! "$uncore_pid" ] || {{ {ended}; }}'

    def teardown(self) -> None:
        with contextlib.suppress(errors.VsprofError):
            self.host.run(f"rm -rf {FOLDER}", check=False)

    @classmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        formulas, left_out = _header(recorded.begin)
        counts, why = _counted(recorded.end)
        notes = {**{name.casefold(): note for name, note in left_out.items()}, **why}
        for name, (formula, unit) in formulas.items():
            known = {name.casefold(): formula} if formula else {}
            leaves = formula.expression.names if formula else (name,)
            silent = dict.fromkeys((leaf.casefold() for leaf in leaves), perf_messages.perf_silent())
            made = expression.compute(name, known, counts, {**silent, **notes})
            yield Number(name, made.value, unit, None, None, "all", recorded.seconds, recorded.seconds, made.note)


def _control(word: str) -> str:
    """Nobody waits for a perf that did not begin."""
    return f'[ ! "$uncore_pid" ] || {{ echo {word} >&$uncore_control; read -t 20 -u $uncore_ack answer; echo $answer; }}'


def _header(text: str) -> tuple[dict[str, tuple[Formula | None, str]], dict[str, str]]:
    """What a window's begin says: the formulas with their units, None of an event, and why events are left out. Raises ``ValueError``."""
    try:
        said = json.loads(text.partition("\n")[0])
        formulas = {
            name: (None if written is None else Formula(expression.parse(written), float(factor)), str(unit))
            for name, (written, factor, unit) in said["formulas"].items()
        }
        return formulas, {name: str(why) for name, why in said["left_out"].items()}
    except (LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"not what uncore writes at a window's begin: {error!r}") from error


def _counted(text: str) -> tuple[dict[str, float], dict[str, str]]:
    """Each event's count, over all units of its kind, and why another has none. perf prints one line, or one for each unit."""
    lines: dict[str, list[Count]] = {}
    try:
        for one in probe.read(text):
            # A unit's own line has its name behind the event's: ``UNC_M_CAS_COUNT.RD [uncore_imc_0]``.
            lines.setdefault(one.event.partition(" ")[0].casefold(), []).append(one)
    except ValueError:
        return {}, {}
    why = {name: reason for name, counts in lines.items() if (reason := next(filter(None, map(_distrust, counts)), ""))}
    sums = {name: sum(one.value or 0.0 for one in counts) for name, counts in lines.items() if name not in why}
    return sums, why


def _distrust(one: Count) -> str:
    if one.value is None:
        return perf_messages.never_ran() if one.state == probe.NOT_COUNTED else perf_messages.not_counted(one.state)
    return perf_messages.multiplexed(one.percent) if one.percent < 100 else ""


COLLECTOR = Uncore
