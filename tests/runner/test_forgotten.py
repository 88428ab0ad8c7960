# SPDX-License-Identifier: GPL-2.0-or-later
"""When a sweep ends because the cluster has forgotten its jobs. The cluster is a made-up `squeue`; a real one: test_sweep_slurm.py."""

import pytest

from vsprof.runner import forgotten, sweep
from vsprof.runner.forgotten import Watch
from vsprof.runner.results import Results


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """A watch that asks each time, what it reads, and the clock."""
    clock = [0.0]
    monkeypatch.setattr(forgotten.time, "monotonic", lambda: clock[0])
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "log").write_text("")
    return Watch(tmp_path / "a result", tmp_path / "log"), tmp_path, clock


def queue(folder, script: str) -> None:
    program = folder / "squeue"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def looks(watch, clock, seconds: float) -> bool:
    """Whether it gave up in so many seconds."""
    until = clock[0] + seconds
    while clock[0] < until:
        clock[0] += forgotten.EVERY_S
        if watch.gave_up():
            return True
    return False


def test_it_gives_up_when_the_queue_is_empty_and_nothing_is_said(watch):
    seen, folder, clock = watch
    queue(folder, "echo somebody-elses")
    assert not looks(seen, clock, forgotten.PATIENCE_S)
    assert looks(seen, clock, 3 * forgotten.EVERY_S)


@pytest.mark.parametrize("script", ["echo vsprof-a-result_1234", "exit 1"], ids=["queued", "no-answer"])
def test_it_waits_while_a_job_may_be_queued(watch, script):
    seen, folder, clock = watch
    queue(folder, script)
    assert not looks(seen, clock, 10 * forgotten.PATIENCE_S)
    queue(folder, "true")
    assert looks(seen, clock, 2 * forgotten.PATIENCE_S)


def test_it_waits_while_snakemake_says_something(watch):
    seen, folder, clock = watch
    queue(folder, "true")
    for number in range(5):
        assert not looks(seen, clock, forgotten.PATIENCE_S)
        (folder / "log").write_text("x" * (number + 1))


def test_names_are_such_as_the_executor_takes(tmp_path):
    assert forgotten.name(tmp_path / "vm2vm, of today") == "vsprof-vm2vm--of-today"
    assert len(forgotten.name(tmp_path / ("x" * 80))) == forgotten.PREFIX_LONGEST


@pytest.mark.parametrize(
    ("options", "watched"), [([], True), (["--slurm-jobname-prefix", "mine"], False), (["--slurm-jobname-prefix=mine"], False)]
)
def test_jobs_under_a_name_of_the_users_are_not_watched(monkeypatch, tmp_path, options, watched):
    asked = []
    monkeypatch.setattr(sweep, "_snakemake", lambda *words: asked.append(words[-1]) or 0)
    monkeypatch.setattr(sweep, "gather", lambda store: None)

    store = Results(tmp_path, {"runs": []})
    sweep.run(store, None, "slurm", 1, options)
    assert (asked[0] is not None) == watched
