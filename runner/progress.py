# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs now, what is left, and how long that will take: drawn in place on a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import IO, Any, Self, cast

from rich.console import Console, RenderableType
from rich.live import Live

from vsprof.runner import screen
from vsprof.runner.live import Seen
from vsprof.runner.pace import Pace
from vsprof.terms.units import duration

LOG_EVERY_S = 10.0
"""How often what CPUs do is written into a verbose log."""
DRAWN_PER_SECOND = 2
"""Seldom enough to cost a real host's housekeeping CPU nothing."""


class _Patient:
    """A stream that takes no offence at a terminal that is gone: what is measured goes on, or ends in order, and tells nobody."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Progress:
    """Use as a context: what is drawn must be gone, and the cursor back, before anything else is printed."""

    def __init__(self, console: Console | None = None, *, verbose: bool = False, quiet: bool = False) -> None:
        """``verbose``: print every step as a line, with the seconds since the run began. ``quiet``: print what failed alone."""
        self._verbose, self._quiet = verbose, quiet
        self._console = console or Console(file=cast("IO[str]", _Patient(sys.stderr)), highlight=False)
        self._live: Live | None = None
        self._began = self._run_began = time.monotonic()
        self._pace = Pace([], {})
        self._run = self._step = ""
        self._runs = 1
        self._seen: Seen | None = None
        self._looked = 0.0

    def __enter__(self) -> Self:
        # A dumb terminal can't move its cursor: nothing would be drawn, and nothing said.
        if self._console.is_terminal and not self._console.is_dumb_terminal and not self._verbose and not self._quiet:
            self._live = Live(console=self._console, get_renderable=self._drawn, refresh_per_second=DRAWN_PER_SECOND, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def begin(self, cases: Sequence[str], took: Mapping[str, Sequence[float]] | None = None) -> None:
        """Start counting runs, one of each of ``cases``. ``took``: seconds of runs that are done already, by case."""
        self._pace = Pace(cases, took or {})

    def start_run(self, what: str, runs: int = 1) -> None:
        """``runs``: so many at once."""
        first = self._pace.done + 1
        which = f"run {first}" if runs == 1 else f"runs {first} to {first + runs - 1}"
        self._run, self._run_began, self._runs = f"{which} of {self._pace.runs}: {what}", time.monotonic(), runs
        left = self._left() if self._live is None else ""
        self._print(f"{self._run}{left and f' ({left})'}")

    def end_run(self, *, failed: int = 0, runs: int = 1) -> None:
        """``failed``: how many of them."""
        took = time.monotonic() - self._run_began
        for _ in range(runs):
            self._pace.end_run(took / runs)
        how = "" if not failed else "failed after " if runs == 1 else f"{failed} failed, after "
        self._print(f"{self._run}: {how}{duration(took)}")
        self._run, self._seen = "", None

    def say(self, step: str) -> None:
        """Show what is being done at this moment."""
        self._step = step
        if self._live is not None:
            self._live.refresh()
        elif self._verbose:
            self._print(f"{time.monotonic() - self._run_began:7.1f} s  {step}")
        elif not self._run:
            # Outside a terminal the steps of a run would be a flood; the set-up's are few and slow.
            self._print(step)

    def of(self, run: str) -> tuple[Callable[[str], None], Callable[[Seen], None]]:
        """``say`` and ``look`` for one of several runs that go on by turns."""
        return lambda step: self.say(f"{run}: {step}"), lambda seen: self.look(replace(seen, window=f"{run}: {seen.window}"))

    def look(self, seen: Seen) -> None:
        """Show a window: on a terminal below the step; in a log once it is over, and in a verbose one now and then before."""
        self._seen = seen
        if self._live is not None:
            # Stays above what is drawn, so that cases can be compared while the campaign goes on.
            self._print(f"  {screen.headline(seen)}") if seen.over else self._live.refresh()
        elif seen.over:
            self._print(f"{'' if not self._verbose else ' ' * 10}  {screen.one_line(seen)}")
        elif self._verbose and time.monotonic() - self._looked >= LOG_EVERY_S:
            self._looked = time.monotonic()
            self._print("\n".join(f"{'':12}{line}" for line in screen.lines(seen)))

    def warn(self, text: str) -> None:
        if not self._quiet:
            self._print(f"warning: {text}", style="yellow")

    def fail(self, text: str) -> None:
        """Say what failed, whoever wants quiet."""
        self._console.print(f"error: {text}", style="red", markup=False, soft_wrap=not self._console.is_terminal)

    def _print(self, text: str, style: str | None = None) -> None:
        if not self._quiet:
            # A log's lines are searched by line: they are not broken.
            self._console.print(text, style=style, markup=False, soft_wrap=not self._console.is_terminal)

    def _drawn(self) -> RenderableType:
        now = time.monotonic()
        times = [f"{duration(now - self._began)} since the start"]
        if self._run:
            times += [f"{duration(now - self._run_began)} in this run", self._left() or "left: known after the first run"]
        return screen.drawn([self._run, ", ".join(times), self._step], self._seen)

    def _left(self) -> str:
        left = self._pace.left(time.monotonic() - self._run_began, self._runs)
        return "" if left is None else f"about {duration(left)} left" if left >= 1 else "nearly done"
