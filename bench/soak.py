# SPDX-License-Identifier: GPL-2.0-or-later
"""Is anything lost, or left behind, when something is killed? Rounds of a small campaign that is hurt at a random moment.

A round begins a campaign, does one harm at a random moment, and resumes until the campaign is complete. Then: each run that was done at the
moment of the harm must be there as it was; all runs must have their numbers; and of what a campaign makes on the host (processes, mounts,
interfaces, cgroups, hugepages, folders) nothing may be left. Everything random comes from one seed, so a round can be done again.
"""

import argparse
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vsprof.bench import messages
from vsprof.terms import errors, files, schema
from vsprof.testbeds.native import FOLDERS, HUGEPAGES

PROJECT = Path(__file__).resolve().parents[1]
RECORDS = PROJECT / "build" / "soak"
TESTBEDS = ("native", "lab")
RESUMES = 3
"""The most that a campaign may need to be completed after one harm: a run in the lab that fails is repeated by itself, too."""
PATIENCE_S = {"native": 300, "lab": 1200}
"""For one command: longer than any took, to tell a hang."""
RESULTS_MIB = 64
SETTLE_S = 10
"""In which what ends must be gone."""
DAY_S = 86400
ADJ_SETOFFSET = 0x0100
"""Of adjtimex(2): add to the clock what tv holds."""


@dataclass
class Round:
    """What was done in a round, and what came of it."""

    number: int
    testbed: str
    harm: str
    after_s: float
    hurt: str = ""
    """Who it was, or that the campaign had ended before."""
    done_before: int = 0
    resumes: int = 0
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def fine(self) -> bool:
        return not (self.lost or self.left or self.wrong)


@dataclass
class Place:
    """Where one round happens: a temporary folder by whose name all its processes are known, and a small disk for results."""

    temporary: Path
    results: Path
    testbed: str

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "TMPDIR": str(self.temporary), "VSPROF_RESULTS": str(self.results)}
        return subprocess.Popen(
            [sys.executable, "-m", "vsprof.runner.cli", "run", *arguments], cwd=PROJECT, env=environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def campaign(self, *arguments: str) -> list[str]:
        experiment = Path(__file__).with_name(f"soak-{self.testbed}.yaml")
        return [str(experiment), "--testbed", self.testbed, "--no-report", *arguments]

    def manifest(self) -> dict | None:
        found = next(self.results.glob("[0-9]*/manifest.json"), None)
        return json.loads(found.read_text()) if found else None

    def folder(self) -> Path:
        return next(self.results.glob("[0-9]*/manifest.json")).parent


def ours(place: Place, runner: int | None = None) -> dict[int, str]:
    """Processes that belong to the round, by id: the runner's descendants, those that name its temporary folder, those in its cgroups."""
    parents, words = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError, ValueError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    found = {pid for pid, said in words.items() if str(place.temporary) in said}
    found |= {pid for pid in parents if runner is not None and runner in _line(parents, pid)}
    for procs in Path("/sys/fs/cgroup").glob("vsprof-native-*/cgroup.procs"):
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in procs.read_text().split()}
    return {pid: words.get(pid, "") for pid in found if pid != os.getpid() and words.get(pid)}


def _line(parents: dict[int, int], pid: int) -> list[int]:
    """A process's ancestors."""
    line = []
    while pid in parents and parents[pid] not in line:
        pid = parents[pid]
        line.append(pid)
    return line


def _kill(pids: dict[int, str], number: int = signal.SIGKILL) -> str:
    """End one of these that still is there; who it was."""
    for pid, words in pids.items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return words[:80]
    return ""


# --- harms: each takes the place and the runner, and tells whom it hurt --------------------------------------------


