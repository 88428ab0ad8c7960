# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept of a campaign: complete or as before, never a half; and found again by name."""

import json
import os
import shutil
from pathlib import Path

import pytest

from vsprof.runner import cli, results
from vsprof.runner.results import Results
from vsprof.terms import schema
from vsprof.terms.errors import BadInput, VsprofError
from vsprof.terms.schema import FunctionCount, Number, StackCount

WHERE = dict.fromkeys(schema.KEYS.names, "x") | {"repetition": 1, "frame_bytes": 64, "flows": 1}


def rows(run_id: str, value: float = 1.0) -> list[dict[str, object]]:
    return [schema.row(WHERE | {"run_id": run_id}, "c", "software", Number("n", value, "events"))]


@pytest.fixture
def store(root):
    """A campaign of two runs, neither done."""
    runs = [{"run_id": f"r00{number}", "status": "planned"} for number in (1, 2)]
    store = Results.create(
        {"name": "vm2vm", "experiment": {}, "status": "partial", "started": results.now(), "runs": runs, "findings": []}, root
    )
    for run in runs:
        store.run_folder(run["run_id"]).mkdir()
    return store


def done(store: Results, number: int, value: float = 1.0) -> None:
    store.manifest["runs"][number]["status"] = "done"
    run_id = store.manifest["runs"][number]["run_id"]
    store.record(run_id, rows(run_id, value))


def test_the_folder_is_named_by_time_and_experiment(store):
    stamp, _, name = store.folder.name.rpartition("-")
    assert name == "vm2vm"
    assert len(stamp) == len("20261121-050447")
    assert json.loads((store.folder / "manifest.json").read_text())["name"] == "vm2vm"


def test_measurements_join_the_runs_that_are_done(store):
    done(store, 0)
    assert schema.read(store.folder / "measurements.parquet")["run_id"].to_pylist() == ["r001"]
    done(store, 1)
    assert schema.read(store.folder / "measurements.parquet")["run_id"].to_pylist() == ["r001", "r002"]


def test_a_run_recorded_again_replaces_its_rows(store):
    done(store, 0, 1.0)
    done(store, 0, 2.0)
    assert schema.read(store.folder / "measurements.parquet")["value"].to_pylist() == [2.0]


def functions(run_id: str, value: float) -> list[dict[str, object]]:
    return [schema.row(WHERE | {"run_id": run_id}, "c", "model", FunctionCount("instructions", value, "events", "kernel", "fdget"))]


def test_functions_are_kept_for_each_run_and_joined(store):
    for number, run in enumerate(store.manifest["runs"]):
        run["status"] = "done"
        store.record(run["run_id"], rows(run["run_id"]), functions(run["run_id"], float(number)))
    assert schema.read(store.run_folder("r002") / "functions.parquet")["value"].to_pylist() == [1.0]
    whole = schema.read(store.folder / "functions.parquet")
    assert whole.select(["run_id", "function", "value"]).to_pylist() == [
        {"run_id": "r001", "function": "fdget", "value": 0.0},
        {"run_id": "r002", "function": "fdget", "value": 1.0},
    ]


def test_a_run_of_an_earlier_vsprof_has_no_functions_and_is_joined(store):
    done(store, 0)
    (store.run_folder("r001") / "functions.parquet").unlink()
    store.manifest["runs"][1]["status"] = "done"
    store.record("r002", rows("r002"), functions("r002", 1.0))
    assert schema.read(store.folder / "functions.parquet")["run_id"].to_pylist() == ["r002"]
    assert schema.read(store.folder / "measurements.parquet")["run_id"].to_pylist() == ["r001", "r002"]


def test_a_campaign_in_which_nobody_counts_by_function_has_an_empty_table(store):
    done(store, 0)
    assert schema.read(store.folder / "functions.parquet").num_rows == 0


def test_a_finding_is_noted_once(store):
    store.find("left out")
    store.find("left out")
    assert store.manifest["findings"] == [{"level": "warning", "text": "left out"}]


