# SPDX-License-Identifier: GPL-2.0-or-later
"""`vsprof timeline` and the report's picture, of two real windows with one ping each; the rest of the result is SYNTHETIC."""

import json
import math
from pathlib import Path

import pytest

from tests.analysis import trace_processor
from vsprof.analysis import figures, timeline
from vsprof.analysis.load import load
from vsprof.collectors.base import Recorded
from vsprof.collectors.timeline import Timeline
from vsprof.collectors.uarch_model import UarchModel
from vsprof.runner import cli
from vsprof.terms import errors, schema
from vsprof.terms.placement import Placement

CAPTURED = Path(__file__).parents[1] / "collectors" / "captured"


def with_timeline(sample, path: Path, full: bool = False) -> Path:
    """In the first run of each case what was recorded of its switch; ``full``: as if the list of CPU 1 had been."""
    run = sample.write(path)
    first = load(run).frame.query("repetition == 1").groupby("case_id")[schema.KEYS.names].first()
    rows = []
    for where in first.to_dict("index").values():
        data = json.loads((CAPTURED / f"timeline-{where['switch']}.json").read_text())
        data["timeline"][1]["full"] = full
        placement = Placement.from_json(data["placement"])
        place = {**where, "traffic": "ping_paced", "load": "paced", "window": "uarch_model-1"}
        spans = UarchModel.spans(Recorded("", json.dumps(data), math.nan, placement))
        rows += [schema.row(place, "uarch_model", "model", span) for span in spans]
    schema.write(run / "timeline.parquet", rows, schema.SPAN)
    return run


@pytest.fixture(scope="module")
def folder(sample, tmp_path_factory) -> Path:
    return with_timeline(sample, tmp_path_factory.mktemp("timeline") / "r")


@pytest.fixture(scope="module")
def result(folder):
    return load(folder)


