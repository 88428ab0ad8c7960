# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign each of whose runs is a job of its own: Snakemake starts them, on this machine or on a cluster.

A job does one run, as a campaign of one would, and writes what it has to say of it into jobs/<run>.json; the run's tables are
in raw/, as always. Nobody writes the manifest meanwhile. `gather` puts it together from the jobs, as often as one likes: then
the result is as any other.
"""

import copy
import importlib.util
import json
import math
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from vsprof.runner import campaign as campaigns
from vsprof.runner import experiment as experiments
from vsprof.runner import forgotten, messages, results
from vsprof.runner.experiment import TESTBEDS
from vsprof.runner.forgotten import Watch
from vsprof.runner.progress import Progress
from vsprof.runner.results import Results
from vsprof.terms import files, locks
from vsprof.testbeds.emulator import needs
from vsprof.testbeds.remote import Remote

JOBS = "jobs"
"""The folder of a result in which its jobs write."""
LOG = "snakemake.log"
SNAKEFILE = Path(__file__).with_suffix(".smk")
EXECUTORS = ("local", "slurm")
PREFIX, RESOURCES, DEFAULTS = "--slurm-jobname-prefix", "--resources", "--default-resources"
CPUS, MEMORY_MIB = 2, 8192
"""Of a job: what the largest lab takes."""
LONGEST_MINUTES = 120
"""What a cluster is told that a job takes at most."""
LOOK_SECONDS = 1.0
VSPROF = [sys.executable, "-m", "vsprof.runner.entry"]
"""What a job is started by."""


class Job(Results):
    """A result with one of its runs alone: what is said of it is saved by itself."""

    def __init__(self, whole: Results, run_id: str) -> None:
        record = next((run for run in whole.manifest["runs"] if run["run_id"] == run_id), None)
        if record is None:
            raise messages.unknown_run(run_id, [run["run_id"] for run in whole.manifest["runs"]])
        own = {"runs": [copy.deepcopy(record)], "facts": {"switches": {}, "collectors": {}}, "findings": [], "vocabulary": {}}
        super().__init__(whole.folder, {**whole.manifest, **own})
        self.path = whole.folder / JOBS / f"{run_id}.json"

    @property
    def record_of_run(self) -> dict[str, Any]:
        [record] = self.manifest["runs"]
        return record

    def save(self) -> None:
        said = {name: self.manifest[name] for name in ("runs", "facts", "findings", "vocabulary")}
        try:
            files.replace(self.path, lambda partial: partial.write_text(json.dumps(said, indent=1, default=str) + "\n"))
        except OSError as error:
            raise messages.can_not_write(self.path, error) from error

    def join(self) -> None:
        """The whole result's tables are for `gather` to write."""


def do_job(folder: Path, run_id: str, progress: Progress) -> bool:
    """Do one run of a result, unless somebody does it now or it is done; whether it is done then. Raises ``BadInput``."""
    whole = Results.open(folder)
    job = Job(whole, run_id)
    if job.record_of_run["status"] == "done":
        # By `vsprof run --resume`, after its job had failed: to do it again would put other tables in the place of those that were kept.
        return True
    with locks.take(job.path.with_suffix(".lock"), f"the run {run_id}"):
        if _said(job.path).get("status") != "done":
            campaign = campaigns.reopened(whole)
            plan = next(plan for plan in campaign.plans(whole.manifest["seed"]) if plan.run_id == run_id)
            progress.begin([plan.case.case_id])
            progress.start_run(f"{plan.case.without(experiments.usual(campaign.cases))}, repetition {plan.repetition}")
            campaigns.do(campaign, plan, job, job.record_of_run, progress)
    return _said(job.path).get("status") == "done"


def reopen(store: Results, progress: Progress) -> None:
    """Before a sweep goes on: a finished run whose tables are damaged is not done. Raises ``BadInput`` where raw/ is not kept."""
    with store.alone():
        store.check_raw()
        damaged = campaigns.call_off_the_damaged(store, progress)
        # First what its job left: it says that the run is done, to Snakemake and to `gather`.
        for run_id in damaged:
            for ending in ("done", "json"):
                (store.folder / JOBS / f"{run_id}.{ending}").unlink(missing_ok=True)
        if damaged:
            store.save()


