# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a collector: an instrument that counts something during a window.

Life cycle, in the order the runner uses it::

    Softirqs.ask_ahead(host)       # before the switch is started
    collector = Softirqs(host)
    collector.not_of_this_switch() # None, or why there is nothing for it to count
    collector.unavailable()        # None, or why it can't work here
    collector.setup()              # once a run, before the traffic starts
    for each window:
        collector.next_window(n, of)  # its number, for an instrument that counts something else in each
        collector.prepare()        # a shell command before the window: start what needs time to start
        collector.begin()          # a shell command at its first instant
        collector.end()            # a shell command at its last instant
        collector.finish()         # a shell command once all others have ended: what takes time to end
    collector.teardown()
    Softirqs.numbers(recorded)     # pure: from what was recorded, so a fixed parser can be run again later
    Softirqs.functions(recorded)   # the same of single functions; most collectors have none
    Softirqs.stacks(recorded)      # the same of call stacks
    Softirqs.spans(recorded)       # what happened when: a timeline

The commands of all collectors are put into one script that runs on the testbed, so that nobody talks to the host inside
a window. What each command prints is kept in raw/ and given to ``numbers``, with the seconds between begin and end.

An instrument that slows the host down while it counts would spoil the numbers of all others. It derives from ``Apart``, and
is measured apart: in windows of its own, after the normal ones, while the same traffic flows. In modelled time it is left out. ::

    collector.engage()             # once a traffic
    for each own window:
        collector.measure(seconds) # all of it, on this side
    collector.disengage()          # whatever happened

What an instrument sees of the host alone, and would disturb the traffic by seeing, it sees while nothing is measured. It derives from
``Between``, whose ``look`` runs before and behind each window, or the whole traffic.

A collector sees a testbed and a window, nothing else. To add one, write one file here that defines a subclass and names
it in ``COLLECTOR``; the file's name is the collector's name, and docs/collectors/<name>.md is its page.
"""

import abc
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from vsprof.terms.placement import Placement
from vsprof.terms.schema import FunctionCount, Number, Span, StackCount
from vsprof.terms.vocabulary import CollectorWords, NumberWords
from vsprof.testbeds.base import Testbed


@dataclass(frozen=True)
class Recorded:
    """What a collector's commands printed around one window."""

    begin: str
    end: str
    seconds: float
    """Between the two, by the testbed's clock; not a number where they are not of the window (own windows, ``Between``)."""
    placement: Placement


@dataclass(frozen=True, slots=True)
class Load:
    """What a CPU did for some time."""

    busy: float | None
    """The share of it in which it did anything, 0 to 1; None where that is not known."""
    cpi: float | None = None
    """Cycles per instruction; None where nobody counted them, or there were none."""


