# SPDX-License-Identifier: GPL-2.0-or-later
"""This machine as a testbed, with no more than collectors ask for: commands by bash, and files."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vsprof.testbeds import messages as testbeds_messages
from vsprof.testbeds.base import Completed, Process, Testbed


class Local(Testbed):
    """Runs commands on this machine. ``path`` is put before PATH, so that a test can put another perf there; ``command`` before bash."""

    name = "local"

    def __init__(self, path: str = "", command: Sequence[str] = ()) -> None:
        self.environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
        self.command = list(command)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    @property
    def cpus(self) -> int:
        return os.cpu_count() or 1

    def facts(self) -> dict[str, Any]:
        return {}

    def run(self, command: str, *, timeout: float = 60, check: bool = True) -> Completed:
        try:
            ran = subprocess.run(
                [*self.command, "bash", "-c", command], capture_output=True, text=True, errors="replace", timeout=timeout,
                env=self.environment, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise testbeds_messages.command_timed_out(command, timeout) from error
        if check and ran.returncode:
            raise testbeds_messages.command_failed(command, ran.returncode, ran.stderr)
        return Completed(command, ran.returncode, ran.stdout, ran.stderr)

    def start(self, name: str, command: str, **_: Any) -> Process:
        raise NotImplementedError

    def push(self, content: str | bytes, path: str) -> None:
        Path(path).write_bytes(content if isinstance(content, bytes) else content.encode())

    def pull(self, path: str, to: Path) -> None:
        shutil.copytree(path, to / Path(path).name)

    def socket(self, path: str) -> Path:
        return Path(path)

    def files(self) -> Path:
        return Path("/")


@pytest.fixture
def local() -> type[Local]:
    return Local


@pytest.fixture
def here() -> Local:
    return Local()
