# SPDX-License-Identifier: GPL-2.0-or-later
"""Both switches: their port counters as ovs-ofctl really printed them, their ports, and what they are called."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.switches import links, ovs, ovs_dpdk
from vsprof.switches.base import Port, PortCounters
from vsprof.switches.ovs import quoted
from vsprof.terms import plugins, schema
from vsprof.terms.errors import BadInput, RunFailed
from vsprof.terms.placement import CpuPlan, Duties
from vsprof.testbeds.patience import Patience

SWITCHES = plugins.find("vsprof.switches", "SWITCH", hyphens=True)
PRINTED = {name: Path(__file__).with_name(f"{name}.dump-ports.txt").read_text() for name in ("kernel-ovs", "ovs-dpdk")}


class Host:
    """A testbed that only writes down what it was asked; commands that contain ``fails`` end with status 1."""

    def __init__(self, fails: str = "\0", says: str = "") -> None:
        self.asked: list[str] = []
        self._fails, self._says = fails, says

    def push(self, content, path):
        self.pushed = content

    def patience(self, seconds):
        return Patience(seconds)

    def run(self, command, *, timeout=60, check=True):
        self.asked.append(command)
        failed = self._fails in command
        return SimpleNamespace(status=int(failed), stdout=self._says, stderr="ovs-vsctl: no" if failed else "")


def test_the_names_and_accesses_of_the_switches():
    assert {name: switch.accesses for name, switch in SWITCHES.items()} == {
        "kernel-ovs": ("vhost-net", "virtio-net", "veth"),
        "linux-bridge": ("vhost-net", "virtio-net", "veth"),
        "ovs-afxdp": ("veth",),
        "ovs-dpdk": ("vhost-user", "virtio-user"),
        "ovs-userspace": ("veth",),
        "vhost-switch": ("vhost-user", "virtio-user", "card"),
    }
    assert all(access in switch.mover for switch in SWITCHES.values() for access in switch.accesses)
    assert all(access in schema.ACCESSES for switch in SWITCHES.values() for access in switch.accesses)


def test_the_port_counters_of_kernel_ovs():
    assert SWITCHES["kernel-ovs"].parse_port_counters(PRINTED["kernel-ovs"]) == {
        "br0": PortCounters(0, 0, 0, 0),
        "p1": PortCounters(172404, 10353400, 244, 23800),
        "p2": PortCounters(244, 23800, 166235, 9983260),
    }


def test_the_port_counters_of_ovs_dpdk_where_some_are_unknown():
    assert SWITCHES["ovs-dpdk"].parse_port_counters(PRINTED["ovs-dpdk"]) == {
        "br0": PortCounters(0, 0, 0, 0),
        "p1": PortCounters(449505, 318640633, 1901, 134014),
        "p2": PortCounters(1901, 134014, 423454, 317077573),
    }


# ovs-ofctl --names dump-ports br0 in the lab (Open vSwitch 3.5.0): 32,068 frames of 60 bytes later it has received them.
LOCAL = """OFPST_PORT reply (xid=0x2): 2 ports
  port LOCAL: rx pkts=108460, bytes=4989180, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=2, bytes=140, drop=0, errs=0, coll=0
  port  p1: rx pkts=108460, bytes=6507620, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=2, bytes=140, drop=0, errs=0, coll=0
