# SPDX-License-Identifier: GPL-2.0-or-later
"""A sweep: jobs that each do one run, Snakemake that starts them, and the result that is put together. Runs themselves are made up here."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.runner import campaign as campaigns
from vsprof.runner import messages, results, sweep
from vsprof.runner.progress import Progress
from vsprof.runner.results import Results
from vsprof.terms import locks, schema
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.schema import Number

QUIET = Progress(quiet=True)


@pytest.fixture
def store(document, tmp_path):
    """A result of a campaign of which no run is done; its testbed is not asked."""
    campaign = campaigns.Campaign.check("mine", campaigns.experiments.parse(document, "mine"), "lab")
    facts = {"kernel": "6"}
    return Results.create(campaigns._manifest(campaign, 7, campaign.plans(7), facts), tmp_path)


@pytest.fixture
def made_up(monkeypatch):
    """Runs that are done at once, but for those of ``fails``, and what was asked of them."""
    asked, fails = [], set()

    def do(campaign, plan, store, record, progress):
        asked.append((plan.run_id, plan.seed))
        if plan.run_id in fails:
            record.update(status="failed", error="it did not work")
            store.find(f"run {plan.run_id} failed")
            store.save()
            return
        record["seconds"] = 12.0
        store.manifest["facts"]["switches"][plan.case.switch] = {"pid": 1}
        where = {"run_id": plan.run_id, "case_id": plan.case.case_id, **plan.case.values}
        row = schema.row(
            {**where, "repetition": plan.repetition, "traffic": "x", "window": "w1"}, "c", "software", Number("n", 1.0, "events")
        )
        store.run_folder(plan.run_id).mkdir(parents=True)
        store.record(plan.run_id, [row])

    monkeypatch.setattr(campaigns, "do", do)
    return asked, fails


def ids(store) -> list[str]:
    return [run["run_id"] for run in store.manifest["runs"]]


def test_jobs_do_each_run_once_and_make_one_result(store, made_up):
    (store.folder / sweep.JOBS).mkdir()
    asked, _ = made_up
    before = (store.folder / results.MANIFEST).read_text()
    for run_id in reversed(ids(store)):
        assert sweep.do_job(store.folder, run_id, QUIET)
    assert (store.folder / results.MANIFEST).read_text() == before
    assert sweep.do_job(store.folder, ids(store)[0], QUIET)
    assert sorted(run_id for run_id, _ in asked) == ids(store)
    sweep.gather(store)
    assert store.manifest["status"] == "complete"
    assert store.damaged() == {}
    assert set(store.manifest["facts"]["switches"]) == {"kernel-ovs", "ovs-dpdk"}
    assert store.manifest["facts"]["kernel"] == "6"
    rows = schema.read(store.folder / results.MEASUREMENTS).to_pylist()
    assert sorted(row["run_id"] for row in rows) == ids(store)


@pytest.mark.parametrize("name", results.TABLES)
def test_a_finished_run_whose_table_is_damaged_is_done_again_and_that_is_said(store, made_up, name):
    (store.folder / sweep.JOBS).mkdir()
    asked, _ = made_up
    for run_id in ids(store):
        assert sweep.do_job(store.folder, run_id, QUIET)
        (store.folder / sweep.JOBS / f"{run_id}.done").touch()
    sweep.gather(store)
    torn, *others = ids(store)
    (store.run_folder(torn) / name).write_bytes(b"PAR1")
    again = Results.open(store.folder)
    sweep.reopen(again, QUIET)
    written = json.loads((store.folder / results.MANIFEST).read_text())
    assert [run["run_id"] for run in written["runs"] if run["status"] != "done"] == [torn]
    said = f"run {torn} was done, and is repeated: {store.run_folder(torn) / name} was changed since it was written: its checksum differs"
    assert written["findings"] == [{"level": "warning", "text": said}]
    # Snakemake starts what has no such file, and the job finds nobody who says that it is done.
    assert sorted(path.stem for path in (store.folder / sweep.JOBS).glob("*.done")) == others
    sweep.gather(again)
    assert again.manifest["status"] == "partial"
    asked.clear()
    shutil.rmtree(store.run_folder(torn))
    assert all(sweep.do_job(store.folder, run_id, QUIET) for run_id in ids(store))
    assert [run_id for run_id, _ in asked] == [torn]
    sweep.gather(again)
    assert (again.manifest["status"], again.damaged()) == ("complete", {})


def test_a_run_that_was_done_without_its_job_is_not_done_again_by_it(store, made_up):
    (store.folder / sweep.JOBS).mkdir()
    asked, fails = made_up
    first = ids(store)[0]
    fails.add(first)
    assert not sweep.do_job(store.folder, first, QUIET)
    sweep.gather(store)
    fails.clear()
    with store.alone():
        campaign = campaigns.reopened(store)
        campaigns.do(campaign, campaign.plans(store.manifest["seed"])[0], store, store.manifest["runs"][0], QUIET)
    asked.clear()
    assert sweep.do_job(store.folder, first, QUIET)
    assert asked == []
    sweep.gather(store)
    assert store.damaged() == {}


def test_a_sound_result_is_reopened_as_it_is(store, made_up):
    (store.folder / sweep.JOBS).mkdir()
    for run_id in ids(store):
        sweep.do_job(store.folder, run_id, QUIET)
    sweep.gather(store)
    before = (store.folder / results.MANIFEST).read_text()
    sweep.reopen(Results.open(store.folder), QUIET)
    assert (store.folder / results.MANIFEST).read_text() == before


def test_each_run_has_a_seed_of_its_own_by_the_campaign_s(store):
    plans = campaigns.reopened(store).plans(7)
    assert len({plan.seed for plan in plans}) == len(plans)
    assert [plan.seed for plan in plans] == [plan.seed for plan in campaigns.reopened(store).plans(7)]
    assert {plan.seed for plan in plans}.isdisjoint(plan.seed for plan in campaigns.reopened(store).plans(8))


def test_a_run_that_failed_is_told_and_done_again(store, made_up):
    (store.folder / sweep.JOBS).mkdir()
    asked, fails = made_up
    first, *others = ids(store)
    fails.add(first)
    assert [sweep.do_job(store.folder, run_id, QUIET) for run_id in ids(store)] == [False, *(True for _ in others)]
    sweep.gather(store)
    assert store.manifest["status"] == "partial"
    assert store.manifest["runs"][0]["error"] == "it did not work"
    assert {"level": "warning", "text": f"run {first} failed"} in store.manifest["findings"]
    fails.clear()
    assert all(sweep.do_job(store.folder, run_id, QUIET) for run_id in ids(store))
    assert [run_id for run_id, _ in asked].count(first) == 2
    sweep.gather(store)
    assert store.manifest["status"] == "complete"


def test_a_run_that_somebody_does_now_is_left_to_him(store, made_up):
    (store.folder / sweep.JOBS).mkdir()
    first = ids(store)[0]
    with locks.take(store.folder / sweep.JOBS / f"{first}.lock", "x"), pytest.raises(BadInput, match=f"the run {first} is in use"):
        sweep.do_job(store.folder, first, QUIET)
    assert made_up[0] == []


def test_no_such_run(store):
    with pytest.raises(BadInput, match="no run 'r999' in this result: it has r001 to"):
        sweep.do_job(store.folder, "r999", QUIET)


def test_how_long_it_takes_is_known_from_earlier_results(store, tmp_path):
    assert sweep.predicted("mine", "lab", 10, 2, tmp_path) is None
    for run, seconds in zip(store.manifest["runs"], (10, 20, 60), strict=False):
        run.update(status="done", seconds=seconds)
    store.save()
    assert sweep.predicted("mine", "lab", 10, 2, tmp_path) == 100
    # The same result by its second name is no second result.
    (tmp_path / "a-later-one").mkdir()
    (tmp_path / "a-later-one" / "manifest.json").write_text(json.dumps({**store.manifest, "runs": [{"status": "done", "seconds": 90}]}))
    assert sweep.predicted("mine", "lab", 1, 1, tmp_path) == 40
    (tmp_path / "latest").symlink_to("a-later-one")
    assert sweep.predicted("mine", "lab", 1, 1, tmp_path) == 40
    shutil.rmtree(tmp_path / "a-later-one")
    # However many there may be at once, none takes less than it takes.
    assert sweep.predicted("mine", "lab", 1, 100, tmp_path) == 20
    assert sweep.predicted("other", "lab", 10, 2, tmp_path) is None


def test_what_it_costs_is_told_with_how_long_it_takes():
    assert (
        messages.sweep_predicted(10, 2, [], 1800.0, 2)
        == "10 runs, at most 2 at once: about 30 min 00 s, by earlier results (2.0 CPU hours)"
    )
    # No more at once than there are.
    assert "(0.5 CPU hours)" in messages.sweep_predicted(1, 100, [], 900.0, 2)
    assert "CPU hours" not in messages.sweep_predicted(10, 2, ["one", "two"], 1800.0, 2)
    assert "CPU hours" not in messages.sweep_predicted(10, 2, [], None, 2)


def test_what_is_left_is_told_from_the_first_run_on(tmp_path, monkeypatch):
    """Of ten runs four were done before; then one each 20 s."""
    done, now, said = tmp_path / sweep.JOBS, [0.0], []
    done.mkdir()

    def finish(seconds):
        (done / f"r{len(list(done.iterdir()))}.done").touch()
        now[0] += 20.0

    for _ in range(4):
        finish(0)
    now[0] = 0.0
    monkeypatch.setattr(sweep.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sweep.time, "sleep", finish)
    made = SimpleNamespace(poll=lambda: None if now[0] <= 40 else 0, returncode=0)
    assert sweep._wait(made, tmp_path, 10, SimpleNamespace(say=said.append), None) == 0
    logs = f"what each says: {done}/*.log"
    assert said == [
        f"4 of 10 runs done; {logs}",
        f"5 of 10 runs done, about 1 min 40 s left; {logs}",
        f"6 of 10 runs done, about 1 min 20 s left; {logs}",
    ]


def test_without_snakemake_the_next_move_is_told(store, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BadInput, match="make sweep-ready"):
        sweep.run(store, QUIET, "local", 1, [])


# --- With Snakemake itself: its jobs are a stand-in for `vsprof job` ------------------------------------------------

JOB = """
import json, pathlib, sys
_, folder, run_id = sys.argv[1:]
jobs = pathlib.Path(folder, "jobs")
with (jobs / "order").open("a") as order:
    order.write(run_id + "\\n")
