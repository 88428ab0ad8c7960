# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep on a real Slurm cluster while its jobs are killed, a node is drained, and its controller crashes.

What the jobs do is a stand-in for `vsprof job`: it takes two seconds, and notes when it began and ended.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from slurm import Slurm, lacking

NODES = [int(word) for word in os.environ.get("VSPROF_SLURM_NODES", "2").split()]
RUNS = 10
JOB = """
import json, os, pathlib, sys, time
_, folder, run_id = sys.argv[1:]
jobs = pathlib.Path(folder, "jobs")
def note(what):
    with (jobs / "order").open("a") as order:
        order.write(f"{what} {run_id} {os.environ['SLURMD_NODENAME']}\\n")
note("begin")
time.sleep(2)
manifest = json.loads(pathlib.Path(folder, "manifest.json").read_text())
record = next(run for run in manifest["runs"] if run["run_id"] == run_id)
(jobs / f"{run_id}.json").write_text(json.dumps({"runs": [{**record, "status": "done"}], "facts": {}, "findings": [], "vocabulary": {}}))
note("end")
"""
DRIVER = """
import os, pathlib, signal, sys
from vsprof.runner import forgotten, sweep
from vsprof.runner.progress import Progress
from vsprof.runner.results import Results
def end(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGTERM, end)
folder, job, *options = sys.argv[1:]
sweep.VSPROF = [sys.executable, job]
Results.join = lambda self: None
forgotten.EVERY_S = 1
forgotten.PATIENCE_S = float(os.environ.get("PATIENCE_S", forgotten.PATIENCE_S))
store = Results.open(pathlib.Path(folder))
sweep.run(store, Progress(quiet=True), "slurm", 20, options)
print(store.manifest["status"])
"""
OPTIONS = ("--slurm-no-account", "--slurm-init-seconds-before-status-checks", "2", "--slurm-status-command", "squeue")
"""This cluster keeps no accounts."""


@pytest.fixture(params=NODES, ids=lambda nodes: f"{nodes}-nodes")
def cluster(request):
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.skip("Snakemake and its executor for Slurm are not installed: `make sweep-ready`")
    if why := lacking():
        pytest.skip(f"no Slurm here: {why}")
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder, Slurm(Path(folder), request.param) as made:
        yield made


class Swept:
    """A result of so many runs, and the sweep that does them."""

    def __init__(self, cluster: Slurm, folder: Path, runs: int = RUNS) -> None:
        self.cluster, self.folder = cluster, folder / "result"
        self.jobs = self.folder / "jobs"
        self.jobs.mkdir(parents=True)
        self.runs = [f"r{number:03d}" for number in range(1, runs + 1)]
        runs = [{"run_id": run_id, "repetition": 1 + place % 2, "status": "planned"} for place, run_id in enumerate(self.runs)]
        whole = {
            "name": "made-up",
            "testbed": "lab",
            "experiment": {},
            "runs": runs,
            "facts": {},
            "findings": [],
            "vocabulary": {},
            "status": "partial",
        }
        (self.folder / "manifest.json").write_text(json.dumps(whole))
        (folder / "job.py").write_text(JOB)
        (folder / "driver.py").write_text(DRIVER)
        self._words = [sys.executable, str(folder / "driver.py"), str(self.folder), str(folder / "job.py"), *OPTIONS]

    def start(self, *settings: str) -> subprocess.Popen[str]:
        """``settings``: of the environment, such as "NAME=value"."""
        # The namespace is another, the working directory and so the code the same.
        words = [*self.cluster.enter(), *settings, *self._words]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return self._process

    def ends(self, process: subprocess.Popen[str]) -> str:
        printed = self.printed(process)
        assert process.returncode == 0, f"{printed}\n{(self.jobs / 'snakemake.log').read_text()[-3000:]}"
        return printed.split()[-1]

    def printed(self, process: subprocess.Popen[str]) -> str:
        """All of it, when it has ended; bounded by a time in which no job began or ended and Snakemake said nothing."""
        until, before = 0.0, None
        while process.poll() is None:
            if before != (before := [path.read_text() for path in (self.jobs / "order", self.jobs / "snakemake.log") if path.exists()]):
                until = time.monotonic() + 180
            assert time.monotonic() < until, before
            time.sleep(0.2)
        return process.communicate()[0]

    def noted(self, what: str) -> list[str]:
        order = self.jobs / "order"
        lines = order.read_text().splitlines() if order.exists() else []
        return sorted(line.split()[1] for line in lines if line.startswith(what))

    def submitted(self) -> list[str]:
        """What Snakemake says of each job that Slurm has taken."""
        log = self.jobs / "snakemake.log"
        return [line for line in log.read_text().splitlines() if "submitted with SLURM jobid" in line] if log.exists() else []

    def wait(self, number: int, seen) -> None:
        """Until ``seen()`` is of ``number`` things; bounded by a time without any more."""
        until, before = time.monotonic() + 120, 0
        while (now := len(seen())) < number:
            assert self._process.poll() is None, self._process.communicate()[0]
            if now > before:
                until, before = time.monotonic() + 120, now
            assert time.monotonic() < until, f"{now} of {number}"
            time.sleep(0.1)


def test_nothing_is_lost_and_nothing_done_twice(cluster, tmp_path):
    swept = Swept(cluster, tmp_path)
    first = swept.start()
    swept.wait(1, lambda: swept.noted("begin"))
    killed = cluster.jobs("RUNNING")[0]
    assert cluster.run("scancel", killed).returncode == 0
    swept.wait(2, lambda: swept.noted("end"))
    # A controller that crashes knows what it has saved, and no later jobs.
    swept.wait(RUNS, swept.submitted)
    cluster.saved()
    cluster.restart_controller()
    drained = cluster.nodes[-1] if len(cluster.nodes) > 1 else None
    if drained:
        assert cluster.run("scontrol", "update", f"nodename={drained}", "state=drain", "reason=test").returncode == 0
    # The killed job's run is missing, and all others are there.
    assert swept.ends(first) == "partial"
    assert len(swept.noted("end")) == RUNS - 1
    again = swept.start()
    assert swept.ends(again) == "complete"
    assert swept.noted("end") == swept.runs
    lines = (swept.jobs / "order").read_text().splitlines()
    if drained:
        assert lines[-1].split()[2] != drained


def test_a_sweep_that_is_interrupted_leaves_no_job_and_goes_on(cluster, tmp_path):
    swept = Swept(cluster, tmp_path)
    first = swept.start()
    swept.wait(1, lambda: swept.noted("end"))
    first.terminate()
    first.communicate(timeout=120)
    until = time.monotonic() + 60
    while cluster.jobs("RUNNING,PENDING,COMPLETING"):
        assert time.monotonic() < until, cluster.run("squeue").stdout
        time.sleep(0.2)
    assert swept.ends(swept.start()) == "complete"
    assert sorted(set(swept.noted("end"))) == swept.runs


def test_jobs_that_a_controller_forgets_are_not_waited_for(cluster, tmp_path):
    swept = Swept(cluster, tmp_path, runs=4)
    first = swept.start("PATIENCE_S=30")
    swept.wait(4, swept.submitted)
    swept.wait(1, lambda: swept.noted("end"))
    cluster.restart_controller(forgets=True)
    printed = swept.printed(first)
    assert "a controller that crashed has forgotten" in printed, printed
    assert "vsprof sweep --resume result" in printed
    assert swept.ends(swept.start()) == "complete"
    assert sorted(set(swept.noted("end"))) == swept.runs