def gather(store: Results) -> None:
    """Put what the jobs of a result said into its manifest, and their tables together."""
    with store.alone():
        for place, run in enumerate(store.manifest["runs"]):
            path = store.folder / JOBS / f"{run['run_id']}.json"
            # One that is done may have been done again since by `vsprof run --resume`, of which its job knows nothing.
            if run["status"] == "done" or not path.exists():
                continue
            said = json.loads(path.read_text())
            [store.manifest["runs"][place]] = said["runs"]
            for facts in ("facts", "vocabulary"):
                _add(store.manifest[facts], said[facts])
            for finding in said["findings"]:
                store.find(finding["text"])
        store.join()
        store.finish("complete" if all(run["status"] == "done" for run in store.manifest["runs"]) else "partial")


def check() -> None:
    """Raise ``BadInput`` without Snakemake."""
    if importlib.util.find_spec("snakemake") is None:
        raise messages.no_snakemake()


def run(store: Results, progress: Progress, executor: str, jobs: int, options: list[str], image: Path | None = None) -> None:
    """Have all runs done that are not; gather what came of them, however that ends. ``image``: a file of the lab's image, for jobs where
    there is none. Raises ``BadInput`` without Snakemake, or while another sweep does these runs."""
    check()
    (store.folder / JOBS).mkdir(exist_ok=True)
    with store.unswept():
        _run(store, progress, executor, jobs, options, image)


def _run(store: Results, progress: Progress, executor: str, jobs: int, options: list[str], image: Path | None) -> None:
    said_before = _logs(store.folder)
    try:
        machine_of = _machine_of(store, executor)
        words = [*_words(executor, jobs, store.folder), *_sized(_limited(options, set(machine_of.values())))]
        # Under a name that the user gave, the jobs would not be found.
        watched = executor == "slurm" and not any(word.startswith(PREFIX) for word in options)
        watch = Watch(store.folder, store.folder / JOBS / LOG) if watched else None
        status = _snakemake(store, machine_of, progress, words, image, watch)
    finally:
        gather(store)
    all_done = all(run["status"] == "done" for run in store.manifest["runs"])
    if status != 0 and (all_done or _logs(store.folder) == said_before):
        raise messages.snakemake_failed(status, store.folder / JOBS / LOG)


def _logs(folder: Path) -> dict[str, int]:
    """When jobs last said something, by their logs: where none did, Snakemake began none."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / JOBS).glob("r*.log")}


def servers(testbed: str, options: Mapping[str, Any]) -> list[str]:
    """Those of an inventory that share the runs; of any other testbed, none. Raises ``BadInput``."""
    return Remote.machines(options) if testbed == Remote.name else []


def machines(store: Results, executor: str) -> list[str]:
    """Those that the runs are on, each of which does one at a time; none where each run emulates its own, or a node of a cluster is a host
    of its own."""
    if named := dict.fromkeys(run["server"] for run in store.manifest["runs"] if "server" in run):
        return [*named]
    if executor != "local":
        return []
    return TESTBEDS[store.manifest["testbed"]].machines(store.manifest.get("host_options") or {})


def default_jobs(executor: str, machines: Sequence[str]) -> int:
    """How many jobs there are at once where nobody says so: one on each of these machines; else as many as this one has CPUs and memory
    for, and on a cluster it is to decide."""
    if executor == "local":
        return len(machines) or max(1, min((os.cpu_count() or 1) // CPUS, (needs.available_memory() >> 20) // MEMORY_MIB))
    return 100


def _machine_of(store: Results, executor: str) -> dict[str, str]:
    """The resource that each run takes, which is one machine."""
    names = {name: f"machine_{number}" for number, name in enumerate(machines(store, executor))}
    # Without a server of its own, a run is on the only one.
    return {run["run_id"]: names[run.get("server", next(iter(names)))] for run in store.manifest["runs"]} if names else {}


def _words(executor: str, jobs: int, folder: Path) -> list[str]:
    if executor == "local":
        return ["--cores", str(CPUS * jobs)]
    return ["--executor", executor, "--jobs", str(jobs), PREFIX, forgotten.name(folder)]


def _limited(options: list[str], machines: Collection[str]) -> list[str]:
    """The user's options of Snakemake, and one run at a time for each machine. A second ``--resources`` would replace the first."""
    limits = [f"{name}=1" for name in sorted(machines)]
    return _merged(options, RESOURCES, "--res", limits) if limits else options


