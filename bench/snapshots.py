# SPDX-License-Identifier: GPL-2.0-or-later
"""Is every lab that boots sound? Boot it many times, check each as a run would, and keep none.

What makes one unsound is rare, so this says how rare, and keeps the local APICs of those that are. Beside a program that takes this
machine's CPUs (``nice make bench-snapshots``) boots are slower, and more timers are late.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from vsprof.analysis import stats
from vsprof.bench import table
from vsprof.bench.compared import sample
from vsprof.terms import errors
from vsprof.testbeds.emulator import cache, image, snapshot
from vsprof.testbeds.emulator.machine import Shape
from vsprof.testbeds.lab import CPUS

TARGET = "bench-snapshots"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.snapshots", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30, help="how often the lab is booted")
    parser.add_argument("--cpus", type=int, choices=CPUS, default=4, help="its CPUs")
    given = parser.parse_args(arguments)
    if given.count < 1:
        parser.error(f"--count {given.count}: boot it once at least")
    made = image.get(print)
    seconds, unsound = [], []
    for number in range(1, given.count + 1):
        start = time.monotonic()
        if error := boot(made, Shape(given.cpus, 1, "tcg")):
            unsound.append({"boot": number, "why": str(error), "registers": list(error.registers)})
        seconds.append(time.monotonic() - start)
        print(f"{number} of {given.count}: {error or 'sound'} ({seconds[-1]:.0f} s)", flush=True)
    table.report(TARGET, summary(seconds, len(unsound)))
    (table.FOLDER / f"{TARGET}-unsound.json").write_text(json.dumps(unsound, indent=1) + "\n")
    return 1 if unsound else 0


def boot(made: image.Image, shape: Shape) -> errors.LabUnsound | None:
    """What was wrong with a lab that was booted, checked and saved; None for a sound one."""
    cache.root().mkdir(parents=True, exist_ok=True)
    # Beside the others: a snapshot is larger than many a /tmp.
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix="bench-") as scratch:
        try:
            snapshot.boot_and_save(made, shape, Path(scratch))
        except errors.LabUnsound as error:
            return error
    return None


def summary(seconds: Sequence[float], unsound: int) -> dict[str, tuple[stats.Estimate, str]]:
    """The rows of the table, from how long each boot took [s], and how many labs were unsound."""
    return {
        "snapshot_seconds": (stats.estimate(sample(seconds)), "s"),
        "snapshots_unsound_share": (stats.Estimate(unsound / len(seconds), None, None, len(seconds)), "fraction"),
    }


if __name__ == "__main__":
    raise SystemExit(main())