class Collector(abc.ABC):
    """An instrument. See the module's text for the life cycle."""

    words: ClassVar[str] = ""
    """Its name as reports write it, where that is not the file's name."""
    says: ClassVar[Mapping[str, NumberWords]] = {}
    """What its numbers are, by name, for whoever shows them: words, which direction is better, the figure. A name may have a ``*``."""
    source: ClassVar[str] = "software"
    automatic: ClassVar[bool] = True
    """Whether the word `auto` in an experiment's collectors includes it."""
    emulator_plugin: ClassVar[Path | None] = None
    """A plug-in of QEMU's TCG (a shared object) that an emulated host must be started with; see ``Testbed.plugin_socket``."""

    @classmethod
    def build(cls) -> None:
        """Compile what it needs on this machine, where that is not done yet. Raises ``BadInput`` with the compiler's words."""

    nesting: ClassVar[int] = 2
    """How far inside of the others its probes run in modelled time. 0: they ask the switch, whose threads work for the answer, which nobody
    else is to count. 1: they ask it, and read what its threads did."""

    options: ClassVar[Mapping[str, str]] = {}
    """What an experiment can set under ``collector_options``, and what it means: keywords of the constructor."""

    def __init__(self, host: Testbed) -> None:
        self.host = host

    @classmethod
    def check_options(cls, given: Mapping[str, Any]) -> None:
        """Raise ``BadInput`` if the values ``given`` for ``options`` won't do. Their names have been checked."""

    @classmethod
    def ask_ahead(cls, host: Testbed) -> None:
        """Ask ``host`` what takes long and depends on its kernel alone: virtual machines stand still there, and nothing else runs. Behind
        a switch and guests that keep every CPU busy a command took minutes that takes seconds. Nothing by default."""

    def not_of_this_switch(self) -> str | None:
        """Why this run's switch has nothing that it counts, or None. The run goes without it then, named outright or not: the
        campaign's other switches may have what it counts. Asked once the switch runs."""
        return None

    def unavailable(self) -> str | None:
        """Why it can't work on this testbed, or None. Named outright, it stops the campaign then. Asked once the switch runs."""
        return None

    def setup(self) -> None:
        """Make ready, once a run."""

    def facts(self) -> dict[str, Any]:
        """What the manifest should say of this instrument and its settings. Asked after ``setup``."""
        return {}

    def vocabulary(self) -> CollectorWords:
        """``words`` and ``says``, and what only a run can know of them. Asked after ``setup``."""
        return CollectorWords(self.words, self.says)

    def next_window(self, number: int, count: int) -> None:
        """The window to come is ``number``, from 1 on, of the ``count`` normal windows of a traffic."""

    def prepare(self) -> str:
        """Shell command that runs before the window, outside the measured time."""
        return ""

    @abc.abstractmethod
    def begin(self) -> str:
        """Shell command at the window's first instant. What it prints is recorded."""

    @abc.abstractmethod
    def end(self) -> str:
        """Shell command at the window's last instant. What it prints is recorded."""

    def finish(self) -> str:
        """Shell command after every collector's ``end``, outside the measured time. Its output follows that of ``end``."""
        return ""

    def teardown(self) -> None:
        """Undo ``setup``."""

    @classmethod
    @abc.abstractmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        """All numbers of one window. Raises ``ValueError`` when what was recorded can't be read."""

    def loads(self, recorded: Recorded) -> Mapping[int, Load]:
        """What each CPU did in one window, for whoever watches; empty where it does not know. Raises as ``numbers`` does."""
        return {}

    @classmethod
    def functions(cls, recorded: Recorded) -> Iterable[FunctionCount]:
        """What was counted in single functions in one window, for a collector that knows. Raises as ``numbers`` does."""
        return ()

    @classmethod
    def stacks(cls, recorded: Recorded) -> Iterable[StackCount]:
        """What was counted in single call stacks in one window. Raises as ``numbers`` does."""
        return ()

    @classmethod
    def spans(cls, recorded: Recorded) -> Iterable[Span]:
        """What happened when in a part of one window, for a collector that writes it down. Raises as ``numbers`` does."""
        return ()

    @classmethod
    def source_of(cls, recorded: Recorded) -> str:
        """The source of all that was counted in one window, for a collector to which the window must tell it."""
        return cls.source


@dataclass(frozen=True)
class Marks:
    """Shell commands that mark places of a window's script at the very instants at which they run on the testbed."""

    ready: str
    """Before time is modelled: makes the script known as one that probes."""
    probes: str
    """From here on the script and what it starts are probes, and take no modelled time, up to ``begin``, and again behind ``end``."""
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Glance:
    """What a clock has seen since time has been modelled."""

    seconds: float
    packets: int
    """That kernels received."""
    cycles: tuple[int, ...]
    """By CPU, those of the modelled processor; while a CPU sleeps it has none."""
    instructions: tuple[int, ...]
    frequency_hz: float


