# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's JSON protocols, called one after another: the monitor (QMP) and the guest agent (QGA), over a Unix socket."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from qemu.qmp import QMPClient
from qemu.qmp.error import QMPError

from vsprof.terms import errors
from vsprof.testbeds import messages
from vsprof.testbeds.patience import Patience

GLANCE_S = 1.0
END_S = 5.0
"""Of what was cancelled."""


class Monitor:
    """A connection to a monitor, or with ``agent`` to a guest agent, which sends no greeting and negotiates nothing."""

    def __init__(self, socket: Path, *, agent: bool = False, who: str = "QEMU", patience: Callable[[float], Patience] = Patience) -> None:
        """``who`` is told of in errors. ``patience``: makes the time-outs, of their seconds."""
        self._socket, self._agent, self._who, self._patience = socket, agent, who, patience
        self._loop = asyncio.new_event_loop()
        self._client: QMPClient | None = None

    def connect(self) -> bool:
        """Try once; whether something answered."""
        client = QMPClient("vsprof")
        if self._agent:
            client.await_greeting = client.negotiate = False
        try:
            self._wait(client.connect(str(self._socket)), 10)
        except (QMPError, OSError, TimeoutError):
            # A half-made connection has tasks of its own, which must end before the loop does.
            with contextlib.suppress(Exception):
                self._wait(client.disconnect(), 5)
            return False
        self._client = client
        return True

    def execute(self, command: str, *, seconds: float = 60, goes_on: Callable[[], bool] = lambda: False, **arguments: Any) -> Any:
        """Execute one command. Raises ``RunFailed`` when it is refused, the other side is gone, or there is no answer in ``seconds``; where
        it ``goes_on`` then, it may take as long once more."""
        if self._client is None:
            raise messages.monitor_failed(self._who, command, "not connected")
        began = time.monotonic()
        try:
            return self._wait(self._client.execute(command, arguments or None), seconds, goes_on)
        except TimeoutError as error:
            raise messages.monitor_failed(self._who, command, f"no answer in {time.monotonic() - began:.0f} s") from error
        except (QMPError, OSError) as error:
            raise messages.monitor_failed(self._who, command, str(error) or type(error).__name__) from error

    def close(self) -> None:
        if self._client is not None:
            with contextlib.suppress(Exception):
                self._wait(self._client.disconnect(), 5)
            self._client = None
        if not self._loop.is_closed():
            self._loop.close()

    def _wait(self, what: Any, seconds: float, goes_on: Callable[[], bool] = lambda: False) -> Any:
        task = self._loop.create_task(_answer(what, lambda: self._patience(seconds), goes_on))
        try:
            return self._loop.run_until_complete(task)
        except KeyboardInterrupt:
            # It must end here: what is left of it would complain behind the last line that the user sees.
            task.cancel()
            self._loop.run_until_complete(asyncio.wait([task], timeout=2 * END_S))
            with contextlib.suppress(asyncio.CancelledError, KeyboardInterrupt, Exception):
                task.result()
            raise


async def _answer(what: Coroutine[Any, Any, Any], begin: Callable[[], Patience], goes_on: Callable[[], bool]) -> Any:
    """Raises ``TimeoutError``."""
    asked, patience = asyncio.ensure_future(what), begin()
    try:
        while not (await asyncio.wait([asked], timeout=max(0.0, min(GLANCE_S, patience.left()))))[0]:
            if not patience.over():
                continue
            if not goes_on():
                raise TimeoutError
            patience = begin()
        return asked.result()
    finally:
        # To its end: a connection that is being made tidies up when it is cancelled, and what is left of it would complain later.
        asked.cancel()
        await asyncio.wait([asked], timeout=END_S)
        if asked.done() and not asked.cancelled():
            asked.exception()


def agent_answers(monitor: Monitor, seconds: float) -> bool:
    """Wait until a guest agent answers. One request is enough: QEMU keeps it until the guest opens its port."""
    if not monitor.connect():
        return False
    with contextlib.suppress(errors.RunFailed):
        monitor.execute("guest-ping", seconds=seconds)
        return True
    return False
