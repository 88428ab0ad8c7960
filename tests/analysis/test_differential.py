# SPDX-License-Identifier: GPL-2.0-or-later
"""What changed by function from one release to the next, against numbers worked out by hand from the synthetic sample."""

import itertools

import pytest

from tests.analysis.test_stacks import with_stacks
from vsprof.analysis import differential, functions
from vsprof.analysis.comparison import Pair
from vsprof.analysis.load import load

FLOOD = {"traffic": "udp_flood", "load": "saturation"}
KERNEL, DPDK = "kernel-ovs+vhost-net+64", "ovs-dpdk+vhost-user+64"


def test_what_fell_and_what_grew(modelled):
    changed = differential.changes(modelled, KERNEL, DPDK, "instructions", **FLOOD).set_index("function")
    before = functions.hottest(modelled, KERNEL, "instructions", 99, **FLOOD).set_index("function")["median"]
    after = functions.hottest(modelled, DPDK, "instructions", 99, **FLOOD).set_index("function")["median"]
    assert changed.loc["vhost_first", "before"] == pytest.approx(before["vhost_first"])
    assert changed.loc["vhost_first", "after"] == 0
    assert changed.loc["switch_first", "before"] == 0
    assert changed.loc["switch_first", "after"] == pytest.approx(after["switch_first"])
    assert changed["change"].sum() == pytest.approx(after.sum() - before.sum())
    assert list(changed["change"].abs()) == sorted(changed["change"].abs(), reverse=True)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (("switch", "librte_vhost.so.25.0", "rte_vhost_dequeue_burst"), ("switch", "librte_vhost.so", "rte_vhost_dequeue_burst")),
        (("switch", "librte_vhost.so.23", "librte_vhost.so.23+0x1a2b"), ("switch", "librte_vhost.so", functions.UNNAMED)),
        (("switch", "ovs-vswitchd-dpdk", "ovs-vswitchd-dpdk+0x1a2b"), ("switch", "ovs-vswitchd-dpdk", functions.UNNAMED)),
        (("softirq", "kernel", "__napi_poll"), ("softirq", "kernel", "__napi_poll")),
        (("vhost", "tun", "tun_get_user.isra.0"), ("vhost", "tun", "tun_get_user")),
        (("vhost", "kernel", "skb_segment.part.0.cold"), ("vhost", "kernel", "skb_segment")),
    ],
)
def test_functions_of_two_releases_are_told_by_the_same_names(given, kept):
    assert differential._comparable(*given) == kept


@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        ("librte_vhost.so.25.0", "librte_vhost.so"),
        ("librte_vhost.so.23+0x1a2b (librte_vhost.so.23)", "(unknown) (librte_vhost.so)"),
        ("__napi_poll ([kernel])", "__napi_poll ([kernel])"),
        ("tun_get_user.constprop.0 ([tun])", "tun_get_user ([tun])"),
        ("switch", "switch"),
    ],
)
def test_so_are_frames(frame, kept):
    assert differential._comparable_frame(frame) == kept


def test_only_neighbours_that_differ_in_the_release_alone_are_a_pair(modelled, monkeypatch):
    cases = list(modelled.cases.index)
    assert differential.pairs(modelled) == []
    monkeypatch.setattr(type(modelled), "differences", lambda self, one, other: {"release"})
    assert [(pair.base, pair.other) for pair in differential.pairs(modelled)] == list(itertools.pairwise(cases))


def test_two_switches_are_a_pair_of_their_own(modelled):
    assert differential.pairs(modelled, differential.SWITCH) == [Pair(modelled, KERNEL, DPDK)]
    [graph] = differential.graphs(modelled, differential.SWITCH)
    assert [one.counter for one in graph.pictures][:3] == ["instructions", "L1D misses", "L1I misses"]
    # No function of the sample has an LLC miss.
    assert "LLC misses" not in [one.counter for one in graph.pictures]
    assert graph.pictures[0].caption.startswith("kernel OVS → OVS-DPDK: instructions per packet, UDP flood, saturation. ")
    # 6,120 instructions of a packet are the vhost worker's first function with kernel OVS alone.
    assert "kernel OVS: 6,120; OVS-DPDK: 0; change -6,120 per packet" in graph.pictures[0].svg
    assert "host-other" not in graph.pictures[0].svg
    text = graph._repr_html_()
    assert text.count("<details>") == len(graph.pictures) - 1
    assert "No calls are shown" in text


def test_call_stacks_take_the_place_of_functions(sample, tmp_path):
    shape = {"source": "model", "event": "instructions", "collector": "uarch_model", "own": "uarch_model"}
    path = with_stacks(sample, tmp_path / "r", [("udp_flood", "saturation", "deep (y)", 8e6)], **shape)
    [graph] = differential.graphs(load(path), differential.SWITCH)
    assert ["A box stands on its caller" in one.caption for one in graph.pictures][:2] == [True, False]
    # 8 million instructions in a window of 2,000 packets.
    assert "kernel OVS: 4,000; OVS-DPDK: 4,000; change 0 per packet" in graph.pictures[0].svg


def test_the_table_and_the_pictures_of_two_releases(modelled, monkeypatch):
    monkeypatch.setattr(differential, "pairs", lambda result, what="release": [Pair(modelled, KERNEL, DPDK)])
    frame = differential.table(modelled).frame
    assert next(iter(frame["in"])) == "all functions"
    assert any("vhost_first" in text for text in frame["in"])
    [graph] = differential.graphs(modelled)
    assert "vhost_first" in graph.pictures[0].svg
    assert graph._repr_html_().startswith("<figure><svg")


def test_of_changes_the_unchanged_cases_alone_are_drawn(modelled, monkeypatch):
    cases = list(modelled.cases.index)
    for changed, drawn in ((cases[0], 0), (cases[-1], 1)):
        monkeypatch.setitem(modelled.__dict__, "changed", {case: {"pairs": "2"} if case == changed else {} for case in cases})
        monkeypatch.setattr(differential, "pairs", lambda result, what: [Pair(modelled, cases[0], cases[1])])
        assert len(differential.graphs(modelled, differential.SWITCH)) == drawn


def test_without_releases_the_reason_is_said(modelled):
    assert "release" in differential.table(modelled)
    assert differential.graphs(modelled) == []
