# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics of the modelled processor, against numbers worked out by hand from the synthetic sample."""

import json

import pandas as pd
import pyarrow.parquet as pq
import pytest

from vsprof.analysis import describe, explain_model, looks, metrics, model, show
from vsprof.analysis.load import load
from vsprof.analysis.published import beside
from vsprof.analysis.sources import MODEL

DPDK, KERNEL = "ovs-dpdk+vhost-user+64", "kernel-ovs+vhost-net+64"
FLOOD = {"traffic": "udp_flood", "load": "saturation"}
TCP = {"traffic": "tcp_stream", "load": "saturation"}
PING = {"traffic": "ping_paced", "load": "paced"}


def value(result, metric: str, case: str = DPDK, where: dict = FLOOD, role: str = "path") -> float:
    return MODEL.estimate(result, case_id=case, metric=metric, role=role, **where).median


def test_each_traffic_has_its_unit_of_data(modelled, sample):
    work = sample.WORK["vhost-net"] * 1.02 * 0.9
    assert value(modelled, "model_instructions_per_packet", KERNEL) == pytest.approx(work)
    assert value(modelled, "model_instructions_per_megabit", KERNEL, TCP) == pytest.approx(40 * work)
    assert value(modelled, "model_instructions_per_reply", KERNEL, PING) == pytest.approx(50 * work)


@pytest.mark.parametrize(("topology", "traffic"), [("vm2vm", "udp_flood"), ("pvp", "forward"), ("pvp_wire", "forward")])
def test_packets_that_no_kernel_receives_are_those_given_to_endpoints(sample, vhost_sample, tmp_path, topology, traffic):
    path = sample.write(tmp_path / "r", traffics=[*sample.TRAFFICS, sample.IDLE], own="uarch_model")
    result = load(vhost_sample.change(path, traffic, topology))
    case = next(iter(result.cases.index[result.cases["access"] == "virtio-user"]))
    work = sample.WORK["vhost-user"] * 1.02 * 0.9
    where = {"traffic": traffic, "load": "saturation"}
    assert value(result, "model_instructions_per_packet", case, where) == pytest.approx(work)


def test_polls_that_found_nothing_are_taken_out(modelled, sample):
    work = sample.WORK["vhost-user"] * 1.02 * 0.9
    polling = 99_000 * sample.EMPTY_POLL["instructions"] / 2000
    assert value(modelled, "model_instructions_per_packet") == pytest.approx(work)
    assert value(modelled, "model_instructions_per_packet_with_polling") == pytest.approx(work + polling)
    assert value(modelled, "model_cpi") == pytest.approx(sample.CPI["vhost-user"])
    assert value(modelled, "model_cpi_with_polling") < value(modelled, "model_cpi")


def test_the_poll_mode_threads_own_work_is_not_that_of_the_switchs_other_threads(modelled, sample):
    frame = modelled.frame
    ours = (frame["source"] == "model") & (frame["role"] == "switch") & (frame["switch"] == "ovs-dpdk")
    # As much again, by the daemon's main thread, which does not poll.
    other = frame[ours & ~frame["name"].str.startswith("empty_polls")].assign(cpu=0)
    both = sample.with_frame(modelled, pd.concat([frame, other], ignore_index=True))
    one = value(modelled, "model_instructions_per_packet", role="switch")
    assert value(modelled, "model_instructions_per_packet", role=model.POLL_MODE) == pytest.approx(one)
    assert value(both, "model_instructions_per_packet", role=model.POLL_MODE) == pytest.approx(one)
    assert value(both, "model_instructions_per_packet", role="switch") > 2 * one
    assert MODEL.estimate(modelled, case_id=KERNEL, metric="model_instructions_per_packet", role=model.POLL_MODE, **FLOOD).n == 0


def test_what_an_empty_poll_costs(modelled):
    for where in (FLOOD, {"traffic": "idle", "load": "none"}):
        assert value(modelled, "model_instructions_per_empty_poll", where=where, role="switch") == pytest.approx(50)
    taken = 99_000 * 20 / (99_000 * 20 + 2000 * 10_200 * 0.5 * 1.2)
    assert value(modelled, "model_polling_share", role="switch") == pytest.approx(taken)
    assert MODEL.estimate(modelled, case_id=KERNEL, metric="model_polling_share", role="switch", **FLOOD).n == 0


def test_nothing_falls_below_zero(modelled):
    assert (model.of(modelled)["part"] >= 0).all()


def of_an_early_model(result, sample):
    """The same result as a model made it that did not count empty polls by themselves."""
    return sample.with_frame(result, result.frame[~result.frame["name"].str.startswith("empty_polls")])


def test_in_a_result_of_an_early_model_polling_is_left_in_and_said_so(modelled, sample):
    result = of_an_early_model(modelled, sample)
    assert value(result, "model_instructions_per_packet") == value(result, "model_instructions_per_packet_with_polling")
    assert value(result, "model_instructions_per_packet_with_polling") == value(modelled, "model_instructions_per_packet_with_polling")
    assert any("Idle polling is left in the model's numbers of ovs-dpdk" in text for text in MODEL.limits(result))
    assert not any("Idle polling is left in" in text for text in MODEL.limits(modelled))
    assert "model_polling_share" not in set(model.of(result)["metric"])


def test_counts_of_empty_polls_are_no_metrics_of_their_own(modelled):
    assert not any("empty_polls" in metric for metric in model.of(modelled)["metric"].unique())


def test_the_stack_adds_up(modelled):
    parts = sum(value(modelled, f"model_cpi_{part}") for part in model.PARTS)
    assert parts == pytest.approx(value(modelled, "model_cpi"))