class Clock(Collector):
    """A collector that drives the testbed's clock while windows last (see ``testbeds.base.MODELLED``), and counts between their marks: it
    has no commands in the window's script."""

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""

    @classmethod
    def factors(cls) -> tuple[str, ...]:
        """What of the processor cases may differ in, such as `cpu.l2.latency`: names that an experiment can fix or vary."""
        return ()

    @classmethod
    def settled(cls, given: Mapping[str, str | None], options: Mapping[str, Any]) -> dict[str, str]:
        """The factors of a case, each as the value that it then has; None: what the processor has without. ``options``: what the collector
        is told for all cases. Raises ``BadInput``."""
        return {}

    @classmethod
    def options_of(cls, case: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
        """``options`` changed so that it is the processor of a case, of whose values some are factors. They have a ``seed``."""
        return dict(options)

    @abc.abstractmethod
    def modelled_time(self) -> AbstractContextManager[None]:
        """While it lasts, time on the testbed is the modelled processor's. Raises ``RunFailed`` when it does not begin."""

    @abc.abstractmethod
    def warm_up(self, least: float, most: float) -> None:
        """Let modelled time pass until the rate of packets is steady: for ``least`` to ``most`` seconds of it. Raises ``RunFailed`` when
        it does not pass."""

    @abc.abstractmethod
    def now(self) -> float:
        """Seconds of modelled time so far."""

    @abc.abstractmethod
    def glance(self) -> Glance:
        """What it has seen so far. It takes no modelled time."""

    @abc.abstractmethod
    def patience(self, seconds: float) -> Callable[[], bool]:
        """For what begins now and takes so many seconds of modelled time at most: whether it still goes on, each time that this is asked.
        However slow the testbed is, it does as long as that time passes, or the probes work for which it stands still."""

    @abc.abstractmethod
    def await_packets(self, rate_pps: int | None) -> None:
        """Let modelled time pass until packets that are sent at this rate (None: as fast as it goes) have come, and come no more; or until
        none has come for long. Raises ``RunFailed`` when it does not pass."""

    @abc.abstractmethod
    def await_quiet(self, rate_pps: int | None) -> None:
        """The same until they come no more."""

    @abc.abstractmethod
    def marks(self) -> Marks:
        """Where a window's script must tell it where it is."""

    @abc.abstractmethod
    def read_window(self) -> str:
        """What it counted between the two, to be recorded as ``Recorded.end``."""

    @abc.abstractmethod
    def clock_facts(self) -> dict[str, Any]:
        """Whose clock it is, how far CPUs were apart in it, and what it cost: for the manifest."""


class Snapshot(Collector):
    """A collector that reads counters twice, by one command, and takes the difference."""

    command: ClassVar[str]

    def begin(self) -> str:
        return self.command

    def end(self) -> str:
        return self.command


class Reader(Collector):
    """A collector that reads lines of the host's files twice, and takes the difference. Each line is recorded behind its file's path and a
    colon. All readers of a window are served by one program, see ``collectors.reading``."""

    files: ClassVar[Mapping[str, str]]
    """Files as a shell's pattern, in the order in which they must be read; and which of their lines, as an extended regular expression."""

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""


class Apart(Collector):
    """A collector with windows of its own, for it slows the host down while it counts. What ``measure`` returns is ``Recorded.end``."""

    def engage(self) -> None:
        """Called before the first of its own windows of a traffic. May take seconds, and does its own warming up."""

    @abc.abstractmethod
    def measure(self, seconds: float) -> str:
        """Measure one window of about ``seconds``, and return what is to be recorded. Nothing else talks to the host meanwhile."""

    def disengage(self) -> None:
        """Called after the last of its own windows of a traffic, also when one of them, or ``engage``, failed. Raises nothing."""

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""


class Between(Collector):
    """A collector that looks at the host while nothing is measured. ``Recorded.begin`` is the last look before the window, and ``end`` the
    first behind it, with the traffic's other windows between where that can't stand still."""

    @abc.abstractmethod
    def look(self) -> str:
        """Shell command of a look. What it prints is recorded; one that fails has printed nothing."""

    def begin(self) -> str:
        return ""

    def end(self) -> str:
        return ""