def test_a_run_that_is_parsed_again_is_not_damaged_when_that_is_interrupted(store, root, monkeypatch):
    done(store, 0)
    assert not store.damaged()

    def interrupted(path: Path) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(results.files, "checksum", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.keep("r001", rows("r001", 2.0))
    monkeypatch.undo()
    again = Results.open(store.folder, root)
    assert again.manifest["runs"][0]["status"] == "done"
    assert not again.damaged()


def test_the_newest_complete_campaign_is_the_latest(store, root):
    store.finish("complete")
    assert os.readlink(root / "latest") == store.folder.name
    again = Results.create({"name": "vm2host", "experiment": {}, "runs": [], "findings": []}, root)
    again.finish("partial")
    assert os.readlink(root / "latest") == store.folder.name
    again.finish("complete")
    assert os.readlink(root / "latest") == again.folder.name
    assert not list(root.glob(".latest*"))


def test_where_results_are_kept_elsewhere_the_latest_is_still_told(store, root, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(root)
    monkeypatch.setattr(results, "ROOT", tmp_path / "link")
    Results.open(store.folder.name, results.ROOT).finish("complete")
    assert os.readlink(root / "latest") == store.folder.name


def test_a_campaign_opens_by_folder_by_name_and_as_latest(store, root):
    store.finish("complete")
    for name in (store.folder, store.folder.name, "latest"):
        assert Results.open(name, root).folder == store.folder.resolve()


def test_what_is_no_result_lists_the_newest(store, root):
    with pytest.raises(BadInput, match=f"nothing.*{store.folder.name}"):
        Results.open("nothing", root)


def test_without_any_result_the_next_move_is_named(root):
    with pytest.raises(BadInput, match="profile-vm2vm"):
        Results.open("latest", root)
    with pytest.raises(BadInput, match="none yet"):
        results.newest()


@pytest.mark.parametrize("damage", ["", '{"name": "vm2', "\x00\x01", "[]", "3", '{"runs": []}'])
def test_a_damaged_manifest_is_refused_by_name(store, root, capsys, damage):
    (store.folder / "manifest.json").write_text(damage)
    with pytest.raises(BadInput, match=r"manifest\.json"):
        Results.open(store.folder, root)
    assert cli.main(["parse", str(store.folder)]) == 2
    assert "damaged" in capsys.readouterr().err


def test_a_manifest_in_another_encoding_is_refused(store, root):
    (store.folder / "manifest.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(BadInput, match="damaged"):
        Results.open(store.folder, root)


@pytest.mark.parametrize("command", [["parse"], ["run", "--resume"]])
def test_a_result_whose_records_are_gone_is_left_as_it_is(store, capsys, command):
    done(store, 0)
    before = (store.folder / "measurements.parquet").read_bytes()
    shutil.rmtree(store.folder / "raw")
    assert cli.main([*command, str(store.folder)]) == 2
    assert "raw/" in capsys.readouterr().err
    assert (store.folder / "measurements.parquet").read_bytes() == before
    assert json.loads((store.folder / "manifest.json").read_text())["runs"][0]["status"] == "done"


@pytest.mark.parametrize("command", ["report", "show", "parse"])
def test_a_command_on_no_result_ends_with_status_2(root, capsys, command):
    assert cli.main([command, "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


def full(*_, **__):
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_said_and_the_old_manifest_stays(store, monkeypatch):
    before = (store.folder / "manifest.json").read_text()
    store.manifest["status"] = "complete"
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(VsprofError, match=r"No space left.*make resume") as failed:
        store.save()
    assert str(store.folder) in str(failed.value)
    assert failed.value.exit_status == 1
    monkeypatch.undo()
    assert (store.folder / "manifest.json").read_text() == before


def test_a_full_disk_keeps_the_numbers_measured_before(store, monkeypatch):
    done(store, 0)
    monkeypatch.setattr(schema.pq, "write_table", full)
    with pytest.raises(VsprofError, match="No space left"):
        done(store, 1)
    monkeypatch.undo()
    assert schema.read(store.folder / "measurements.parquet")["run_id"].to_pylist() == ["r001"]


def test_a_full_disk_at_the_start(root, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(VsprofError, match="No space left"):
        Results.create({"name": "vm2vm"}, root)


def test_two_campaigns_of_one_second_do_not_share_a_folder(root):
    made = [Results.create({"name": "vm2vm", "number": number}, root) for number in range(2)]
    assert made[0].folder != made[1].folder


def test_stacks_are_kept_and_joined_as_functions_are(store):
    counted = StackCount("samples", 3.0, "samples", "gzip;main (gzip)", "host-other", 0, "user")
    store.manifest["runs"][0]["status"] = "done"
    store.record("r001", rows("r001"), (), [schema.row(WHERE | {"run_id": "r001"}, "c", "software", counted)])
    for path in (store.run_folder("r001") / "stacks.parquet", store.folder / "stacks.parquet"):
        assert schema.read(path).select(["run_id", "stack", "value"]).to_pylist() == [
            {"run_id": "r001", "stack": counted.stack, "value": 3.0}
        ]


def test_a_run_is_done_when_its_numbers_are_safe(store, monkeypatch):
    def full(path, rows, layout=schema.NUMBER):
        if path.name == "functions.parquet":
            raise OSError(28, "No space left on device")
        return schema.table(rows, layout).num_rows

    store.manifest["runs"][0]["status"] = "running"
    monkeypatch.setattr(schema, "write", full)
    monkeypatch.setattr(results.files, "checksum", lambda path: "x")
    with pytest.raises(VsprofError, match="No space left"):
        store.record("r001", rows("r001"))
    assert store.manifest["runs"][0]["status"] == "running"


def test_a_run_is_done_though_its_numbers_could_not_be_joined(store, monkeypatch):
    monkeypatch.setattr(schema, "join", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(VsprofError, match="No space left"):
        store.record("r001", rows("r001"))
    monkeypatch.undo()
    kept = json.loads((store.folder / "manifest.json").read_text())["runs"][0]
    assert kept["status"] == "done"
    assert kept["kept"]["measurements.parquet"]["rows"] == 1
    assert store.damaged() == {}
    assert schema.read(store.run_folder("r001") / "measurements.parquet").num_rows == 1


@pytest.mark.parametrize(
    ("name", "harm", "told"),
    [
        ("measurements.parquet", lambda path: path.unlink(), "No such file"),
        ("functions.parquet", lambda path: path.unlink(), "No such file"),
        ("measurements.parquet", lambda path: path.write_bytes(path.read_bytes()[:-7]), "checksum"),
        ("stacks.parquet", lambda path: path.write_bytes(b"x" + path.read_bytes()[1:]), "checksum"),
        ("measurements.parquet", lambda path: path.write_bytes(b""), "checksum"),
    ],
)
def test_what_a_finished_run_lost_is_noticed(store, name, harm, told):
    store.record("r001", rows("r001"))
    store.record("r002", rows("r002"))
    assert store.damaged() == {}
    harm(store.run_folder("r001") / name)
    assert store.damaged().keys() == {"r001"}
    assert told in store.damaged()["r001"]
    assert name in store.damaged()["r001"]


def test_a_run_of_an_earlier_vsprof_is_whole_where_its_table_can_be_read(store):
    store.record("r001", rows("r001"))
    del store.manifest["runs"][0]["kept"]
    assert store.damaged() == {}
    (store.run_folder("r001") / "measurements.parquet").write_bytes(b"PAR1")
    assert "can't be read" in store.damaged()["r001"]


def test_one_at_a_time_changes_a_result(store, root):
    again = Results.open(store.folder, root)
    with store.alone():
        with pytest.raises(BadInput, match=f"in use by process {os.getpid()}"), again.alone():
            pass
        store.find("meanwhile")
        store.save()
    with again.alone():
        assert again.manifest["findings"][0]["text"] == "meanwhile"


def test_the_newest_is_the_one_begun_last_whatever_the_clock_on_the_wall_said(root):
    for name, began in (("20261025-025900-vm2vm", "2026-10-25T02:59:00+02:00"), ("20261025-020100-vm2vm", "2026-10-25T02:01:00+01:00")):
        (root / name).mkdir(parents=True)
        (root / name / "manifest.json").write_text(json.dumps({"name": name, "experiment": {}, "runs": [], "started": began}))
    (root / "20270101-000000-vm2vm").mkdir()
    (root / "20270101-000000-vm2vm" / "manifest.json").write_text("{")
    assert results.newest().name == "20261025-020100-vm2vm"
