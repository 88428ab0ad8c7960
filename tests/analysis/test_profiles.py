# SPDX-License-Identifier: GPL-2.0-or-later
"""Which profiles a result has, and what is in them, against numbers worked out by hand from the synthetic sample."""

import pytest

from tests.analysis.test_stacks import COUNTS, with_stacks
from vsprof.analysis import profiles
from vsprof.analysis.load import load
from vsprof.analysis.sources import MODEL
from vsprof.terms import schema

DPDK, KERNEL = "ovs-dpdk+vhost-user+64", "kernel-ovs+vhost-net+64"
FLOOD = {"traffic": "udp_flood", "load": "saturation"}


def profile(result, event="instructions", case=DPDK, traffic="udp_flood", load_="saturation"):
    [found] = [one for one in profiles.stored(result) if (one.event, one.case, one.traffic, one.load) == (event, case, traffic, load_)]
    return found


def test_all_that_was_counted_is_listed_in_the_order_of_figures(modelled):
    found = profiles.stored(modelled)
    assert [one.case for one in found] == sorted((one.case for one in found), key=[KERNEL, DPDK].index)
    assert next(iter(found)).event == "instructions"
    assert {one.event for one in found} == {
        "instructions",
        "l1d_misses",
        "l1i_misses",
        "l2_misses",
        "dtlb_walks",
        "itlb_walks",
        "branch_misses",
    }
    assert {one.traffic for one in profiles.usual(found)} == {"udp_flood"}
    assert not any(one.calls for one in found)


def test_a_flat_profile_has_role_place_and_function(modelled):
    stacks = profile(modelled, case=KERNEL).folded()
    assert sum(stacks.values()) == pytest.approx(profile(modelled, case=KERNEL).total)
    assert "vhost;sample;vhost_first ([sample])" in stacks  # in the kernel
    assert "guest;sample;guest_first (sample)" in stacks


@pytest.mark.parametrize(("traffic", "word"), [("udp_flood", "packet"), ("tcp_stream", "megabit")])
def test_per_unit_of_data_it_is_what_the_report_says(modelled, traffic, word):
    one = profile(modelled, traffic=traffic)
    path = one.on_path()
    # Of the path alone: what the host does beside it is no packet's.
    assert not [stack for stack in path if stack.startswith("host-other")]
    told = MODEL.estimate(modelled, case_id=DPDK, metric=f"model_instructions_per_{word}", traffic=traffic, load="saturation").median
    assert sum(path.values()) / one.data == pytest.approx(told, rel=0.01)
    assert one.per == word


def test_call_stacks_come_before_functions_and_take_their_place(sample, tmp_path):
    path = with_stacks(sample, tmp_path / "r", COUNTS)
    [first] = load(path).functions.select(most=1).to_dict("records") or [None]
    assert first is None
    where = load(path).frame.iloc[0][schema.KEYS.names].to_dict() | {"traffic": "udp_flood", "load": "saturation"}
    counts = [schema.FunctionCount(name, 2.0, "samples", "x", "deep", "switch", 1, "user") for name in ("samples", "other")]
    schema.write(path / "functions.parquet", [schema.row(where, "perf_record", "software", one) for one in counts], schema.FUNCTION)
    found = [(one.event, one.calls) for one in profiles.usual(profiles.stored(load(path))) if one.case == where["case_id"]]
    assert found == [("samples", True), ("other", False)]


def test_where_nobody_counted_packets_there_is_no_data(sample, tmp_path):
    result = load(with_stacks(sample, tmp_path / "r", COUNTS))
    one = profile(result, "samples")
    assert one.folded() == {"switch;thread;ovs-dpdk_works (x);deep (y)": 40.0}
    assert one.data is None


def test_a_result_without_any(two_switches):
    assert profiles.stored(two_switches) == []
