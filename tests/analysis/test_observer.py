# SPDX-License-Identifier: GPL-2.0-or-later
"""What vsprof itself took of the windows is told, where it is much."""

import copy
import dataclasses

import pytest

from tests.analysis.sample import SECONDS, with_frame
from vsprof.analysis import describe, series


@pytest.fixture
def result(two_switches):
    """Its manifest may be changed."""
    return dataclasses.replace(two_switches, manifest=copy.deepcopy(two_switches.manifest))


def lasting(result, **by_switch: float):
    """The result, its probes' intervals so many seconds long."""
    frame = result.frame.copy()
    for switch, seconds in by_switch.items():
        wanted = (frame["switch"] == switch.replace("_", "-")) & frame["enabled_s"].notna()
        frame.loc[wanted, "enabled_s"] = seconds
    return with_frame(result, frame)


def test_what_an_interval_has_beyond_its_seconds_is_the_probes(result):
    shares = series.probing(lasting(result, kernel_ovs=SECONDS / 0.9, ovs_dpdk=SECONDS / 0.4))
    assert dict(shares) == pytest.approx({"kernel-ovs": 0.1, "ovs-dpdk": 0.6})


def test_only_a_large_share_is_told(result):
    assert not series.observed(lasting(result, kernel_ovs=SECONDS, ovs_dpdk=SECONDS / 0.9))
    told = lasting(result, kernel_ovs=SECONDS, ovs_dpdk=SECONDS / 0.4)
    (text,) = series.observed(told)
    assert "60 % (ovs-dpdk)" in text
    assert "kernel-ovs" not in text
    assert text in describe.all_limits(told)


def test_where_traffic_alone_was_counted_nothing_is_known(result):
    traffic = result.frame[result.frame["collector"] == result.frame["traffic"]]
    assert series.probing(with_frame(result, traffic)).empty


def test_without_the_seconds_nothing_is_known(result):
    del result.manifest["experiment"]["windows"]["seconds"]
    assert series.probing(result).empty


def test_an_older_manifest_without_windows(result):
    del result.manifest["experiment"]
    assert not series.observed(result)
