# SPDX-License-Identifier: GPL-2.0-or-later
"""The soak's eyes: a round in which something is lost, left or wrong is not called fine."""

import subprocess
import sys

import pytest

from vsprof.bench import soak
from vsprof.runner.results import Results
from vsprof.terms import schema
from vsprof.terms.schema import Number

WHERE = dict.fromkeys(schema.KEYS.names, "x") | {"repetition": 1, "frame_bytes": 64, "flows": 1}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "SETTLE_S", 0.3)
    (tmp_path / "soak-x").mkdir()
    (tmp_path / "results").mkdir()
    return soak.Place(tmp_path / "soak-x", tmp_path / "results", "native")


@pytest.fixture
def store(place):
    """A complete result of two runs."""
    runs = [{"run_id": run_id, "status": "planned", "error": None} for run_id in ("r001", "r002")]
    store = Results.create({"name": "soak", "status": "partial", "runs": runs, "findings": []}, place.results)
    for run in runs:
        store.run_folder(run["run_id"]).mkdir()
        where = WHERE | {"run_id": run["run_id"]}
        store.record(run["run_id"], [schema.row(where, "c", "software", Number("n", 1.0, "events"))])
    store.finish("complete")
    return store


def test_a_complete_result_is_fine(place, store):
    assert soak.wrong(place) == []
    assert soak.kept(place).keys() == {"r001", "r002"}
    assert soak.lost(place, soak.kept(place)) == []


def test_a_run_whose_numbers_changed_is_lost(place, store):
    before = soak.kept(place)
    (store.run_folder("r001") / "measurements.parquet").unlink()
    (store.run_folder("r002") / "measurements.parquet").write_bytes(b"x")
    assert soak.lost(place, before) == ["r001", "r002"]


def test_what_is_not_done_or_not_joined_is_wrong(place, store):
    store.manifest["runs"][1].update(status="failed", error="it died")
    store.finish("partial")
    assert soak.wrong(place) == ["r002 is failed: it died", "the result is partial"]
    store.join()
    assert "no numbers of r002 were joined" in soak.wrong(place)


def test_no_result_is_wrong(place):
    assert soak.wrong(place) == ["there is no result"]
    assert soak.kept(place) == {}


def test_a_process_a_folder_and_a_mount_are_left_behind(place, monkeypatch):
    before = soak.host_state()
    # Other tests may use this host meanwhile.
    monkeypatch.setattr(soak, "host_state", lambda: before)
    assert soak.left_behind(place, before) == []
    (place.temporary / "vsprof-0-x").mkdir()
    assert soak.left_behind(place, before) == [f"folder {place.temporary / 'vsprof-0-x'}"]
    (place.temporary / "vsprof-0-x").rmdir()
    program = "import time; print(flush=True); time.sleep(60)"
    named = subprocess.Popen([sys.executable, "-c", program, str(place.temporary)], stdout=subprocess.PIPE)
    try:
        # Until it runs, its command line may be empty: the kernel closes the old files, by which Popen knows of it, before it writes that.
        named.stdout.readline()
        assert [found.partition(":")[0] for found in soak.left_behind(place, before)] == [f"process {named.pid}"]
    finally:
        named.kill()
        named.communicate()
    monkeypatch.setattr(soak, "host_state", lambda: {**before, "hugepages": "7"})
    assert soak.left_behind(place, before) == [f"hugepages: 7 instead of {before['hugepages']}"]


def test_every_testbed_has_a_harm_that_kills_the_runner_and_one_that_fills_the_disk():
    for testbed in soak.TESTBEDS:
        assert {soak.kill_runner, soak.fill_disk, soak.kill_any} <= set(soak.HARMS[testbed])
