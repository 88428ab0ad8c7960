# SPDX-License-Identifier: GPL-2.0-or-later
"""Is the gate's verdict right? `vsprof compare --fail-on` is asked of a switch that was slowed down on purpose, and of one that was not.

Campaigns of one experiment follow each other in the lab. Each with the switch as it is must hold against the one before; each with a switch
that copies every frame once more (extra_copy.h) must fail against the one before it. Any other verdict is a wrong one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vsprof.analysis.gate import FAILS, HOLDS, STATUS
from vsprof.bench import messages, table
from vsprof.switches.vhost_switch import MINE
from vsprof.terms import errors
from vsprof.testbeds.emulator import image
from vsprof.testbeds.emulator.tree import run

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
EXTRA_COPY = HERE / "extra_copy.h"
IN_TREE = """
set -e
mount --bind "$1" "$2/mnt"
# A tree that came as one file has no devices.
[ -e "$2/dev/null" ] || : > "$2/dev/null"
mount --bind /dev/null "$2/dev/null"
exec chroot "$2" make -s -C /mnt build/vhost-switch EXTRA="-include /mnt/$3"
"""
"""In namespaces of its own, by the compiler and the libraries of the image's tree. $1: the sources; $2: the tree; $3: what to include."""
RULE = "throughput<0.95"
ROUNDS = 10
SLOWED, REPEAT = "slowed", "repeat"
RIGHT = {SLOWED: FAILS, REPEAT: HOLDS}
"""What must come out."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Verdict:
    """What the gate said of one campaign against the one before."""

    number: int
    kind: str
    outcome: str
    ratio: float
    low: float | None
    high: float | None
    """None: there is no interval."""

    @property
    def right(self) -> bool:
        return self.outcome == RIGHT[self.kind]

    def __str__(self) -> str:
        interval = "no interval" if self.low is None or self.high is None else f"[{self.low:.3f}, {self.high:.3f}]"
        told = f"{self.kind} {self.number}: {self.outcome}, ratio {self.ratio:.3f} {interval}"
        return told if self.right else f"{told}: WRONG"


def compile_slowed(tree: Path, folder: Path) -> Path:
    """vhost-switch with an extra copy, compiled in ``folder`` for the image that ``tree`` is of. Raises ``VsprofError``."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in [*(PROJECT / "dataplane").glob("*.[ch]"), PROJECT / "dataplane" / "Makefile", EXTRA_COPY]:
        shutil.copy2(path, folder)
    run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", IN_TREE, "sh", str(folder), str(tree), EXTRA_COPY.name])
    return folder / "build" / "vhost-switch"


class Campaigns:
    """Campaigns in a folder of their own, which is emptied at first."""

    def __init__(self, results: Path, experiment: Path, slowed: Path) -> None:
        self._results, self._experiment, self._slowed = results, experiment, slowed
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)

    def run(self, name: str, slowed: bool) -> str:
        """Run one, and call it so. Raises ``RunFailed`` where it fails."""
        environment = {MINE: str(self._slowed)} if slowed else {}
        done = self._vsprof(["run", str(self._experiment), "--testbed", "lab", "--no-report", "--quiet"], environment)
        if done.returncode != 0:
            raise messages.campaign_failed(name, done.returncode, done.stderr)
        newest = self._results / "latest"
        newest.resolve().rename(self._results / name)
        newest.unlink()
        return name

    def judge(self, number: int, kind: str, before: str, after: str) -> Verdict:
        """Raises ``RunFailed`` where the gate gives no verdict."""
        done = self._vsprof(["compare", before, after, "--fail-on", RULE, "--json"], {})
        try:
            [rule] = json.loads(done.stdout)["gate"]["rules"]
            return Verdict(number, kind, _outcome(done.returncode), rule["ratio"], rule["low"], rule["high"])
        except (ValueError, KeyError) as error:
            raise messages.campaign_failed(f"compare {before} {after}", done.returncode, done.stderr) from error

    def _vsprof(self, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        known = {name: value for name, value in os.environ.items() if name != MINE}
        return subprocess.run(
            [sys.executable, "-m", "vsprof.runner.entry", *words], cwd=PROJECT, capture_output=True, text=True, check=False,
            env={**known, "VSPROF_RESULTS": str(self._results), **environment}, stdin=subprocess.DEVNULL,
        )  # fmt: skip


def _outcome(status: int) -> str:
    """By the exit status, which is what a build goes by. Raises ``ValueError`` where it is none of a verdict."""
    known = {number: outcome for outcome, number in STATUS.items()}
    if status not in known:
        raise ValueError(f"exit status {status}")
    return known[status]


def judged(campaigns: Campaigns, rounds: int, say: Say) -> list[Verdict]:
    """Two verdicts a round. Raises ``RunFailed``."""
    found = []
    before = campaigns.run("0", slowed=False)
    for number in range(1, rounds + 1):
        for kind, name in ((SLOWED, f"{number}-{SLOWED}"), (REPEAT, str(number))):
            after = campaigns.run(name, slowed=kind == SLOWED)
            found.append(campaigns.judge(number, kind, before, after))
            say(str(found[-1]))
        before = after
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.gate", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args(arguments)
    try:
        lab = image.get(_say)
        _say("compiling vhost-switch with an extra copy")
        slowed = compile_slowed(lab.tree, table.FOLDER / "gate" / "slowed")
        found = judged(Campaigns(table.FOLDER / "gate" / "results", HERE / "gate.yaml", slowed), asked.rounds, _say)
    except errors.VsprofError as error:
        print(f"bench-gate: {error}", file=sys.stderr)
        return error.exit_status
    wrong = [one for one in found if not one.right]
    record = table.FOLDER / "bench-gate.json"
    record.write_text(json.dumps({"rule": RULE, "verdicts": [asdict(one) for one in found], "wrong": len(wrong)}, indent=1) + "\n")
    print(f"bench-gate: {len(found)} verdicts, {len(wrong)} wrong; {record}")
    return 1 if wrong else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