if (jobs / f"fail-{run_id}").exists():
    sys.exit(1)
record = next(run for run in json.loads(pathlib.Path(folder, "manifest.json").read_text())["runs"] if run["run_id"] == run_id)
(jobs / f"{run_id}.json").write_text(json.dumps({"runs": [{**record, "status": "done"}], "facts": {}, "findings": [], "vocabulary": {}}))
"""


@pytest.fixture
def stand_in(store, tmp_path, monkeypatch):
    if importlib.util.find_spec("snakemake") is None:
        pytest.skip("Snakemake is not installed: `make sweep-ready`")
    (tmp_path / "job.py").write_text(JOB)
    monkeypatch.setattr(sweep, "VSPROF", [sys.executable, str(tmp_path / "job.py")])
    monkeypatch.setattr(Results, "join", lambda self: None)
    (store.folder / sweep.JOBS).mkdir()
    return store


def order(store) -> list[str]:
    return (store.folder / sweep.JOBS / "order").read_text().split()


def test_snakemake_does_every_run_once(stand_in):
    sweep.run(stand_in, QUIET, "local", 2, [])
    assert sorted(order(stand_in)) == ids(stand_in)
    assert stand_in.manifest["status"] == "complete"
    sweep.run(stand_in, QUIET, "local", 2, [])
    assert sorted(order(stand_in)) == ids(stand_in)


TIMED = """
import json, pathlib, sys, time
_, folder, run_id = sys.argv[1:]
jobs = pathlib.Path(folder, "jobs")
record = next(run for run in json.loads(pathlib.Path(folder, "manifest.json").read_text())["runs"] if run["run_id"] == run_id)
for what in ("begin", "end"):
    with (jobs / "order").open("a") as order:
        order.write(f"{what} {record.get('server', 'here')}\\n")
    time.sleep(0.5 if what == "begin" else 0)
