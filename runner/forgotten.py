# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that a Slurm cluster has forgotten, for which Snakemake would wait for ever.

A controller saves what it knows every few seconds. When it crashes, it forgets the jobs that were submitted since.
"""

import re
import subprocess
import time
from pathlib import Path

PATIENCE_S = 300.0
"""So long must the queue have been empty and Snakemake silent: of a job that ended, it hears within 180 s."""
EVERY_S = 20.0
"""How often the cluster is asked."""
PREFIX_LONGEST = 50
"""Of a prefix of jobs' names, by Snakemake's executor."""


def name(folder: Path) -> str:
    """By what the jobs of a result's sweep are told from others: of letters, digits, hyphens, and underscores, as the executor wants it."""
    return "vsprof-" + re.sub(r"[^A-Za-z0-9_-]", "-", folder.name)[-(PREFIX_LONGEST - len("vsprof-")) :]


class Watch:
    """``folder``: the result's; ``log``: Snakemake's."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._prefix, self._log = name(folder), log
        self._size, self._since = -1, time.monotonic()
        self._asked = self._since

    def gave_up(self) -> bool:
        """Whether the cluster has had none of the jobs for so long that Snakemake waits in vain; asks the cluster now and then."""
        now = time.monotonic()
        if now - self._asked < EVERY_S:
            return False
        self._asked = now
        size = self._log.stat().st_size
        if size != self._size or self._may_be_queued():
            self._size, self._since = size, now
        return now - self._since > PATIENCE_S

    def _may_be_queued(self) -> bool:
        words = ["squeue", "--me", "--noheader", "--format=%j"]
        try:
            told = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return True
        # A controller that does not answer may know them still.
        return told.returncode != 0 or any(line.startswith(self._prefix) for line in told.stdout.split())
