# SPDX-License-Identifier: GPL-2.0-or-later
"""Who keeps a server for one runner, and clears it when that runner is gone: killed, or cut off by the network.

A shell on the server holds the lock, and reads a word every few seconds. Where none comes, or the connection ends, it takes away what the
runner began. So nothing of ours goes on there for more than ``SILENCE_S`` after a runner that can't say good-bye.
"""

import threading

from vsprof.testbeds.ssh import Shell

LOCK = "/run/vsprof.lock"
"""Where only root may write: in a folder for all, any user could keep root from measuring."""
BEAT_S, SILENCE_S = 10, 45
LOCK_S = 30
"""The most that the lock is waited for: whoever had it may still be cleared away."""
OVER = "over"


class Guard:
    """Raises ``RunFailed`` where somebody else keeps the server."""

    def __init__(self, shell: Shell, clear: str, lock: str = LOCK, silence_s: float = SILENCE_S, beat_s: float = BEAT_S) -> None:
        """``clear``: the shell commands that take everything away."""
        self._shell, self._beat_s = shell, beat_s
        self._end = threading.Event()
        shell.ask(f"exec 9> {lock} && flock --timeout {LOCK_S} 9", 2 * LOCK_S)
        shell.ask(f"clear() {{\n{clear}\n}}", LOCK_S)
        # The signals of a connection that breaks must not cut this short.
        shell.tell("trap '' HUP PIPE")
        shell.tell(f'while read -r -t {silence_s} word && [ "$word" != {OVER} ]; do :; done; [ "$word" = {OVER} ] || clear; exit')
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()

    def close(self) -> None:
        """Give the server back; whoever calls this has taken everything away."""
        self._end.set()
        self._beating.join()
        self._shell.tell(OVER)
        self._shell.leave()

    def _beat(self) -> None:
        while not self._end.wait(self._beat_s):
            self._shell.tell("beat")