def _sized(options: list[str]) -> list[str]:
    """The same, and what a job takes; the user's own sizes come behind, and hold."""
    return _merged(options, DEFAULTS, "--default-r", [f"mem_mb={MEMORY_MIB}", f"runtime={LONGEST_MINUTES}"])


def _merged(options: list[str], option: str, shortest: str, ours: list[str]) -> list[str]:
    """``options`` with more values of one of them, before those that it has. `--res`, or `--resources=licences=5`: argparse takes what a
    long option's name begins with, too."""
    parts = [one.partition("=") for one in options]
    given = next((at for at, (name, _, _) in enumerate(parts) if name.startswith(shortest) and option.startswith(name)), None)
    if given is None:
        # Behind them: before a target it would take that for one more value.
        return [*options, option, *ours]
    own = [parts[given][2]] if parts[given][1] else []
    return [*options[:given], option, *ours, *own, *options[given + 1 :]]


def _blocks(store: Results) -> list[list[str]]:
    """The runs of each repetition, the first one's first."""
    blocks: dict[int, list[str]] = {}
    for run in store.manifest["runs"]:
        blocks.setdefault(run["repetition"], []).append(run["run_id"])
    return [blocks[repetition] for repetition in sorted(blocks)]


def _snakemake(
    store: Results, machine_of: dict[str, str], progress: Progress, words: list[str], image: Path | None, watch: Watch | None
) -> int:
    folder = store.folder
    config = {
        "blocks": _blocks(store), "machine_of": machine_of, "cpus": CPUS,
        "vsprof": shlex.join(VSPROF), "options": shlex.join(["--image", f"{image.resolve()}"]) if image else "",
    }  # fmt: skip
    (folder / JOBS / "snakemake.json").write_text(json.dumps(config, indent=1))
    command = [
        sys.executable, "-m", "snakemake", "--snakefile", str(SNAKEFILE), "--directory", str(folder),
        "--configfile", f"{JOBS}/snakemake.json", "--keep-going", "--rerun-incomplete", "--rerun-triggers", "mtime", *words,
    ]  # fmt: skip
    with (folder / JOBS / LOG).open("a") as log:
        # In a process group of its own, with the jobs that run here: each gets one Ctrl-C, and ends in order. A shell's background
        # job ignores Ctrl-C, and so would its children: vsprof would wait for them for ever.
        made = subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, process_group=0,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        try:
            return _wait(made, folder, len(store.manifest["runs"]), progress, watch)
        except BaseException:
            os.killpg(made.pid, signal.SIGINT)
            made.wait()
            raise


def _wait(made: subprocess.Popen[bytes], folder: Path, runs: int, progress: Progress, watch: Watch | None) -> int:
    told, began, before = None, time.monotonic(), None
    while made.poll() is None:
        if told != (told := len(list((folder / JOBS).glob("*.done")))):
            before = told if before is None else before
            left = (time.monotonic() - began) / (told - before) * (runs - told) if told > before else None
            progress.say(messages.sweep_goes_on(told, runs, left, folder / JOBS))
        if watch and watch.gave_up():
            raise messages.jobs_forgotten(folder)
        time.sleep(LOOK_SECONDS)
    return made.returncode


def predicted(name: str, testbed: str, runs: int, at_once: int, root: Path = results.ROOT) -> float | None:
    """Seconds that so many runs of an experiment will take, by what runs took in its earlier results on this testbed; None where there is
    none."""
    took = []
    for path in root.glob(f"*/{results.MANIFEST}"):
        if path.parent.name == results.LATEST:
            continue
        try:
            manifest = json.loads(path.read_text())
            same = (manifest["name"], manifest["testbed"]) == (name, testbed)
            took += [run["seconds"] for run in manifest["runs"] if same and run.get("seconds") and run["status"] == "done"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return statistics.median(took) * math.ceil(runs / at_once) if took else None


def _said(path: Path) -> Mapping[str, Any]:
    """The record of a run by its job's file; empty where there is none yet."""
    try:
        [record] = json.loads(path.read_text())["runs"]
    except (OSError, ValueError, KeyError):
        return {}
    return record


def _add(to: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Values by name, those below names of their own name by name."""
    for name, value in more.items():
        if isinstance(value, dict) and isinstance(to.get(name), dict):
            _add(to[name], value)
        else:
            to[name] = value
