# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab's two network cards, for real: what the generator sends goes through a switch and a virtual machine, and comes back."""

from __future__ import annotations

import time

import pytest

from vsprof.runner.experiment import SWITCHES
from vsprof.testbeds.lab import Lab
from vsprof.workloads.topologies.pvp_wire import PvpWire

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]


@pytest.mark.parametrize(("name", "access", "endpoint"), [("kernel-ovs", "vhost-net", "kernel"), ("ovs-dpdk", "vhost-user", "testpmd")])
def test_what_is_sent_comes_back(name: str, access: str, endpoint: str) -> None:
    options = {"endpoint": endpoint, "forwarding": "io"}
    with Lab() as host:
        switch = SWITCHES[name](host, host.plan(), options)
        topology = PvpWire(host, switch, switch.plan, access, options, 64)
        topology.boot()
        switch.start()
        topology.start()
        switch.ready()
        topology.forward(True)
        time.sleep(3)
        topology.forward(False)
        time.sleep(0.5)
        card = switch.parse_port_counters(host.run(switch.port_counters()).stdout)["phy"]
        generator = topology._generator.counters()
        # In no time: what comes in is not what went out, for a ring of the card overflows.
        assert generator.sent_packets >= card.received_packets >= card.sent_packets > 1000
        # What comes back when it has stopped is not taken by it any more.
        assert card.sent_packets >= generator.received_packets > 1000
        topology.close()
