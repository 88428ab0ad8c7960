# SPDX-License-Identifier: GPL-2.0-or-later
"""The OpenFlow tables of a case: what they hold, and when there are any."""

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.switches import openflow, tunnel
from vsprof.switches.kernel_ovs import KernelOvs
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.terms import flows
from vsprof.terms.errors import BadInput

MAC, OTHER = "52:54:00:76:67:01", "52:54:00:76:67:02"
BEHIND = {MAC: "p1", OTHER: "p2"}


def lines(**options: str) -> list[str]:
    return list(openflow.tables({**openflow.SETTINGS, **options}, BEHIND))


def bits(line: str) -> int:
    """How many bits of the sender's Ethernet address a rule looks at."""
    mask = re.search(r"dl_src=[0-9a-f:]+/([0-9a-f:]+)", line)
    return bin(int(mask[1].replace(":", ""), 16)).count("1") if mask else 0


def test_without_rules_or_connections_there_are_no_tables():
    assert not openflow.wanted(openflow.SETTINGS)
    assert openflow.wanted({**openflow.SETTINGS, "rules": "1"})
    assert openflow.wanted({**openflow.SETTINGS, "conntrack": "on"})


@given(st.sampled_from([1, 10, 100]), st.sampled_from([1, 2, 4, 8, 16]))
def test_each_flow_has_a_rule_and_the_rules_have_so_many_masks(rules, masks):
    ruled = [line for line in lines(rules=str(rules), masks=str(masks)) if "nw_dst" in line]
    assert [re.search(r"nw_dst=([0-9.]+)", line)[1] for line in ruled] == [flows.address(number) for number in range(rules)]
    assert len({bits(line) for line in ruled}) == min(rules, masks)
    # A rule that looks at more comes after those that look at less: see the module.
    priorities = {int(re.search(r"priority=(\d+)", line)[1]): bits(line) for line in ruled}
    assert sorted(priorities, reverse=True) == sorted(priorities, key=priorities.get)


def test_a_mask_tells_no_endpoints_apart():
    for kind in range(16):
        assert openflow.mac_prefix(MAC, kind) == openflow.mac_prefix("52:54:00:76:67:08", kind)


def test_connections_are_tracked_between_the_rules_and_the_ports():
    tracked = lines(rules="1", conntrack="on")
    assert f"table=0,priority=30000,ip,nw_dst={flows.address(0)},actions=ct(table=1)" in tracked
    assert "table=1,priority=1,ip,ct_state=+trk+new,actions=ct(commit,table=2)" in tracked
    assert not any("ct" in line.replace("actions", "") for line in lines(rules="1"))


def test_every_table_lets_everything_through():
    for options in ({"rules": "10", "conntrack": "on"}, {"rules": "10"}):
        there = lines(**options)
        tables = {re.match(r"table=(\d)", line)[1] for line in there}
        assert all(any(line.startswith(f"table={table},priority=0,actions") for line in there) for table in tables)


@pytest.mark.parametrize("switch", [KernelOvs, OvsDpdk])
def test_more_masks_than_rules_are_refused(switch):
    with pytest.raises(BadInput, match="masks 4 with rules 1: each rule has one mask"):
        switch.check_options({"rules": "1", "masks": "4"})
    switch.check_options({"rules": "10", "masks": "4"})


def test_each_address_is_behind_its_port():
    assert {f"table=2,priority=1,dl_dst={mac},actions=output:{port}" for mac, port in BEHIND.items()} < set(lines(rules="1"))


@pytest.mark.parametrize("kind", ["vxlan", "geneve"])
def test_what_goes_into_one_end_of_a_tunnel_comes_out_of_the_other(kind):
    known = lines(tunnel=kind)
    for sends, out, comes, port in ((OTHER, "tunnel0", "tunnel1", "p2"), (MAC, "tunnel1", "tunnel0", "p1")):
        assert f"table=2,priority=1,dl_dst={sends},actions=output:{out}" in known
        assert f"table=2,priority=2,in_port={comes},dl_dst={sends},actions=output:{port}" in known
    ends = [re.findall(r"(?:local|remote)_ip=(\S+)", one) for one in tunnel.ports(kind, kernel=True)]
    assert ends[0] == ends[1][::-1] == list(tunnel.OUTER)
    assert [re.findall(r"(?:local|remote)_ip=(\S+)", one) for one in tunnel.ports(kind, kernel=False)] == [
        [tunnel.OUTER[1]],
        [tunnel.OUTER[0]],
    ]
    assert openflow.wanted({**openflow.SETTINGS, "tunnel": kind})


def test_the_host_is_a_second_end():
    assert [*tunnel.forward(MAC, "LOCAL")][1] == f"priority=1,dl_dst={MAC},actions=output:tunnel0"


def test_the_scripts_of_both_underlays_are_shell():
    for script in (tunnel.KERNEL, tunnel.user_space("vsctl", "appctl")):
        assert subprocess.run(["bash", "-n", "-c", script], check=False).returncode == 0
