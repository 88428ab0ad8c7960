# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests outlive the model's coming and going.

A change of the model's state once gave a guest an interrupt twice, and one change in about thirty ended with a guest that waits for
ever for its own lock: so this failed once in three times. See safe_to_change in collectors/uarch_model/plugin.c.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from vsprof.collectors.uarch_model import BUILD, UarchModel
from vsprof.runner.experiment import SWITCHES, TOPOLOGIES, TRAFFIC
from vsprof.terms.placement import CpuPlan
from vsprof.testbeds.base import MODELLED
from vsprof.testbeds.lab import Lab
from vsprof.workloads.topologies.base import Topology
from vsprof.workloads.traffic.base import Traffic

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]

TURNS = 8
"""Two changes each."""


@pytest.fixture
def flood() -> Iterator[Traffic]:
    """Two guests whose timers and interfaces interrupt them all the time."""
    plugin = BUILD / "uarch_model.so"
    if not plugin.exists():
        pytest.skip("the model is not built: run `make setup`")
    with Lab(plugins=[plugin], clock=MODELLED) as host:
        plan = CpuPlan.of(host.cpus)
        switch = SWITCHES["ovs-dpdk"](host, plan)
        topology = TOPOLOGIES["vm2vm"](host, switch, plan, "vhost-user")
        try:
            topology.boot()
            switch.start()
            topology.start()
            switch.ready()
            kind = TRAFFIC["udp_flood"]
            traffic = kind(topology, kind.options(load="equal", rate_pps=2000), 64, 1)
            traffic.start()
            yield traffic
        finally:
            topology.stop()
            switch.stop()


def test_guests_answer_after_each_change(flood: Traffic) -> None:
    topology: Topology = flood.topology
    model = UarchModel(topology.host)
    model.setup()
    try:
        for _ in range(TURNS):
            with model.modelled_time():
                time.sleep(0.5)
            flood.check()
            topology.receiver.counters()
    finally:
        model.teardown()
