# SPDX-License-Identifier: GPL-2.0-or-later
"""This side of the plug-in's control socket: a command a line, answered by lines that end with a single dot."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vsprof.collectors.uarch_model import messages
from vsprof.testbeds.patience import Patience

ANSWER_SECONDS = 40
"""Longer than the plug-in itself waits for a processor to be idle."""
REST_SECONDS = 60
"""Until a processor comes to rest."""


class Control:
    """A connection to the plug-in. Raises ``RunFailed`` when it says error, or nothing."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(ANSWER_SECONDS)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise messages.plugin_gone(str(error)) from error
        self._lines = self._socket.makefile("r", encoding="utf-8", errors="replace")

    def ask(self, command: str) -> str:
        """Send a command and return its answer."""
        answer = []
        try:
            self._socket.sendall(f"{command}\n".encode())
            while (line := self._lines.readline()) != ".\n":
                if not line:
                    raise messages.plugin_gone("it closed the connection")
                answer.append(line)
        except OSError as error:
            raise messages.plugin_gone(str(error)) from error
        text = "".join(answer)
        if text.startswith("error: "):
            raise messages.plugin_refused(command, text.removeprefix("error: ").strip())
        return text

    def ask_json(self, command: str) -> Any:
        return json.loads(self.ask(command))

    def change(self, state: str, wake: Callable[[], object], patience: Patience | None = None) -> None:
        """Go to ``state`` (off, count, model). QEMU lets go of translated code only when a processor comes to rest: ``wake`` one."""
        patience = patience or Patience(REST_SECONDS)
        for step in ("off", state) if state != "off" else ("off",):
            while self.ask(f"state {step}") == "pending\n":
                if patience.over():
                    raise messages.plugin_refused(f"state {state}", "no processor came to rest")
                wake()

    def close(self) -> None:
        self._lines.close()
        self._socket.close()
