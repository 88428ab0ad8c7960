# SPDX-License-Identifier: GPL-2.0-or-later
"""From stacks.parquet to the graphs of a result."""

import json

import pytest

from vsprof.analysis import report, stacks
from vsprof.analysis.load import load
from vsprof.terms import schema
from vsprof.terms.schema import StackCount


def with_stacks(sample, path, counts, source="software", event="samples", collector="perf_record", **shape):
    """SYNTHETIC: a result in whose first run of each case ``counts`` (traffic, load, stack, samples) were sampled."""
    run = sample.write(path, **shape)
    first = load(run).frame.groupby("case_id")[schema.KEYS.names].first()
    rows = [
        schema.row(
            {**where, "case_id": case, "repetition": 1, "traffic": traffic, "load": load_, "window": f"{collector}-1"},
            collector, source, StackCount(event, value, "samples" if event == "samples" else "events", f"thread;{where['switch']}_works (x);{stack}", "switch", 1, "user"),
        )
        for case, where in first.drop(columns="case_id", errors="ignore").to_dict("index").items()
        for traffic, load_, stack, value in counts
    ]  # fmt: skip
    schema.write(run / "stacks.parquet", rows, schema.STACK)
    return run


COUNTS = [
    ("udp_flood", "saturation", "deep (y)", 30.0),
    ("udp_flood", "saturation", "deep (y)", 10.0),
    ("tcp_stream", "saturation", "z (y)", 7.0),
]


def test_a_result_without_stacks_shows_nothing(two_switches):
    assert two_switches.stacks.rows == 0
    assert stacks.show(two_switches) is None
    assert stacks.of(two_switches) == []


def test_one_graph_a_switch_and_one_difference(sample, tmp_path):
    result = load(with_stacks(sample, tmp_path / "r", COUNTS))
    graphs = stacks.of(result)
    assert [graph.name for graph in graphs] == ["flame-kernel-ovs", "flame-ovs-dpdk", "flame-diff-kernel-ovs-ovs-dpdk"]
    # Windows are summed; the other traffic is in another graph.
    assert graphs[0].stacks == {"switch;thread;kernel-ovs_works (x);deep (y)": 40.0}
    assert graphs[2].against == (graphs[1].stacks, ("kernel-ovs · vhost-net", "ovs-dpdk · vhost-user"))


def test_without_the_flood_another_traffic_is_drawn(sample, tmp_path):
    result = load(with_stacks(sample, tmp_path / "r", COUNTS[2:]))
    assert list(stacks.of(result)[0].stacks.values()) == [7.0]
    assert "TCP stream" in stacks.show(result).caption


def test_cases_of_one_switch_are_told_apart(sample, tmp_path):
    result = load(with_stacks(sample, tmp_path / "r", COUNTS, frames=(64, 1518), repetitions=1))
    graphs = stacks.of(result)
    singles = [graph for graph in graphs if graph.against is None]
    assert len({graph.name for graph in graphs}) == len(graphs)
    assert len(singles) == 4
    # Frames of one size alone are compared.
    assert [graph.title for graph in graphs if graph.against] == [
        f"kernel-ovs · vhost-net, {size} B → ovs-dpdk · vhost-user, {size} B, UDP flood, saturation" for size in (64, 1518)
    ]


@pytest.mark.parametrize(("source", "words"), [("software", "kernel's clock"), ("hardware", "PMU")])
def test_the_caption_tells_who_took_the_samples(sample, tmp_path, source, words):
    result = load(with_stacks(sample, tmp_path / "r", COUNTS, source=source))
    caption = stacks.show(result).caption.replace("&#x27;", "'")
    assert f"Sampled by the {words}" in caption
    assert "UDP flood, saturation" in caption
    assert "Emulated lab" in caption


def test_events_have_graphs_of_their_own(sample, tmp_path):
    result = load(with_stacks(sample, tmp_path / "r", COUNTS, source="hardware", event="l1d_misses"))
    graphs = stacks.of(result)
    names = ["flame-l1d_misses-kernel-ovs", "flame-l1d_misses-ovs-dpdk", "flame-diff-l1d_misses-kernel-ovs-ovs-dpdk"]
    assert [graph.name for graph in graphs] == names
    assert graphs[0].title == "kernel-ovs · vhost-net, UDP flood, saturation: l1d_misses"
    assert "100.00 % of 40 events" in graphs[0].svg(interactive=False)
    assert "Sampled by the PMU&#x27;s events (hardware)" in stacks.show(result).caption


def test_a_failed_runs_stacks_are_kept_out(sample, tmp_path):
    run = "ovs-dpdk+vhost-user+64#1"
    path = with_stacks(sample, tmp_path / "r", COUNTS)
    assert run in set(load(path).stacks.select(["run_id"])["run_id"])
    manifest = json.loads((path / "manifest.json").read_text())
    runs = [{**one, "status": "failed"} if one["run_id"] == run else one for one in manifest["runs"]]
    (path / "manifest.json").write_text(json.dumps({**manifest, "runs": runs}))
    assert run not in set(load(path).stacks.select(["run_id"])["run_id"])
    # Whatever other tables there are.
    (path / "functions.parquet").unlink()
    assert run not in set(load(path).stacks.select(["run_id"])["run_id"])


@pytest.mark.long
def test_a_report_has_the_graphs_and_writes_them_beside_it(sample, tmp_path):
    run = with_stacks(sample, tmp_path / "r", COUNTS, own="uarch_model", traffics=sample.TRAFFICS[:2])
    text = report.build(run, "vm2vm").read_text(encoding="utf-8")
    # Three of what was sampled; of the model one for each of its 7 counters that fell in functions.
    assert text.count('class="flame"') == 3 + 7
    assert "<script" not in text
    for name in ("flame-kernel-ovs", "flame-ovs-dpdk", "flame-diff-kernel-ovs-ovs-dpdk"):
        assert "<script" in (run / f"{name}.svg").read_text()
    assert not list(run.glob("*.partial"))
