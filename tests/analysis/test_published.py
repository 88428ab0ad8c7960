# SPDX-License-Identifier: GPL-2.0-or-later
"""T1's figures beside ours: a reason stands only where a counter of the result shows it."""

import re

import pytest

from vsprof.analysis import published
from vsprof.analysis.load import load


@pytest.fixture
def both(sample, tmp_path):
    return load(sample.write(tmp_path, own="uarch_model", traffics=[*sample.TRAFFICS, sample.IDLE]))


def test_all_four_figures_stand_beside_ours(both):
    text = published.markdown(both)
    for words in ("throughput up to 8x", "about 10x fewer", "L1 miss rate 103x lower", "TLB miss rate 9x lower"):
        assert words in text
    assert text.count("Published:") == 4
    assert "*Why:*" in text


def test_without_a_model_only_what_software_counted_is_said(sample, tmp_path):
    text = published.markdown(load(sample.write(tmp_path)))
    assert text.count("Published:") == 2
    assert "estimated" not in text


def test_what_no_switch_is_the_limit_of_is_said_to_its_end(both):
    assert "could have delivered more than the endpoints gave it" in published.markdown(both)


def test_what_the_guests_switch_is_told_from_what_the_switch_saves(sample, both):
    """Guests that switch ten times as often change their part, and nothing of what there is without them."""
    rows = both.frame
    theirs = rows["name"].str.startswith("context_switches_") & (rows["role"] == "guest") & (rows["switch"] == "ovs-dpdk")
    more = sample.with_frame(both, rows.assign(value=rows["value"].where(~theirs, 10 * rows["value"])))
    before, after = (_switches(result) for result in (both, more))
    assert before["part"] == "95.2"
    assert after["part"] == "99.5"
    assert before["ours"] != after["ours"]
    assert before["without"] == after["without"]
    # The sample's guests have 0.4 of 0.92 of the path.
    assert before["base"] == after["base"] == "43.5"


def _switches(result) -> dict[str, str]:
    form = (
        r"at saturation: (?P<ours>[^;]+;[^;]+).*hreads of the guests make (?P<base>\S+) % of kernel OVS's context switches in the flood"
        r" and (?P<part>\S+) % of OVS-DPDK's.*Without them, OVS-DPDK's path has (?P<without>.*) the context switches per packet"
    )
    return re.search(form, published.markdown(result)).groupdict()


def test_polls_that_hit_lower_a_rate_and_are_named(both):
    """The sample's empty polls miss nothing."""
    assert "hit the same few lines again and again" in published.markdown(both)


def test_where_empty_polls_were_not_counted_nothing_is_said_of_them(both, sample):
    early = sample.with_frame(both, both.frame[~both.frame["name"].str.startswith("empty_polls")])
    assert "polls that find nothing" not in published.markdown(early)


@pytest.mark.parametrize("options", [{"topology": "vm2host"}, {"accesses": ("virtio-net", "vhost-net")}], ids=["vm2host", "one-switch"])
def test_another_comparison_is_not_t1s(sample, tmp_path, options):
    assert "does not have both" in published.markdown(load(sample.write(tmp_path, **options)))


def test_one_repetition_is_no_reason_to_fail(sample, tmp_path):
    assert "n=1: no interval" in published.markdown(
        load(sample.write(tmp_path, repetitions=1, own="uarch_model", traffics=[*sample.TRAFFICS, sample.IDLE]))
    )


@pytest.mark.parametrize("topology", ["pvp", "pvp_wire"])
def test_what_was_published_of_pvp_stands_beside_results_with_and_without_a_wire(sample, vhost_sample, tmp_path, topology):
    options = {"forwarding": ("io",), "path": ("mergeable", "vector")}
    path = sample.write(tmp_path, traffics=[("udp_flood", "saturation")], accesses=("vhost-user",), options=options)
    found = published.beside(load(vhost_sample.change(path, "forward", topology)))
    assert [one.published.id for one in found] == ["T9-vector-io"]
    assert found[0].ratio.n