"""


def test_what_kernel_ovs_sends_to_its_host_is_what_the_host_received():
    counters = SWITCHES["kernel-ovs"].parse_port_counters(LOCAL)
    assert counters["br0"] == PortCounters(2, 140, 108460, counters["p1"].received_bytes)
    assert counters["p1"] == PortCounters(108460, 6507620, 2, 140)
    # The user-space datapath counts at its tap as at any other port.
    assert SWITCHES["ovs-dpdk"].parse_port_counters(LOCAL)["br0"].received_packets == 108460


def test_a_quoted_name_of_a_port_is_read_too():
    text = PRINTED["kernel-ovs"].replace("port  p1:", 'port  "p1":')
    assert "p1" in SWITCHES["kernel-ovs"].parse_port_counters(text)


def test_the_message_of_a_switch_that_is_not_there_is_no_port():
    assert SWITCHES["kernel-ovs"].parse_port_counters("ovs-ofctl: br0 is not a bridge or a socket\n") == {}


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            ["  port  p1: rx pkts=1, bytes=2", "  port p1: rx pkts=?, bytes=?", "    tx pkts=3, bytes=4", "  tx ", "  port x: rx "]
        )
    ).map("\n".join)
)
@settings(max_examples=100, deadline=None)
def test_any_text_gives_counters_or_an_error_that_fails_one_run(text):
    try:
        found = SWITCHES["kernel-ovs"].parse_port_counters(text)
    except (ValueError, KeyError):
        return
    assert all(isinstance(counters, PortCounters) for counters in found.values())


def test_a_tap_port_is_made_up_and_taken_away_again():
    host = Host()
    switch = SWITCHES["kernel-ovs"](host, CpuPlan.of(4))
    port = switch.add_port("p1", "vhost-net")
    assert (port.name, port.access, port.where) == ("p1", "vhost-net", "p1")
    assert any("ip tuntap add p1 mode tap vnet_hdr" in command for command in host.asked)
    switch.stop()
    switch.stop()
    assert [command for command in host.asked if "delete" in command] == ["ip link delete p1"]


def test_a_vhost_user_port_is_a_socket_that_qemu_owns():
    host = Host()
    port = SWITCHES["ovs-dpdk"](host, CpuPlan.of(4)).add_port("p1", "vhost-user")
    assert port.where.endswith("/p1.sock")
    assert f"type=dpdkvhostuserclient options:vhost-server-path={quoted(port.where)}" in host.asked[-1]


def test_a_socket_can_be_the_switchs_own_instead():
    host = Host()
    port = SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"socket": "server"}).add_port("p1", "vhost-user")
    assert (port.where, port.listener) == ("/run/openvswitch/p1", "switch")
    assert host.asked[-1].endswith("type=dpdkvhostuser")


def test_only_switches_that_can_be_restarted_say_so():
    able = {name for name, switch in SWITCHES.items() if switch(Host(), CpuPlan.of(4)).can_not_restart() is None}
    assert able == {"kernel-ovs", "ovs-afxdp", "ovs-dpdk", "ovs-userspace", "vhost-switch"}
    assert "use ovs-dpdk or vhost-switch" in SWITCHES["linux-bridge"](Host(), CpuPlan.of(4)).can_not_restart()


@pytest.mark.parametrize(("cpus", "pmd", "lcore"), [(2, "0x2", "0x1"), (4, "0x2", "0x1")])
def test_ovs_dpdk_polls_on_the_switchs_cpu_and_keeps_house_on_another(cpus, pmd, lcore):
    settings = SWITCHES["ovs-dpdk"](Host(), CpuPlan.of(cpus)).settings()
    assert (settings["pmd-cpu-mask"], settings["dpdk-lcore-mask"]) == (pmd, lcore)


def test_the_main_thread_can_be_put_on_the_poll_mode_threads_cpu_and_segmentation_switched_on():
    settings = SWITCHES["ovs-dpdk"](Host(), CpuPlan.of(4), {"main_thread": "pmd-cpu", "tso": "on"}).settings()
    assert settings["dpdk-lcore-mask"] == settings["pmd-cpu-mask"] == "0x2"
    assert settings["userspace-tso-enable"] == "true"
    # A change of these settings takes a restart, so they are there before the start or not at all.
    assert "userspace-tso-enable" not in SWITCHES["ovs-dpdk"](Host(), CpuPlan.of(4)).settings()


THREADS = "/proc/7/task/{0}/status:Name:\t{1}\n/proc/7/task/{0}/status:Cpus_allowed_list:\t1\n"


def with_threads(*names, sched):
    host = Host(says="".join(THREADS.format(70 + number, name) for number, name in enumerate(names)))
    switch = SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"sched": sched})
    switch._daemon = SimpleNamespace(pid=7)
    return switch, host


@pytest.mark.parametrize(
    ("sched", "command"),
    [
        ("other", []),
        ("nice", ["set -e; renice -n -20 -p 71"]),
        ("nice-10", ["set -e; renice -n -10 -p 71"]),
        ("fifo", ["set -e; chrt --fifo --pid 1 71"]),
    ],
)
def test_only_poll_mode_threads_are_given_a_scheduling_policy_and_only_if_it_is_asked_for(sched, command):
    switch, host = with_threads("ovs-vswitchd", "pmd-c01/id:9", "handler1", sched=sched)
    switch.ready()
    assert [asked for asked in host.asked if "chrt" in asked or "renice" in asked] == command


def test_the_policy_of_each_poll_mode_thread_is_kept_as_the_kernel_has_it():
    host = Host(says="ovs-vswitchd     TS      -   0\nhandler1         TS      -   0\npmd-c01/id:9     FF      1   -\n")
    switch = SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"sched": "fifo"})
    switch._daemon = SimpleNamespace(pid=7)
    assert switch.facts()["sched"] == ["pmd-c01/id:9 FF 1 -"]


def test_a_policy_without_a_thread_to_have_it_is_an_error():
    switch, _ = with_threads("ovs-vswitchd", sched="fifo")
    with pytest.raises(RunFailed, match="no poll-mode thread"):
        switch.ready()


LOCAL_PORTS = {
    "tap": ("br0", "br0", ""),
    "virtio-user": ("vsprof0", "vsprof0", "net_virtio_user0,path=/dev/vhost-net,iface=vsprof0"),
    "afxdp": ("vsprof0", "vsprof0e", "type=afxdp"),
}


@pytest.mark.parametrize("way", LOCAL_PORTS)
def test_another_port_can_stand_in_for_the_bridges_own(way):
    host = Host()
    switch = SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"local_port": way})
    port = switch.local_port()
    name, where, asked = LOCAL_PORTS[way]
    assert (port.name, port.where, port.access) == (name, where, "internal")
    assert any(asked in command for command in host.asked) or not asked
    switch.stop()
    assert ("ip link delete vsprof0" in host.asked) == (way == "afxdp")


@pytest.mark.parametrize(("way", "lacks"), [("virtio-user", "vhost_net"), ("afxdp", "AF_XDP")])
def test_a_way_to_the_host_that_this_kernel_lacks_is_refused_by_its_name(way, lacks):
    host = Host(fails="vhost-net" if way == "virtio-user" else "socket")
    host.hugepages_lacking = lambda: None
    assert f"no {lacks}" in SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"local_port": way}).unavailable()
    assert SWITCHES["ovs-dpdk"](host, CpuPlan.of(4)).unavailable() is None


@pytest.mark.parametrize(
    ("version", "offloads", "broken"),
    [
        ("3.5.0", "on", True), ("3.5.2", "on", True), ("3.3.6", "on", True), ("3.6.0", "on", True), ("3.5.0", "off", False),
        ("3.2.9", "on", False), ("3.3.7", "on", False), ("3.5.3", "on", False), ("3.6.1", "on", False), ("3.7.0", "on", False),
    ],
)  # fmt: skip
def test_a_release_that_loses_tcp_on_a_virtio_user_port_is_refused_unless_nothing_is_offloaded(version, offloads, broken):
    host = Host(says=f"ovs-vswitchd-dpdk (Open vSwitch) {version}\nDPDK 24.11.8\n")
    host.hugepages_lacking = lambda: None
    why = SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"local_port": "virtio-user", "offloads": offloads}).unavailable()
    assert bool(why) == broken
    assert not broken or f"Open vSwitch {version} clears" in why
    # Other ways to the host have nothing of it.
    assert SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"offloads": offloads}).unavailable() is None


def test_where_a_cpu_may_not_receive_a_thread_of_the_interfaces_own_does_it_there():
    host = Host(fails="rps_cpus")
    links.add(host, "p1", "veth", 1)
    thread = next(command for command in host.asked if "/sys/class/net/p1/threaded" in command)
    assert "ethtool -K p1e tso off" in thread
    assert "taskset --pid --cpu-list 1 " in thread
    assert not [command for command in host.asked if "delete" in command]


def test_a_cpu_that_may_receive_nothing_is_named_and_the_pair_is_taken_away():
    host = Host(fails="/sys/class/net/p1/")
    with pytest.raises(RunFailed, match="CPU 1 can't be made to receive what comes in by p1"):
        links.add(host, "p1", "veth", 1)
    assert host.asked[-1] == "ip link delete p1"


@pytest.mark.parametrize(("options", "longest"), [({}, "0"), ({"pmd_sleep_max": "500"}, "500")])
def test_once_the_endpoints_are_up_the_poll_mode_thread_sleeps_as_the_case_says_and_else_never(options, longest):
    host = Host()
    SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), options).ready()
    assert f"pmd-sleep-max={longest} " in f"{host.asked[-1]} "


def test_a_refused_port_fails_the_run_with_the_daemons_words():
    switch = SWITCHES["ovs-dpdk"](Host(fails="add-port"), CpuPlan.of(4))
    switch._daemon = SimpleNamespace(log=lambda: "Failed to create mempool")
    with pytest.raises(RunFailed, match="Failed to create mempool"):
        switch.add_port("p1", "vhost-user")


@pytest.mark.parametrize("name", SWITCHES)
def test_a_switch_that_never_started_stops_without_complaint(name):
    SWITCHES[name](Host(), CpuPlan.of(4)).stop()


BRIDGE = """/sys/class/net/br0/statistics/rx_packets:7
/sys/class/net/br0/statistics/rx_bytes:700
/sys/class/net/br0/statistics/tx_packets:3
/sys/class/net/br0/statistics/tx_bytes:300
/sys/class/net/p1/statistics/rx_packets:11
/sys/class/net/p1/statistics/rx_bytes:1100
/sys/class/net/p1/statistics/tx_packets:5
/sys/class/net/p1/statistics/tx_bytes:500
"""


def test_the_port_counters_of_a_linux_bridge_are_the_switchs_view_of_the_endpoint():
    """What the host sends through the bridge's own interface goes into the switch."""
    parse = SWITCHES["linux-bridge"].parse_port_counters
    assert parse(BRIDGE) == {"br0": PortCounters(3, 300, 7, 700), "p1": PortCounters(11, 1100, 5, 500)}
    assert parse("\n".join(BRIDGE.splitlines()[:-1])).keys() == {"br0"}
    assert parse("no such file") == {}