def test_the_commands_file_is_read_by_perfettos_trace_processor(folder, result, tmp_path, capsys):
    assert cli.main(["timeline", str(folder), "--out", str(tmp_path / "t.pftrace"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["timeline"] == str(tmp_path / "t.pftrace")
    switch = result.cases["switch"]
    assert [(switch[part["case_id"]], part["cpus"], part["seconds"], part["cut"]) for part in said["parts"]] == [
        ("kernel-ovs", 4, 0.006, {}),
        ("ovs-dpdk", 4, 0.006, {}),
    ]
    processor = trace_processor.TraceProcessor(trace_processor.program())
    processor.read((tmp_path / "t.pftrace").read_bytes())
    assert processor.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0") == []

    spans = result.timeline.select()
    happened = spans[spans["kind"] != "recorded"]
    ((slices,),) = processor.query("select count(*) as n from slice")
    assert slices == len(happened) == sum(part["spans"] for part in said["parts"])
    by_kind = dict(processor.query("select category, count(*) as n from slice group by category"))
    assert by_kind == happened.groupby("kind").size().to_dict()
    ((longest,),) = processor.query("select max(dur) as n from slice where category = 'sleep'")
    assert longest == happened.loc[happened["kind"] == "sleep", "duration_ns"].max()

    tops = [name for (name,) in processor.query("select name from track where parent_id is null order by name")]
    assert tops == ["kernel-ovs · vhost-net: paced ping", "ovs-dpdk · vhost-user: paced ping"]
    below = "join track parent on track.parent_id = parent.id"
    cpus = {name for (name,) in processor.query(f"select distinct track.name as name from track {below} where parent.parent_id is null")}
    assert cpus == {"CPU 0 (host-other)", "CPU 1 (vhost)", "CPU 1 (switch)", "CPU 2 (guest)", "CPU 3 (guest)"}
    polls = processor.query("select name, extract_arg(arg_set_id, 'debug.frames') as frames from slice where category = 'poll'")
    assert polls == [("1 frame", 1), ("1 frame", 1)]
    # Over kernel OVS a vhost worker is woken and then runs; nobody wakes the poll-mode thread.
    arrows = "from flow join slice waking on slice_out = waking.id join slice woken on slice_in = woken.id"
    assert set(processor.query(f"select waking.category, woken.category as of {arrows}")) == {("wake", "task")}
    woken = processor.query(f"select woken.name as name, woken.ts - waking.ts as ns {arrows}")
    assert any(name.startswith("vhost-") for name, _ in woken)
    assert not any(name.startswith("pmd-") for name, _ in woken)
    assert all(0 <= ns < 1_000_000 for _, ns in woken)


def test_without_options_it_lies_in_the_result_and_says_so(folder, capsys):
    assert cli.main(["timeline", str(folder)]) == 0
    *parts, path = capsys.readouterr().out.splitlines()
    assert Path(path) == folder / timeline.NAME
    assert Path(path).stat().st_size > 1000
    assert len(parts) == 2
    assert "paced ping: 6.00 ms of 4 CPUs" in parts[0]


def test_a_run_of_ones_own_choice(folder, result, tmp_path, capsys):
    known = sorted(result.timeline.select()["run_id"].unique())
    assert cli.main(["timeline", str(folder), "--run-id", known[1], "--out", str(tmp_path / "t"), "--json"]) == 0
    assert [part["run_id"] for part in json.loads(capsys.readouterr().out)["parts"]] == known[1:]
    assert cli.main(["timeline", str(folder), "--run-id", "r999"]) == errors.BadInput.exit_status
    assert f"no timeline of a run 'r999': there are those of {known[0]}, {known[1]}" in capsys.readouterr().err


def test_a_result_without_a_timeline_and_a_place_that_can_not_be_written_are_said_once(sample, folder, tmp_path, capsys):
    assert cli.main(["timeline", str(sample.write(tmp_path / "old"))]) == errors.BadInput.exit_status
    assert "has no timeline: it was measured by an earlier vsprof" in capsys.readouterr().err
    assert cli.main(["timeline", str(folder), "--out", str(tmp_path / "none" / "t")]) == errors.BadInput.exit_status
    assert "can't write the timeline" in capsys.readouterr().err


def test_what_ended_early_is_said(sample, tmp_path):
    data, said = timeline.trace(load(with_timeline(sample, tmp_path / "r", full=True)))
    assert all(part["cut"].keys() == {1} for part in said)
    assert timeline.text(said).count("; CPU 1 ends early: after ") == 2
    processor = trace_processor.TraceProcessor(trace_processor.program())
    processor.read(data)
    ends = processor.query("select ts, name from slice where category = 'recorded'")
    assert [ts for ts, _ in ends] == [7_000_000, 7_000_000]
    assert all(name.startswith("ends here: after ") for _, name in ends)


# --- The picture


def test_the_picture_shows_who_sleeps_and_who_polls(result):
    shown = figures.show(result, "timeline")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "Source: estimated" in shown.caption
    assert "One run of each case" in shown.caption
    assert "bootstrap" not in shown.caption
    mover = shown.table[shown.table["cpu"] == 1]
    does = {label: set(part["does"]) for label, part in mover.groupby("label")}
    assert {"asleep", "moves frames"} <= does["kernel-ovs · vhost-net"]
    assert {"polls, finds nothing", "moves frames"} <= does["ovs-dpdk · vhost-user"]
    assert "asleep" not in does["ovs-dpdk · vhost-user"]
    assert shown.table["start_us"].min() == 0
    assert (shown.table["start_us"] + shown.table["length_us"]).max() <= 500
    # A frame is there 40 us after the begin. The one thread finds it at once, the other must be woken first.
    first = mover[mover["does"] == "moves frames"].groupby("label")["start_us"].min()
    assert first["ovs-dpdk · vhost-user"] == pytest.approx(40)
    waking = shown.table[(shown.table["kind"] == "wake") & (shown.table["name"].str.startswith("vhost-"))]
    assert waking["start_us"].min() == pytest.approx(40)
    assert first["kernel-ovs · vhost-net"] > 100


def test_where_softirqs_are_the_switch_they_move_the_frames(sample, tmp_path):
    """A real host's events, as if its CPU 1 had the role that it has with containers on veth pairs."""
    run = sample.write(tmp_path / "r")
    where = load(run).frame.iloc[0][schema.KEYS.names].to_dict() | {"traffic": "ping_paced", "load": "paced", "window": "timeline-1"}
    recorded = Recorded("", (CAPTURED / "timeline.end").read_text(), math.nan, Placement([], {0: "softirq", 1: "softirq"}))
    schema.write(
        run / "timeline.parquet", [schema.row(where, "timeline", "software", one) for one in Timeline.spans(recorded)], schema.SPAN
    )
    shown = figures.show(load(run), "timeline")
    assert figures.png(shown.figure).startswith(b"\x89PNG")
    assert "Source: software counters" in shown.caption
    moves = shown.table[shown.table["does"] == "moves frames"]
    assert set(moves["name"]) == {"net_rx"}


def test_a_result_without_a_timeline_has_no_picture(two_switches):
    assert "no timeline was recorded" in figures.show(two_switches, "timeline").text
