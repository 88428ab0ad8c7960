# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface of a collector: an instrument that counts something during a window.

Life cycle, in the order the runner uses it::

    collector = Softirqs(host)
    collector.unavailable()        # None, or why it can't work here
    collector.setup()              # once a run, before the traffic starts
    collector.engage()             # only with own_windows: once a traffic, before the first of them
    for each window:
        collector.prepare()        # a shell command before the window: start what needs time to start
        collector.begin()          # a shell command at its first instant
        collector.end()            # a shell command at its last instant
        collector.finish()         # a shell command once all others have ended: what takes time to end
        collector.fetch()          # on this side, right after the window: what the testbed can't print
    collector.disengage()          # only with own_windows: once a traffic, after the last of them
    collector.teardown()
    Softirqs.numbers(recorded)     # pure: from what was recorded, so a mended parser can be run again later

The commands of all collectors are put into one script that runs on the testbed, so that nobody talks to the host inside
a window. What each command prints is kept in raw/ and given to ``numbers``, with the seconds between begin and end.

An instrument that slows the host down while it counts would spoil the numbers of all others. It says so with
``own_windows``, and is measured apart: in windows of its own, after the normal ones, while the same traffic flows.

A collector sees a testbed and a window, nothing else. To add one, write one file here that defines a subclass and names
it in ``COLLECTOR``; the file's name is the collector's name, and docs/collectors/<name>.md is its page.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from terms.placement import Placement
from terms.schema import Number
from testbeds.base import Testbed


@dataclass(frozen=True)
class Recorded:
    """What a collector's commands printed around one window."""

    begin: str
    end: str
    seconds: float
    """Between the two, by the testbed's clock."""
    placement: Placement


class Collector(abc.ABC):
    """An instrument. See the module's text for the life cycle."""

    source: ClassVar[str] = "software"
    own_windows: ClassVar[bool] = False
    """Whether it slows the host down while it counts: then it shares no window with collectors that don't ask for it."""
    with_own_windows: ClassVar[bool] = False
    """Whether it also counts in the own windows of others: for cheap counters that those numbers are divided by."""
    emulator_plugin: ClassVar[Path | None] = None
    """A plug-in of QEMU's TCG (a shared object) that an emulated host must be started with; see ``Testbed.plugin_socket``."""

    def __init__(self, host: Testbed) -> None:
        self.host = host

    def unavailable(self) -> str | None:
        """Why it can't work on this testbed and switch, or None. Asked once the switch runs."""
        return None

    def setup(self) -> None:
        """Make ready, once a run."""

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

    def engage(self) -> None:
        """Called on this side before the first of its own windows of a traffic. May take seconds, and does its own warming up."""

    def disengage(self) -> None:
        """Called on this side after the last of its own windows of a traffic, also when one of them, or ``engage``, failed."""

    def fetch(self) -> str:
        """Called on this side right after a window it counted in; the text follows what ``end`` and ``finish`` printed."""
        return ""

    def teardown(self) -> None:
        """Undo ``setup``."""

    @classmethod
    @abc.abstractmethod
    def numbers(cls, recorded: Recorded) -> Iterable[Number]:
        """All numbers of one window. Raises ``ValueError`` when what was recorded can't be read."""


class Snapshot(Collector):
    """A collector that reads counters twice, by one command, and takes the difference."""

    command: ClassVar[str]

    def begin(self) -> str:
        return self.command

    def end(self) -> str:
        return self.command
