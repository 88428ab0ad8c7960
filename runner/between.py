# SPDX-License-Identifier: GPL-2.0-or-later
"""What is seen of a host while nothing is measured on it, before and behind each window: it would disturb what it is to explain.

A look is recorded where others record what they printed at the window's ends. It has no times: it lies before the window, or behind it.
"""

from collections.abc import Mapping
from pathlib import Path

from vsprof.collectors.base import Between
from vsprof.testbeds.base import Testbed

SECONDS = 20
"""The most that a look may take."""


class Looks:
    """The looks of one traffic: of each window counts the last before it and the first behind it."""

    def __init__(self, host: Testbed, collectors: Mapping[str, Between]) -> None:
        self._host, self._collectors = host, collectors
        self._seen: dict[str, str] = {}
        self._since: list[Path] = []

    def look(self) -> None:
        """Nobody may be measured meanwhile, nor any frame be missed that comes too late. Raises ``RunFailed``."""
        for name, one in self._collectors.items():
            # One that fails costs its own numbers, and no run.
            self._seen[name] = self._host.run(one.look(), timeout=SECONDS, check=False).stdout
            for folder in self._since:
                _keep(folder, name, "end", self._seen[name])
        self._since.clear()

    def window(self, folder: Path) -> None:
        """A window was measured into ``folder`` since the last look."""
        for name, seen in self._seen.items():
            _keep(folder, name, "begin", seen)
        self._since.append(folder)


def _keep(folder: Path, name: str, end: str, seen: str) -> None:
    (folder / f"{name}.{end}").write_text(seen)
