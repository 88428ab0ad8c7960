# SPDX-License-Identifier: GPL-2.0-or-later
"""Options of switches and endpoints on this host, for real: frames get through whichever is chosen, and a path that is not there is refused."""

import json
import time

import pytest

from vsprof.bench.flood import flowing
from vsprof.runner import experiment as experiments
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.terms import errors
from vsprof.testbeds.native import Native
from vsprof.workloads.topologies.pvp import Pvp
from vsprof.workloads.traffic.forward import Forward, ForwardOptions

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
RING = 1024
VM2VM = {"topology": "vm2vm", "access": "virtio-user", "frame_bytes": 64, "flows": 1}


@pytest.fixture(scope="module")
def vhost_switch() -> None:
    with Native() as host:
        if why := VhostSwitch(host, host.plan()).unavailable():
            pytest.skip(why)


def assert_all_is_there(hops: dict[str, int]) -> None:
    """Nothing is counted twice, and nothing is lost behind the switch but what an endpoint that stopped left in its ring."""
    assert hops["sent"] >= hops["into_switch"] >= hops["out_of_switch"] > 10_000
    assert 0 <= hops["out_of_switch"] - hops["received"] <= RING


def flooded(**values: object) -> dict[str, int]:
    """Packets at each hop of a flood, once it has drained."""
    with flowing(Native(), experiments.case({**VM2VM, **values}), print) as flow:
        time.sleep(0.3)
        hops = json.loads(flow.traffic.stop()["hops.json"])
    return {hop: hops["after"][hop] - before for hop, before in hops["before"].items()}


@pytest.mark.parametrize(("path", "forwarding"), [("mergeable", "io"), ("vector", "mac"), ("packed", "io")])
def test_frames_go_in_and_come_back(path, forwarding):
    with Native() as host:
        switch = OvsDpdk(host, host.plan())
        pvp = Pvp(host, switch, host.plan(), "virtio-user", {"path": path, "forwarding": forwarding}, 64)
        try:
            switch.start()
            pvp.start()
            switch.ready()
            traffic = Forward(pvp, ForwardOptions(), 64, 1)
            traffic.start()
            time.sleep(0.5)
            traffic.check()
            traffic.stop()
            time.sleep(0.5)
            port = switch.parse_port_counters(host.run(switch.port_counters()).stdout)["phy"]
            end = pvp.sender.counters()
            assert pvp.facts()["container1"]["path"] == path
        finally:
            pvp.stop()
            switch.stop()
    # It drops what it has no room for. What it sent back came out again, but for what is still in its ring.
    assert end.received_packets >= end.sent_packets > 0.9 * end.received_packets > 10_000
    assert 0 <= end.sent_packets - port.sent_packets <= RING
    assert port.received_packets > port.sent_packets


@pytest.mark.long
@pytest.mark.parametrize("port_type", ["direct", "vhost-pmd"])
def test_both_kinds_of_port_of_ovs_dpdk_carry_a_flood(port_type):
    hops = flooded(switch="ovs-dpdk", port_type=port_type)
    assert_all_is_there(hops)


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        {"rings": "librte"},
        {"rings": "own", "socket": "server"},
        {"rings": "own", "path": "packed"},
        {"forward": "wire"},
        {"dequeue": "zero-copy"},
        {"dequeue": "zero-copy", "path": "packed"},
        {"rx": "adaptive"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_vhost_switch_carries_a_flood_whichever_option_is_chosen(vhost_switch, options):
    hops = flooded(switch="vhost-switch", **options)
    assert_all_is_there(hops)


def test_a_path_that_the_switch_does_not_offer_is_refused(vhost_switch):
    # What is lent comes back in any order.
    with pytest.raises(errors.RunFailed, match="asked for path in-order"):
        flooded(switch="vhost-switch", dequeue="zero-copy", path="in-order")