def kill_runner(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    runner.kill()
    return "the runner"


def end_runner(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    runner.terminate()
    return "the runner"


def close_terminal(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    runner.send_signal(signal.SIGHUP)
    return "the runner"


def kill_keeper(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    for keeper in FOLDERS.glob("t*/keeper"):
        with contextlib.suppress(OSError, ValueError):
            return _kill({int(keeper.read_text()): "the keeper of the namespaces"})
    return ""


def kill_any(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    """A switch, an endpoint, the emulator, an ssh: any process that is not the runner."""
    others = {pid: words for pid, words in ours(place, runner.pid).items() if pid != runner.pid}
    return _kill({pid: others[pid] for pid in chance.sample(sorted(others), len(others))})


def kill_emulator(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    return _kill({pid: words for pid, words in ours(place, runner.pid).items() if "qemu-system" in words})


def cut_connection(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    return _kill({pid: words for pid, words in ours(place, runner.pid).items() if words.startswith("ssh") and "-M" in words})


def fill_disk(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    """The disk that has the results; there is room again when the campaign has ended."""
    with contextlib.suppress(OSError), (place.results / "ballast").open("wb") as ballast:
        while True:
            ballast.write(bytes(1 << 16))
            ballast.flush()
    return "the disk"


def set_clock(place: Place, runner: subprocess.Popen[str], chance: random.Random) -> str:
    """A day forward or back, until the campaign has ended: everything else on the machine sees it, too."""
    by = chance.choice((-DAY_S, DAY_S))
    if not shift_clock(by):
        return ""
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            runner.wait(PATIENCE_S[place.testbed])
    finally:
        shift_clock(-by)
    return "the clock"


class _Timex(ctypes.Structure):
    """The kernel's struct timex (adjtimex(2)), of 64 bits; what is not used here has no name."""

    _fields_ = (("modes", ctypes.c_uint), ("unused", ctypes.c_long * 8), ("tv_sec", ctypes.c_long), ("tv_usec", ctypes.c_long),
                ("rest", ctypes.c_long * 40))  # fmt: skip


def shift_clock(seconds: int) -> bool:
    """Move the machine's clock by an exact amount, so that it can be moved back. False where we may not."""
    moved = _Timex(modes=ADJ_SETOFFSET, tv_sec=seconds)
    return ctypes.CDLL(None).adjtimex(ctypes.byref(moved)) >= 0


Harm = Callable[[Place, subprocess.Popen[str], random.Random], str]
HARMS: dict[str, tuple[Harm, ...]] = {
    "native": (kill_runner, kill_runner, end_runner, close_terminal, kill_keeper, kill_any, kill_any, fill_disk),
    "lab": (kill_runner, kill_runner, end_runner, close_terminal, kill_emulator, kill_any, cut_connection, fill_disk),
}


# --- what is looked at ----------------------------------------------------------------------------------------------


def host_state() -> dict[str, object]:
    """What of the host a campaign could leave changed."""
    return {
        "hugepages": HUGEPAGES.read_text() if HUGEPAGES.exists() else "",
        "interfaces": sorted(os.listdir("/sys/class/net")),
        "mounts": sorted(Path("/proc/self/mounts").read_text().splitlines()),
        "folders": sorted(os.listdir(FOLDERS)) if FOLDERS.exists() else [],
        "cgroups": sorted(path.name for path in Path("/sys/fs/cgroup").glob("vsprof-*")),
        "network namespaces": sorted(os.listdir("/run/netns")) if Path("/run/netns").exists() else [],
    }


def left_behind(place: Place, before: dict[str, object]) -> list[str]:
    """What is there that was not there before; what ends is given a moment."""
    end = time.monotonic() + SETTLE_S
    while True:
        after = host_state()
        found = [f"{name}: {after[name]} instead of {before[name]}" for name in before if after[name] != before[name]]
        found += [f"process {pid}: {words[:120]}" for pid, words in ours(place).items()]
        found += [f"folder {path}" for path in place.temporary.iterdir()]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.2)


def kept(place: Place) -> dict[str, str]:
    """Of each run that is done: the checksum of its numbers, as the manifest has it."""
    manifest = place.manifest() or {"runs": []}
    return {run["run_id"]: run["kept"]["measurements.parquet"]["blake2b"] for run in manifest["runs"] if run["status"] == "done"}


def lost(place: Place, before: dict[str, str]) -> list[str]:
    """Runs that were done before, and are not there as they were."""
    missing = []
    for run_id, checksum in before.items():
        path = place.folder() / "raw" / run_id / "measurements.parquet"
        if not path.exists() or files.checksum(path) != checksum:
            missing.append(run_id)
    return missing


def wrong(place: Place) -> list[str]:
    """What is not as it must be in a complete result."""
    manifest = place.manifest()
    if manifest is None:
        return ["there is no result"]
    found = [f"{run['run_id']} is {run['status']}: {run['error']}" for run in manifest["runs"] if run["status"] != "done"]
    if manifest["status"] != "complete":
        found.append(f"the result is {manifest['status']}")
    rows = schema.read(place.folder() / "measurements.parquet").group_by("run_id").aggregate([("value", "count")]).to_pylist()
    counted = {row["run_id"]: row["value_count"] for row in rows}
    found += [f"no numbers of {run['run_id']} were joined" for run in manifest["runs"] if not counted.get(run["run_id"])]
    return found


# --- rounds -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def placed(testbed: str) -> Iterator[Place]:
    """Raises ``VsprofError`` where there can be no small disk: that takes root."""
    temporary = Path(tempfile.mkdtemp(prefix="soak-"))
    results = temporary.with_name(f"{temporary.name}-results")
    results.mkdir()
    size = ["mount", "-t", "tmpfs", "-o", f"size={RESULTS_MIB}m", "soak", str(results)]
    if subprocess.run(size, capture_output=True, check=False).returncode != 0:
        results.rmdir()
        temporary.rmdir()
        raise messages.no_tmpfs()
    try:
        yield Place(temporary, results, testbed)
    finally:
        subprocess.run(["umount", "--lazy", str(results)], check=False)
        results.rmdir()
        shutil.rmtree(temporary, ignore_errors=True)


def ended(process: subprocess.Popen[str], testbed: str) -> tuple[int, str]:
    """Its status and its last words. Raises ``VsprofError`` where it hangs."""
    try:
        _, words = process.communicate(timeout=PATIENCE_S[testbed])
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise messages.no_end(PATIENCE_S[testbed]) from None
    return process.returncode, words.strip()[-400:]


def harmed(place: Place, one: Round, harm: Harm, chance: random.Random, seed: int) -> None:
    runner = place.start(*place.campaign("--seed", str(seed)))
    with contextlib.suppress(subprocess.TimeoutExpired):
        runner.wait(one.after_s)
    one.hurt = "nobody: the campaign had ended" if runner.poll() is not None else harm(place, runner, chance) or "nobody: none was there"
    status, words = ended(runner, place.testbed)
    if "Traceback" in words:
        one.wrong.append(f"the runner ended with status {status}: {words}")
    (place.results / "ballast").unlink(missing_ok=True)


def completed(place: Place, one: Round, seed: int) -> None:
    """Resume until it is complete, or begin where nothing was written yet."""
    for one.resumes in range(1, RESUMES + 1):
        manifest = place.manifest()
        again = ["--resume", str(place.folder()), "--no-report"] if manifest else place.campaign("--seed", str(seed))
        status, words = ended(place.start(*again), place.testbed)
        if "Traceback" in words:
            one.wrong.append(f"the resume ended with status {status}: {words}")
        if status == 0:
            return
        last = f"status {status}: {words}"
    one.wrong.append(f"not complete after {RESUMES} resumes; the last: {last}")


def play(one: Round, harm: Harm, seed: int) -> Round:
    chance, began = random.Random(seed), time.monotonic()
    try:
        with placed(one.testbed) as place:
            before = host_state()
            harmed(place, one, harm, chance, seed)
            done = kept(place)
            one.done_before = len(done)
            completed(place, one, seed)
            one.lost, one.left = lost(place, done), left_behind(place, before)
            one.wrong += wrong(place)
    except errors.VsprofError as error:
        one.wrong.append(str(error))
    one.seconds = round(time.monotonic() - began, 1)
    return one


def undisturbed(testbed: str) -> float:
    """How long the campaign takes [s]; it also builds what is missing. Raises ``VsprofError`` where it fails."""
    with placed(testbed) as place:
        began = time.monotonic()
        status, words = ended(place.start(*place.campaign()), testbed)
        if status != 0:
            raise messages.fails_by_itself(status, words)
        return time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--testbed", choices=TESTBEDS, default="native")
    parser.add_argument("--rounds", type=int, default=70)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--first", type=int, default=1, help="the first round's number: to do one again, with its seed and --rounds 1")
    parser.add_argument("--set-clock", action="store_true", help="in each round the machine's clock is moved by a day, and back at the end")
    asked = parser.parse_args(arguments)
    try:
        takes = undisturbed(asked.testbed)
    except errors.VsprofError as error:
        print(f"soak: {error}", file=sys.stderr)
        return error.exit_status
    print(f"soak: {asked.testbed}, seed {asked.seed}, a campaign takes {takes:.0f} s", flush=True)
    rounds = []
    for number in range(asked.first, asked.first + asked.rounds):
        chance = random.Random(f"{asked.seed} {number}")
        harm = set_clock if asked.set_clock else chance.choice(HARMS[asked.testbed])
        one = Round(number, asked.testbed, harm.__name__, round(chance.uniform(0, takes), 2))
        rounds.append(play(one, harm, chance.randrange(2**32)))
        said = "fine" if one.fine else f"lost {one.lost}, left {one.left}, wrong {one.wrong}"
        hurt = f"{harm.__name__} after {one.after_s} s ({one.hurt}; {one.done_before} runs were done)"
        print(f"round {number}: {hurt}: {said} ({one.seconds:.0f} s)", flush=True)
        _write(asked.testbed, asked.seed, takes, rounds)
    bad = [one.number for one in rounds if not one.fine]
    print(f"soak: {len(rounds)} rounds, {len(bad)} not fine{f': {bad}' if bad else ''}; {RECORDS / asked.testbed}.json")
    return 1 if bad else 0


def _write(testbed: str, seed: int, takes: float, rounds: Sequence[Round]) -> None:
    RECORDS.mkdir(parents=True, exist_ok=True)
    content = {"testbed": testbed, "seed": seed, "campaign_s": round(takes, 1), "rounds": [asdict(one) for one in rounds]}
    files.replace(RECORDS / f"{testbed}.json", lambda partial: partial.write_text(json.dumps(content, indent=1) + "\n"))


if __name__ == "__main__":
    sys.exit(main())
