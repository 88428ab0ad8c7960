# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics from raw counts, against numbers worked out by hand from the synthetic sample."""

import pytest

from vsprof.analysis import metrics
from vsprof.analysis.load import load
from vsprof.analysis.source import select
from vsprof.analysis.sources import SOFTWARE

DPDK, KERNEL = "ovs-dpdk+vhost-user+64", "kernel-ovs+vhost-net+64"
FLOOD = {"traffic": "udp_flood", "load": "saturation"}
TCP = {"traffic": "tcp_stream", "load": "saturation"}


def test_a_rate_is_what_was_counted(two_switches):
    rate = SOFTWARE.estimate(two_switches, case_id=DPDK, **FLOOD, metric="packet_rate_received")
    assert rate.median == pytest.approx(72e3, rel=0.1)
    assert rate.n == 3


def test_hops_add_up_to_the_total_and_are_not_clipped(two_switches):
    names = ["loss_before_switch", "loss_in_switch", "loss_after_switch", "loss_total"]
    equal = {"traffic": "udp_flood", "load": "equal"}
    before, inside, after, total = (SOFTWARE.estimate(two_switches, case_id=DPDK, **equal, metric=name).median for name in names)
    assert before == pytest.approx(-0.02)
    assert before + inside + after == pytest.approx(total)


def test_context_switches_per_packet_are_per_packet_received(two_switches):
    where = {"case_id": KERNEL, **FLOOD, "metric": "context_switches_per_packet"}
    per_second = SOFTWARE.estimate(two_switches, **{**where, "metric": "context_switches_per_second"}).median
    received = SOFTWARE.estimate(two_switches, case_id=KERNEL, **FLOOD, metric="packet_rate_received").median
    assert SOFTWARE.estimate(two_switches, **where).median == pytest.approx(per_second / received, rel=0.1)


def test_roles_sum_to_all(two_switches):
    table = select(metrics.of(two_switches), case_id=KERNEL, **FLOOD, metric="context_switches_per_second", cpu=-1)
    table = table[table["role"] != "path"]
    sums = table.assign(all=table["role"] == "all").groupby(["run_id", "window", "all"])["part"].sum().unstack()
    assert sums[True].to_numpy() == pytest.approx(sums[False].to_numpy())


def test_the_path_leaves_out_the_collectors_own_switches(two_switches):
    where = {"case_id": KERNEL, **FLOOD, "metric": "context_switches_per_second"}
    path, whole, own = (SOFTWARE.estimate(two_switches, **where, role=r).median for r in ("path", "all", "host-other"))
    assert path == pytest.approx(whole - own, rel=0.05)
    assert SOFTWARE.estimate(two_switches, **where).median == path


def test_tcp_is_never_divided_by_packets(two_switches):
    names = select(metrics.of(two_switches), traffic="tcp_stream")["metric"]
    assert not names.str.endswith("_per_packet").drop(names[names == "pmd_cycles_per_packet"].index).any()
    assert names.str.endswith("_per_megabit").any()


def test_a_count_uses_its_own_counting_time(two_switches):
    table = select(metrics.of(two_switches), metric="vm_exits_per_second", cpu=2)
    assert set(table["per"]) == {2.01}


def test_frames_at_the_switch_tell_offload(two_switches):
    size = {case: SOFTWARE.estimate(two_switches, case_id=case, **TCP, metric="frame_bytes_received").median for case in (DPDK, KERNEL)}
    assert size == pytest.approx({DPDK: 1500, KERNEL: 24_000})


def test_busy_and_idle_polling_are_told_apart(two_switches):
    busy, idle = (SOFTWARE.estimate(two_switches, case_id=DPDK, **FLOOD, metric=f"pmd_{state}").median for state in ("busy", "idle"))
    assert busy + idle == pytest.approx(1)
    assert SOFTWARE.estimate(two_switches, case_id=KERNEL, **FLOOD, metric="pmd_busy").n == 0


def test_an_uncounted_part_makes_the_sum_uncounted_and_says_why(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", drop=("context_switches_involuntary",)))
    assert SOFTWARE.estimate(result, case_id=DPDK, **FLOOD, metric="context_switches_per_second").n == 0
    assert SOFTWARE.missing(result, ["context_switches_involuntary"]) == ["`context_switches_involuntary`: not offered here"]


@pytest.mark.parametrize("accesses", [("vhost-net",), ("vhost-user",), ("vhost-net", "vhost-user")])
def test_where_nothing_was_sent_there_are_events_per_second_and_none_per_packet(sample, tmp_path, accesses):
    result = load(sample.write(tmp_path / "r", accesses=accesses, traffics=[sample.IDLE]))
    table = metrics.of(result)
    assert "context_switches_per_second" in set(table["metric"])
    assert not table["unit"].str.contains("events/[^s]").any()
    if "vhost-user" in accesses:
        where = {"case_id": DPDK, "traffic": "idle", "load": "none"}
        assert SOFTWARE.estimate(result, **where, metric="pmd_idle").median == 1
        assert SOFTWARE.estimate(result, **where, metric="pmd_cycles_per_packet").n == 0


def test_one_switch_alone_has_its_metrics(sample, tmp_path):
    result = load(sample.write(tmp_path / "r", accesses=("vhost-net",)))
    assert SOFTWARE.estimate(result, case_id=KERNEL, **FLOOD, metric="packet_rate_received").n == 3
    assert "pmd_busy" not in set(metrics.of(result)["metric"])


def test_a_number_that_nobody_counted_is_named(two_switches):
    assert "`cycles` is not in this result" in SOFTWARE.missing(two_switches, ["cycles"])[0]
    assert [text.partition(" not in")[0] for text in SOFTWARE.missing(two_switches, ["cycles", "loads"])] == ["`cycles`, `loads` are"]