(jobs / f"{run_id}.json").write_text(json.dumps({"runs": [{**record, "status": "done"}], "facts": {}, "findings": [], "vocabulary": {}}))
"""


def at_once(store) -> dict[str, int]:
    """How many runs went on at the same time at most: on each machine, and on all."""
    most: dict[str, int] = {}
    now: dict[str, int] = {}
    for line in (store.folder / sweep.JOBS / "order").read_text().splitlines():
        what, machine = line.split()
        for name in (machine, "all"):
            now[name] = now.get(name, 0) + (1 if what == "begin" else -1)
            most[name] = max(most.get(name, 0), now[name])
    return most


@pytest.mark.parametrize("options", [[], ["--latency-wait", "9", "--res=licences=5"]], ids=["plain", "own-resources"])
def test_servers_share_the_runs_and_each_has_one_at_a_time(stand_in, tmp_path, options):
    (tmp_path / "job.py").write_text(TIMED)
    for run in stand_in.manifest["runs"]:
        run["server"] = f"server{run['repetition'] % 2}"
    stand_in.save()
    assert sweep.machines(stand_in, "local") == ["server1", "server0"]
    sweep.run(stand_in, QUIET, "local", sweep.default_jobs("local", sweep.machines(stand_in, "local")), options)
    assert stand_in.manifest["status"] == "complete"
    assert at_once(stand_in) == {"server0": 1, "server1": 1, "all": 2}


@pytest.mark.parametrize("named", [["--resources", "a=5"], ["--res", "a=5"], ["--resources=a=5"], ["--resour=a=5"]])
def test_a_users_own_resources_are_added(named):
    assert sweep._limited([*named, "--quiet"], ["machine_0"]) == ["--resources", "machine_0=1", "a=5", "--quiet"]
    # Without a machine that is shared, they are the user's alone.
    assert sweep._limited(named, []) == named


def test_a_users_own_sizes_of_jobs_hold():
    ours = ["--default-resources", "mem_mb=8192", "runtime=120"]
    assert sweep._sized(["--quiet", "jobs/r001.done"]) == ["--quiet", "jobs/r001.done", *ours]
    # Of two values Snakemake takes the later one.
    assert sweep._sized(["--default-resources", "runtime=240", "slurm_account=x"]) == [*ours, "runtime=240", "slurm_account=x"]
    assert sweep._sized(["--default-res=runtime=240"]) == [*ours, "runtime=240"]


def test_this_host_has_one_run_at_a_time_however_many_cpus_it_has(stand_in, tmp_path):
    (tmp_path / "job.py").write_text(TIMED)
    stand_in.manifest["testbed"] = "native"
    stand_in.save()
    assert sweep.default_jobs("local", sweep.machines(stand_in, "local")) == 1
    sweep.run(stand_in, QUIET, "local", 4, [])
    assert at_once(stand_in) == {"here": 1, "all": 1}
    # Each node of a cluster is a host of its own.
    assert sweep.machines(stand_in, "slurm") == []
    assert sweep._machine_of(stand_in, "slurm") == {}


def test_labs_are_as_many_as_this_machine_bears(store):
    assert sweep.machines(store, "local") == []
    assert sweep._words("local", 3, store.folder) == ["--cores", "6"]


def test_it_goes_on_after_a_run_that_failed(stand_in):
    first = ids(stand_in)[0]
    bad = stand_in.folder / sweep.JOBS / f"fail-{first}"
    bad.touch()
    sweep.run(stand_in, QUIET, "local", 1, [])
    assert sorted(order(stand_in)) == ids(stand_in)
    assert stand_in.manifest["status"] == "partial"
    bad.unlink()
    sweep.run(stand_in, QUIET, "local", 1, [])
    assert sorted(order(stand_in)) == sorted([*ids(stand_in), first])
    assert stand_in.manifest["status"] == "complete"


def test_what_was_called_off_is_what_snakemake_starts_again(stand_in, monkeypatch):
    sweep.run(stand_in, QUIET, "local", 2, [])
    first = ids(stand_in)[0]
    monkeypatch.setattr(Results, "damaged", lambda self: {first: "its disk is bad"})
    sweep.reopen(stand_in, QUIET)
    sweep.run(stand_in, QUIET, "local", 2, [])
    assert sorted(order(stand_in)) == sorted([*ids(stand_in), first])
    assert stand_in.manifest["status"] == "complete"


def test_ctrl_c_ends_the_jobs_too(stand_in, tmp_path, monkeypatch):
    note = tmp_path / "pid"
    (tmp_path / "job.py").write_text(f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    wait = sweep.time.sleep

    def interrupted(seconds):
        wait(0.1)
        if note.exists() and note.read_text():
            raise KeyboardInterrupt

    monkeypatch.setattr(sweep.time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(stand_in, QUIET, "local", 1, [])
    assert not Path(f"/proc/{note.read_text()}").exists()
    assert stand_in.manifest["status"] == "partial"


def test_two_sweeps_of_one_result_do_not_get_in_each_others_way(stand_in):
    with (
        locks.take(stand_in.folder / results.SWEEP_LOCK, "the first"),
        pytest.raises(BadInput, match=rf"the result {stand_in.folder} is in use by process {os.getpid()}"),
    ):
        sweep.run(stand_in, QUIET, "local", 1, [])
    sweep.run(stand_in, QUIET, "local", 2, [])
    assert sorted(order(stand_in)) == ids(stand_in)


def test_repetitions_are_blocks_in_a_sweep_too(stand_in):
    """What is broken off has whole repetitions."""
    sweep.run(stand_in, QUIET, "local", 1, [])
    repetition_of = {run["run_id"]: run["repetition"] for run in stand_in.manifest["runs"]}
    done = [repetition_of[run] for run in order(stand_in)]
    assert len(set(done)) > 1
    assert done == sorted(done)


def test_a_campaign_is_not_resumed_beside_a_sweep_of_it(store):
    with store.unswept(), pytest.raises(BadInput, match=rf"the result {store.folder} is in use by process {os.getpid()}"):
        campaigns.resume(store, QUIET)
    assert {run["status"] for run in store.manifest["runs"]} == {"planned"}


def test_a_snakemake_that_began_no_run_is_told_and_no_run_is_blamed(stand_in):
    with pytest.raises(RunFailed, match="not because a run failed"):
        sweep.run(stand_in, QUIET, "local", 1, ["--no-such-option"])
    assert {run["status"] for run in stand_in.manifest["runs"]} == {"planned"}


def test_a_snakemake_that_fails_by_itself_is_told(stand_in):
    for run_id in ids(stand_in):
        record = next(run for run in stand_in.manifest["runs"] if run["run_id"] == run_id)
        said = {"runs": [{**record, "status": "done"}], "facts": {}, "findings": [], "vocabulary": {}}
        (stand_in.folder / sweep.JOBS / f"{run_id}.json").write_text(json.dumps(said))
    with pytest.raises(RunFailed, match=r"Snakemake ended with status .*snakemake\.log"):
        sweep.run(stand_in, QUIET, "local", 1, ["--no-such-option"])