def test_roles_sum_to_all_and_the_path_leaves_out_the_host(modelled):
    name = "model_cycles_per_packet"
    roles = {role: value(modelled, name, role=role) for role in ("switch", "guest", "host-other", "path", "all")}
    assert roles["switch"] + roles["guest"] == pytest.approx(roles["path"])
    assert roles["path"] + roles["host-other"] == pytest.approx(roles["all"])


def test_the_host_is_part_of_the_path_where_it_is_an_endpoint(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", topology="vm2host", own="uarch_model"))
    name = "model_cycles_per_packet"
    assert value(result, name) == value(result, name, role="all")


def test_misses_by_instructions_and_by_accesses(modelled):
    assert value(modelled, "model_l1d_misses_per_kilo_instructions") == pytest.approx(10)
    assert value(modelled, "model_l1d_miss_rate") == pytest.approx(0.01 / 0.4)
    assert value(modelled, "model_llc_misses_per_packet") == 0


def test_model_and_software_share_no_name(modelled):
    assert not set(model.of(modelled)["metric"]) & set(metrics.of(modelled)["metric"])
    assert model.of(modelled)["metric"].str.startswith("model_").all()


def test_nothing_is_made_of_a_result_without_the_model(two_switches):
    assert model.of(two_switches).empty
    assert MODEL.limits(two_switches) == []
    assert "no window of this result" in explain_model.markdown(two_switches)
    assert "no window of this result" in describe.headlines(two_switches, MODEL)
    assert show.summary(two_switches)["model"] is None


def test_a_window_that_is_not_to_be_trusted_is_left_out_and_named(sample, tmp_path):
    path = sample.write(tmp_path / "r", own="uarch_model", repetitions=2)
    _distrust(path / "measurements.parquet", "uarch_model-2")
    result = load(path)
    assert set(model.of(result)["window"]) == {"uarch_model-1"}
    assert any("left out: addresses are not QEMU's" in text for text in MODEL.limits(result))


def test_a_result_of_distrusted_windows_alone_has_no_numbers_and_says_why(sample, tmp_path):
    path = sample.write(tmp_path / "r", own="uarch_model", repetitions=1)
    _distrust(path / "measurements.parquet", "uarch_model-1", "uarch_model-2")
    result = load(path)
    assert model.of(result).empty
    assert any("addresses are not QEMU's" in text for text in MODEL.missing(result, ("cycles",)))


def _distrust(path, *windows: str) -> None:
    table = pq.read_table(path)
    frame = table.to_pandas()
    bad = (frame["source"] == "model") & frame["window"].isin(windows)
    marked = frame[bad & (frame["name"] == "cycles")].drop_duplicates(["run_id", "traffic", "load", "window"])
    marked = marked.assign(role=None, cpu=None, value=None, note="addresses are not QEMU's")
    rows = pd.concat([frame[~bad], marked]).astype(object).where(lambda t: t.notna(), None).to_dict("records")
    whole = [{**row, **{key: int(row[key]) for key in ("cpu", "frame_bytes", "flows") if row[key] is not None}} for row in rows]
    pq.write_table(type(table).from_pylist(whole, schema=table.schema), path)


def test_the_split_is_told_in_words(modelled):
    found = explain_model.markdown(modelled)
    assert "UDP flood, saturation: OVS-DPDK takes fewer estimated cycles per packet than kernel OVS" in found
    assert "estimated (model: Made-up 1)" in found
    # half the instructions at 1.2 / 1.5 of the CPI: ln 2 / ln 2.5
    assert "fewer instructions per packet make 76 % of the ratio's logarithm and a lower CPI 24 %" in found
    assert "idle polling is counted by itself" in found


def test_empty_polls_that_lower_a_miss_rate_are_named(modelled):
    found = [one for one in looks.findings(modelled, explain_model.LOOKS) if "L1D" in one.claim]
    assert "has fewer L1D misses per megabit" in found[0].claim
    assert "lower the rate of misses without saving a packet one miss" in found[0].reason


def test_one_repetition_decides_nothing(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", repetitions=1, own="uarch_model"))
    claims = [one.claim for one in looks.findings(result, explain_model.LOOKS)]
    assert claims
    # Where a packet's instructions are spent, and what polls take, sets no case against another.
    no_ratio = ("one run does not show", "parts of the instructions per packet", "idle polling is counted by itself")
    assert all(any(words in claim for words in no_ratio) for claim in claims)


def test_published_rates_stand_beside_the_models(modelled):
    ours = {(one.published.id, one.metric): one.ratio for one in beside(modelled) if one.modelled and one.traffic == "udp_flood"}
    plain, polling = (ours["T1-l1-misses", f"model_l1d_miss_rate{end}"] for end in ("", "_with_polling"))
    assert plain.median == pytest.approx(1)
    assert polling.median < 1


def test_a_summary_has_the_models_numbers_apart(modelled):
    summary = json.loads(json.dumps(show.summary(modelled), allow_nan=False))
    assert summary["model"] == "Made-up 1"
    for case in summary["cases"]:
        assert {one["metric"] for one in case["model_metrics"]} >= {"model_cpi", "model_cycles_per_packet"}
        assert not any(one["metric"].startswith("model_") for one in case["metrics"])
    assert "estimated (model: Made-up 1)" in show.text(modelled)


def test_show_says_at_saturation_alone_what_cycles_are_made_of(modelled):
    text = show.text(modelled)
    (sentence,) = explain_model.sentences(modelled, traffic="udp_flood", load="saturation")
    assert sentence in text
    assert "the instructions" in sentence
    assert "the CPI" in sentence
    table = text.partition("estimated (model")[2].partition("\n\n")[0]
    assert "UDP flood, saturation: estimated CPI" in table
    assert "equal rate" not in table
