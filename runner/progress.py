# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs now, what is left, and how long that will take: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import IO, Any, Self, cast

from rich.console import Console
from rich.status import Status

from vsprof.terms.units import duration

LOG_EVERY_S = 10.0
"""How often what CPUs do is written into a log."""


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
    """Use as a context: the live line must be gone before anything else is printed."""

    def __init__(self, console: Console | None = None, *, verbose: bool = False, quiet: bool = False) -> None:
        """``verbose``: print every step as a line, with the seconds since the run began. ``quiet``: print warnings alone."""
        self._verbose, self._quiet = verbose, quiet
        self._console = console or Console(file=cast("IO[str]", _Patient(sys.stderr)), highlight=False)
        self._status: Status | None = None
        self._began = self._run_began = time.monotonic()
        self._runs = self._done = 0
        self._run = self._step = ""
        self._looked = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._verbose and not self._quiet:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def begin(self, runs: int) -> None:
        """Start counting ``runs`` runs."""
        self._runs, self._done, self._began = runs, 0, time.monotonic()

    def start_run(self, what: str) -> None:
        self._run, self._run_began = f"run {self._done + 1} of {self._runs}: {what}", time.monotonic()
        if self._status is None:
            self._print(f"{self._run}{self._left()}")

    def end_run(self) -> None:
        self._done += 1
        self._print(f"{self._run}: {duration(time.monotonic() - self._run_began)}")

    def say(self, step: str) -> None:
        """Show what is being done at this moment."""
        self._step = step
        if self._status is not None:
            self._status.update(f"{self._run}{self._left()}\n  {step}" if self._run else step)
        elif self._verbose:
            self._print(f"{time.monotonic() - self._run_began:7.1f} s  {step}")
        elif not self._run:
            # Outside a terminal the steps of a run would be a flood; the set-up's are few and slow.
            self._print(step)

    def look(self, lines: str) -> None:
        """Show what CPUs do at this moment: below the step on a terminal; now and then in a verbose log."""
        if self._status is not None:
            below = "".join(f"\n    {line}" for line in lines.splitlines())
            self._status.update(f"{self._run}{self._left()}\n  {self._step}{below}")
        elif self._verbose and time.monotonic() - self._looked >= LOG_EVERY_S:
            self._looked = time.monotonic()
            self._print("\n".join(f"{'':12}{line}" for line in lines.splitlines()))

    def warn(self, text: str) -> None:
        self._console.print(f"warning: {text}", style="yellow", markup=False)

    def _print(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False)

    def _left(self) -> str:
        if not self._done:
            return ""
        each = (time.monotonic() - self._began) / self._done
        return f" (about {duration(each * (self._runs - self._done))} left)"