@pytest.mark.parametrize("name", ["kernel-ovs", "ovs-dpdk"])
def test_tables_are_made_when_it_is_known_who_is_behind_each_port(name):
    host = Host()
    switch = SWITCHES[name](host, CpuPlan.of(4), {"rules": "1"})
    assert switch.wants_addresses
    switch.learn(Port("p1", "vhost-net", "p1"), "52:54:00:76:67:01")
    switch.learn(Port("br0", "internal", "br0"), "52:54:00:76:67:02")
    assert not hasattr(host, "pushed")
    switch.ready()
    assert "table=2,priority=1,dl_dst=52:54:00:76:67:01,actions=output:p1\n" in host.pushed
    assert "table=2,priority=1,dl_dst=52:54:00:76:67:02,actions=output:LOCAL\n" in host.pushed
    assert any("replace-flows br0" in command for command in host.asked)


@pytest.mark.parametrize("name", ["kernel-ovs", "ovs-dpdk"])
def test_without_rules_it_learns_by_itself(name):
    switch = SWITCHES[name](host := Host(), CpuPlan.of(4))
    assert not switch.wants_addresses
    switch.ready()
    switch.settle(1)
    assert not hasattr(host, "pushed")
    assert not any("dpctl" in command for command in host.asked)


class Missing(Host):
    """A datapath with so many hits, misses and flows at each look; after the last, each look finds twice as many hits and misses."""

    def __init__(self, *looks):
        super().__init__()
        self.looks = [*looks]

    def run(self, command, *, timeout=60, check=True):
        hits, misses, flows = self.looks.pop(0)
        if not self.looks:
            self.looks.append((2 * hits, 2 * misses, flows))
        return SimpleNamespace(
            status=0, stdout=f"system@ovs-system:\n  lookups: hit:{hits} missed:{misses} lost:0\n  flows: {flows}\n", stderr=""
        )


