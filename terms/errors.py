# SPDX-License-Identifier: GPL-2.0-or-later
"""The kinds of errors. Their texts stand in messages.py of the package that raises them, one function or one `Message` each: code elsewhere
raises what these return, and writes no texts of its own."""

import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any


class VsprofError(Exception):
    """Something failed; the command ends with exit status 1."""

    exit_status = 1

    def _render_traceback_(self) -> list[str]:
        """In Jupyter, which asks for this: the message alone, as on the command line."""
        return [f"{type(self).__name__}: {self}"]


class BadInput(VsprofError):
    """What the user asked for can't be done as asked; exit status 2, and nothing was written."""

    exit_status = 2


class RunFailed(VsprofError):
    """One run failed; it is recorded as failed and the campaign goes on."""


class NotOffered(RunFailed):
    """A run failed of what its case wants and its parts don't have: a second try would fail, too."""


class PluginNotLoaded(BadInput):
    """The lab's emulator does not start with a plug-in that a collector needs."""


class SnapshotUnusable(VsprofError):
    """The lab's snapshot is whole and yet does not resume."""


class LabUnsound(VsprofError):
    """The lab answers, but one of its CPUs can't do what a run needs. ``registers``: of each CPU's local APIC, where it was asked."""

    registers: Sequence[str] = ()


class _Listing(string.Formatter):
    """Of several values it makes a list, joined by commas, or by what stands behind the colon of their place."""

    def format_field(self, value: Any, format_spec: str) -> str:
        several = isinstance(value, Iterable) and not isinstance(value, str)
        return (format_spec or ", ").join(map(str, value)) if several else super().format_field(value, format_spec)


@dataclass(frozen=True)
class Message:
    """A text with places, ``{path.name}``, ``{cases:; }``, and the kind of error that it is, if it is one. Called with the values of the
    places, in the order in which they come first in the text; ``ValueError`` for any other number of them."""

    text: str
    kind: Callable[[str], Any] = str

    @property
    def places(self) -> list[str]:
        """The names of what it is called with."""
        named = (name for _, name, _, _ in _Listing().parse(self.text) if name)
        return list(dict.fromkeys(re.split(r"[.[]", name)[0] for name in named))

    def __call__(self, *values: object) -> Any:
        return self.kind(_Listing().vformat(self.text, (), dict(zip(self.places, values, strict=True))))
