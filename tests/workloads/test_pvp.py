# SPDX-License-Identifier: GPL-2.0-or-later
"""The topology pvp: which switches and endpoints it takes, and what it tells the switch."""

from types import SimpleNamespace

import pytest

from vsprof.runner import experiment as experiments
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.switches.vhost_switch import VhostSwitch
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.workloads.endpoints import virtio_user
from vsprof.workloads.topologies.pvp import Pvp

VALUES = {"topology": "pvp", "switch": "ovs-dpdk", "access": "auto", "frame_bytes": 64, "flows": 1}


class Host:
    cpus = 2

    def __init__(self):
        self.asked = []

    def run(self, command, *, timeout=60, check=True):
        self.asked.append(command)
        return SimpleNamespace(status=0, stdout="ok\n", stderr="")


def test_auto_is_the_access_that_its_endpoint_has():
    case = experiments.case({**VALUES, "forwarding": "mac", "path": "vector"})
    assert (case.access, case.options) == ("vhost-user", {"forwarding": "mac", "path": "vector"})
    assert case.case_id == "pvp_ovs-dpdk_vhost-user_64B_1f_forwarding-mac_path-vector"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"switch": "linux-bridge"}, ["pvp", "linux-bridge", "ovs-dpdk or vhost-switch"]),
        ({"access": "veth"}, ["veth", "vhost-user", "virtio-user"]),
        ({"endpoint": "kernel", "forwarding": "mac"}, ["forwarding", "mac", "use one of io"]),
        ({"forwarding": "macswap"}, ["forwarding", "macswap", "io, mac"]),
    ],
)
def test_what_it_can_not_run_is_named(change, words):
    with pytest.raises(BadInput) as refused:
        experiments.case({**VALUES, **change})
    assert all(word in str(refused.value) for word in words)


def test_what_comes_in_by_the_device_goes_to_the_endpoint_and_back(monkeypatch):
    host, log = Host(), "virtio: using vectorized Rx path on port 0\n"
    started, told = [], []

    class Started:
        def __init__(self, *arguments, **more):
            started.append((arguments, more))

        def log(self):
            return log

        def stop(self):
            pass

        def tell(self, command):
            told.append(command)

    monkeypatch.setattr(virtio_user, "Testpmd", Started)
    switch = OvsDpdk(host, CpuPlan.of(2))
    pvp = Pvp(host, switch, CpuPlan.of(2), "virtio-user", {"path": "vector", "forwarding": "mac"}, 1518)
    pvp.start()
    assert any("type=dpdk options:dpdk-devargs" in asked and "net_null0,size=1514" in asked for asked in host.asked)
    assert "in_port=phy,actions=output:p1" in host.asked[-1]
    assert "in_port=p1,actions=output:phy" in host.asked[-1]
    assert started[0][1] == {"more": virtio_user.LOUD, "forward": "mac", "topology": "loop"}
    assert len(started[0][0][2]) == 1
    assert pvp.sender_port == pvp.receiver_port
    pvp.forward(True)
    pvp.forward(False)
    assert told == ["start", "stop"]
    assert pvp.cpu_roles() == {0: "host-other", 1: "switch"}


def test_a_port_of_ovs_can_be_a_device_of_the_vhost_driver():
    host = Host()
    port = OvsDpdk(host, CpuPlan.of(2), {"port_type": "vhost-pmd", "queues": "2"}).add_port("p1", "vhost-user")
    assert f"net_vhost0,iface={port.where},client=1,queues=2" in host.asked[-1]
    assert "options:n_rxq=2" in host.asked[-1]
    assert "type=dpdk " in host.asked[-1]
    assert port.listener == "endpoint"


def test_vhost_switch_joins_ports_that_are_wired_and_no_others():
    VhostSwitch(Host(), CpuPlan.of(2), {"forward": "wire"}).join(None, None)
    with pytest.raises(RunFailed, match="forward: wire"):
        VhostSwitch(Host(), CpuPlan.of(2)).join(None, None)