@pytest.mark.parametrize("name", ["kernel-ovs", "ovs-dpdk"])
def test_windows_wait_until_packets_find_their_flows_and_all_are_there(name, monkeypatch):
    monkeypatch.setattr(ovs, "SETTLE_LOOK_S", 0)
    options = {"rules": "1000"} if name == "kernel-ovs" else {"rules": "1000", "flow_cache": "none"}
    looks = [(100, 900, 900), (1000, 1800, 1000), (3000, 1820, 998), (9000, 1980, 1000), (29000, 1999, 1000)]
    switch = SWITCHES[name](host := Missing(*looks), CpuPlan.of(4), options)
    switch.settle(1000)
    assert host.looks == [(58000, 3998, 1000)]


@pytest.mark.parametrize(("misses", "flows"), [(20, 1000), (0, 7)])
def test_a_datapath_that_never_settles_fails_the_run(misses, flows, monkeypatch):
    monkeypatch.setattr(ovs, "SETTLE_LOOK_S", 0)
    monkeypatch.setattr(ovs, "SETTLE_SECONDS", 0)
    host = Missing((1000, misses, flows))
    with pytest.raises(RunFailed, match=f"{misses} of the last {1000 + misses} packets did not find their flow .* which has {flows} flows"):
        SWITCHES["kernel-ovs"](host, CpuPlan.of(4), {"rules": "1000"}).settle(1000)


def test_the_cache_of_flows_is_filled_before_windows_and_only_where_there_is_one(monkeypatch):
    monkeypatch.setattr(ovs_dpdk, "SETTLE_LOOK_S", 0)
    for cache, asked in (("emc", True), ("smc", False), ("none", False)):
        host = Host(says="pmd thread numa_id 0 core_id 1:\n  packets received: 99999\n")
        monkeypatch.setattr(ovs_dpdk, "FILL_SECONDS", 0)
        SWITCHES["ovs-dpdk"](host, CpuPlan.of(4), {"flow_cache": cache}).settle(100)
        assert any("pmd-stats-show" in command for command in host.asked) == asked


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, {}),
        ({"flow_cache": "smc"}, {"smc-enable": "true", "emc-insert-inv-prob": "0"}),
        ({"flow_cache": "none"}, {"emc-insert-inv-prob": "0"}),
        ({"rxq_assign": "roundrobin"}, {"pmd-rxq-assign": "roundrobin"}),
        ({"rxq_assign": "pinned"}, {}),
        ({"auto_lb": "on"}, {"pmd-auto-lb": "true"}),
    ],
)
def test_open_vswitch_keeps_its_own_settings_where_nothing_else_is_asked_for(options, settings):
    named = {"smc-enable", "emc-insert-inv-prob", "pmd-rxq-assign", "pmd-auto-lb"}
    made = SWITCHES["ovs-dpdk"](Host(), CpuPlan.of(4), options).settings()
    assert {name: value for name, value in made.items() if name in named} == settings


def test_several_cpus_move_frames_where_a_case_has_them():
    plan = CpuPlan.of(8, Duties(movers=2, endpoints=4))
    assert SWITCHES["ovs-dpdk"](Host(), plan, {"switch_cpus": "2"}).settings()["pmd-cpu-mask"] == "0x6"
    assert "--lcores 0@0,1@1,2@2 " in SWITCHES["vhost-switch"](Host(), plan, {"switch_cpus": "2"}).command()
    assert {name for name, one in SWITCHES.items() if one.movers({"switch_cpus": "2"}) == 2 and "switch_cpus" in one.options} == {
        "kernel-ovs", "linux-bridge", "ovs-dpdk", "vhost-switch",
    }  # fmt: skip


def test_ports_of_containers_take_turns_on_the_cpus_that_move_frames(monkeypatch):
    plan = CpuPlan.of(8, Duties(movers=2, endpoints=2))
    for name in ("kernel-ovs", "linux-bridge"):
        switch = SWITCHES[name](host := Host(), plan)
        for port in ("p1", "p2"):
            switch.add_port(port, "veth")
        assert [command.split()[1] for command in host.asked if "rps_cpus" in command] == ["2", "4"]


@pytest.mark.parametrize("name", ["kernel-ovs", "linux-bridge"])
def test_a_tap_has_as_many_queues_as_its_guests_interface(name):
    for options, several in (({}, False), ({"queues": "2"}, True)):
        SWITCHES[name](host := Host(), CpuPlan.of(4), options).add_port("p1", "vhost-net")
        assert any("multi_queue" in command for command in host.asked) == several


def test_queues_can_be_pinned_to_the_poll_mode_threads_in_turn():
    plan = CpuPlan.of(8, Duties(movers=2, endpoints=4))
    switch = SWITCHES["ovs-dpdk"](host := Host(), plan, {"rxq_assign": "pinned", "queues": "2"})
    for name in ("p1", "p2"):
        switch.add_port(name, "vhost-user")
    assert [re.search(r"pmd-rxq-affinity=(\S+)", command)[1] for command in host.asked] == [quoted("0:1,1:2"), quoted("0:2,1:1")]


def test_a_daemon_that_was_restarted_gets_its_tables_again():
    switch = SWITCHES["kernel-ovs"](host := Host(), CpuPlan.of(4), {"rules": "1", "tunnel": "vxlan"})
    switch.learn(Port("p1", "vhost-net", "p1"), "52:54:00:76:67:01")
    switch.ready()
    underlays = sum("type veth" in command for command in host.asked)
    switch._start_daemon = lambda: None
    switch.restart()
    assert sum("replace-flows" in command for command in host.asked) == 2
    assert sum("type=vxlan" in command for command in host.asked) == 4
    assert sum("type veth" in command for command in host.asked) == underlays == 1


@pytest.mark.parametrize("options", [{"rxq_assign": "group"}, {"auto_lb": "on"}])
def test_one_poll_mode_thread_has_no_queues_to_share_out(options):
    with pytest.raises(BadInput, match="use `switch_cpus: 2` or more"):
        SWITCHES["ovs-dpdk"].check_options(options)
    SWITCHES["ovs-dpdk"].check_options({**options, "switch_cpus": "2"})


@pytest.mark.parametrize("name", ["kernel-ovs", "ovs-dpdk"])
def test_senders_that_would_share_connections_are_refused(name):
    for options in ({"pairs": "2"}, {"ways": "both"}):
        with pytest.raises(BadInput, match="they would share connections"):
            SWITCHES[name].check_options({"conntrack": "on", **options})
    SWITCHES[name].check_options({"conntrack": "on", "pairs": "1", "ways": "one"})
