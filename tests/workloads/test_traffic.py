# SPDX-License-Identifier: GPL-2.0-or-later
"""Each kind of traffic, computed from what its programs really printed (the files beside this one) around made-up windows."""

import contextlib
import dataclasses
import itertools
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from vsprof.runner.experiment import TRAFFIC
from vsprof.switches.base import PortCounters
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.terms.schema import Number
from vsprof.testbeds.base import MODELLED, REAL
from vsprof.workloads.endpoints.base import Counters
from vsprof.workloads.endpoints.pktgen import Pktgen, frames_sent
from vsprof.workloads.topologies.base import Route
from vsprof.workloads.traffic import counted, udp_flood
from vsprof.workloads.traffic.base import Sample, Window, rates
from vsprof.workloads.traffic.forward import Forward
from vsprof.workloads.traffic.idle import Idle
from vsprof.workloads.traffic.ping_paced import PingOptions, PingPaced, replies
from vsprof.workloads.traffic.reconnect import Reconnect
from vsprof.workloads.traffic.tcp_stream import TcpStream, intervals
from vsprof.workloads.traffic.udp_flood import UdpFlood

HERE = Path(__file__).parent
IPERF3, STREAM, PING, PKTGEN, HOPS = (
    (HERE / name).read_text() for name in ("iperf3.json", "iperf3-stream.json", "ping.txt", "pktgen.txt", "hops.json")
)
STARTED_S = 1000.0


def window(begin_s: float, end_s: float, *, frames: int = 100, name: str = "w1") -> Window:
    """A window in which every hop saw ``frames`` frames of 60 bytes, its two clocks a second apart."""

    def sample(clock_s: float, packets: int) -> Sample:
        return Sample(Counters(clock_s, 0, 0, packets, packets * 60), Counters(clock_s + 1, packets, packets * 60, 0, 0))

    ports = (PortCounters(0, 0, 0, 0), PortCounters(frames, frames * 60, frames, frames * 60))
    return Window(name, (sample(begin_s, 0), sample(end_s, frames)), end_s - begin_s, ports, ports)


def values(numbers) -> dict[str, float | None]:
    return {number.name: number.value for number in numbers}


# --- TCP ---------------------------------------------------------------------------------------------------------


def test_iperf3s_reports_are_read_in_the_senders_clock():
    reports = intervals(IPERF3, STARTED_S)
    assert reports[0] == (STARTED_S, STARTED_S + 0.271791, 7077888, 0)
    assert reports[-1] == (STARTED_S + 10.001658, STARTED_S + 10.095718, 2752512, 0)
    assert len(reports) == 13


def test_reports_that_came_line_by_line_are_the_same():
    reports = intervals(STREAM, STARTED_S)
    assert reports[:2] == [(STARTED_S, STARTED_S + 0.279198, 5898240, 0), (STARTED_S + 0.279198, STARTED_S + 0.525313, 6422528, 0)]
    assert len(reports) == 12
    # The numbers of a window are those of the same reports in one document.
    document = json.dumps({"intervals": [json.loads(line)["data"] for line in STREAM.splitlines()[1:]]})
    assert tcp(0.2, 1.3, STREAM) == tcp(0.2, 1.3, document)


def test_a_line_in_which_iperf3_was_killed_is_left_out_and_no_other():
    assert intervals(STREAM[:-30], STARTED_S) == intervals(STREAM, STARTED_S)[:-1]
    assert intervals(STREAM.rstrip("\n"), STARTED_S) == intervals(STREAM, STARTED_S)
    assert intervals(STREAM.splitlines()[0], STARTED_S) == []
    lines = STREAM.splitlines()
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        intervals("\n".join([*lines[:3], lines[3][:-30], *lines[4:]]), STARTED_S)


def tcp(begin_s: float, end_s: float, text: str = IPERF3) -> dict[str, Number]:
    raw = {"iperf3.json": text, "started.txt": f"{STARTED_S}"}
    return {number.name: number for number in TcpStream.numbers(raw, [window(STARTED_S + begin_s, STARTED_S + end_s)])}


def test_goodput_counts_only_reports_that_lie_wholly_inside():
    # The third report ends at 0.752 and the second begins at 0.272: two are inside.
    goodput = tcp(0.27, 0.76)["goodput"]
    assert goodput.value == pytest.approx((5898240 + 6815744) * 8 / (0.751607 - 0.271791))
    assert goodput.running_s == pytest.approx(0.751607 - 0.271791)
    assert goodput.enabled_s == pytest.approx(0.49)


def test_a_report_that_straddles_the_windows_edge_is_left_out():
    assert tcp(0.28, 0.76)["goodput"].value == pytest.approx(6815744 * 8 / (0.751607 - 0.503227))


def test_a_window_without_a_report_has_no_goodput_and_says_why():
    goodput = tcp(0.30, 0.40)["goodput"]
    assert goodput.value is None
    assert "13 reports" in goodput.note


def port_alone(begin: PortCounters | None, end: PortCounters | None) -> Window:
    """A window of 50 ms in which no endpoint was asked, and both ports counted the same."""
    return Window("w1", None, 0.05, (begin, end), (begin, end))


def test_in_modelled_time_the_goodput_is_what_the_receivers_port_gave_without_headers():
    # A hundred frames of 64 KiB and their headers, in 50 ms: offloads make the kernel's frames larger than the wire's.
    seen = port_alone(PortCounters(0, 0, 500, 50_000), PortCounters(0, 0, 600, 50_000 + 100 * (65_536 + 66)))
    raw = {"iperf3.json": IPERF3, "started.txt": f"{STARTED_S}", "clock.txt": "modelled"}
    numbers = {number.name: number for number in TcpStream.numbers(raw, [seen])}
    assert numbers["goodput"].value == pytest.approx(100 * 65_536 * 8 / 0.05)
    assert numbers["retransmits"].value is None
    assert "longer than a window" in numbers["retransmits"].note


def test_endpoints_that_are_not_asked_are_known_by_the_switchs_ports():
    numbers = {number.name: number for number in rates(port_alone(PortCounters(10, 600, 0, 0), PortCounters(1010, 60_600, 800, 48_000)))}
    assert {name: number.value for name, number in numbers.items()} == {
        "window_seconds": 0.05, "packet_rate_sent": None, "packet_rate_into_switch": 20_000.0, "packet_rate_out_of_switch": 16_000.0,
        "packet_rate_received": 16_000.0, "bit_rate_received": 7_680_000.0,
    }  # fmt: skip
    assert "not asked" in numbers["packet_rate_sent"].note
    nothing = {number.name: number for number in rates(port_alone(None, None))}
    assert nothing["packet_rate_received"].value is None
    assert "does not count" in nothing["packet_rate_received"].note


def test_what_nobody_was_asked_for_is_empty_and_says_so():
    numbers = {number.name: number for number in Forward.numbers({}, [port_alone(None, None)])}
    assert all(numbers[name].value is None for name in numbers.keys() - {"window_seconds"})
    assert "not asked" in numbers["packet_rate_to_endpoint"].note
    assert "does not count" in numbers["packet_rate_received"].note


def test_a_flood_that_began_in_another_time_than_its_windows_has_no_counts_of_its_whole():
    hops = {end: {"into_switch": sent, "out_of_switch": sent, "received": sent} for end, sent in (("before", 1000), ("after", 1700))}
    for clock, received in (("emulated", 700), ("modelled", None)):
        raw = {"pktgen.txt": PKTGEN, "hops.json": json.dumps({**hops, "rate_pps": None, "clock": clock})}
        numbers = {number.name: number for number in UdpFlood.numbers(raw, [])}
        assert numbers["packets_received"].value == received
        assert ("outside modelled time" in numbers["packets_sent"].note) is (received is None)


def test_retransmits_are_summed_and_missing_where_not_told():
    assert tcp(0.0, 3.1)["retransmits"].value == 0
    assert "retransmits" not in tcp(0.0, 3.1, IPERF3.replace('"retransmits"', '"other"'))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "iperf3: error - unable to connect",
            "{}",
            "[]",
            '{"intervals": 3}',
            '{"intervals": [{}]}',
            '{"intervals": [3]}',
            IPERF3[:3000],
        ),
        *('{"event": 3}\n[]\n', '{"event":"start"}\n3\n', '{"event":"interval"}', '{"event":"interval","data":{}}'),
    ],
)
def test_what_is_not_iperf3s_json_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        intervals(text, 0)


def test_an_interval_whose_fields_are_no_numbers_is_refused():
    for fields in (
        {"start": "0", "end": "1", "bytes": 7},
        {"start": 0, "end": 1, "bytes": "many"},
        {"start": 0, "end": 1, "bytes": 7, "retransmits": None},
    ):
        text = json.dumps({"intervals": [{"sum": fields}]})
        with pytest.raises(ValueError, match="iperf3"):
            intervals(text, 0)


# --- ping --------------------------------------------------------------------------------------------------------


def ping(begin_s: float, end_s: float, text: str = PING) -> dict[str, Number]:
    return {n.name: n for n in PingPaced.numbers({"ping.txt": text, "rate_hz.txt": "50"}, [window(begin_s, end_s)])}


@pytest.mark.parametrize("rate_hz", [100, 1000, 333, 0.5])
def test_a_rate_of_whole_milliseconds_is_taken(rate_hz):
    assert PingOptions(rate_hz=rate_hz).rate_hz == rate_hz


def test_a_rate_that_ping_would_change_is_refused_with_the_next_ones():
    with pytest.raises(ValidationError, match=r"rate_hz 400 is a request each 2\.5 ms.*: use 500 \(2 ms\) or 333\.3 \(3 ms\)"):
        PingOptions(rate_hz=400)


def test_replies_are_read_with_clock_number_and_round_trip():
    found = replies(PING)
    assert found[0] == (1795237283.562771, 1, pytest.approx(0.00332))
    assert found[1] == (1795237283.582821, 2, pytest.approx(0.00267))
    assert len(found) == 119


def made_up(trips_ms: list[float], lost: tuple[int, ...] = ()) -> str:
    """A ping every second from clock 100 on."""
    lines = [
        f"[{100 + i + ms / 1000:.6f}] 64 bytes from 10.77.0.2: icmp_seq={i + 1} ttl=64 time={ms} ms"
        for i, ms in enumerate(trips_ms)
        if i + 1 not in lost
    ]
    return "\n".join(lines)


def test_percentiles_of_known_round_trips():
    found = ping(99.5, 300, made_up([float(ms) for ms in range(1, 101)]))
    assert found["rtt_p50"].value == pytest.approx(0.050, rel=0.002)
    assert found["rtt_p90"].value == pytest.approx(0.090, rel=0.002)
    assert found["rtt_p99"].value == pytest.approx(0.099, rel=0.002)
    assert found["rtt_p999"].value == pytest.approx(0.100, rel=0.002)
    assert (found["rtt_min"].value, found["rtt_max"].value) == (0.001, 0.1)
    assert found["rtt_mean"].value == pytest.approx(0.0505)


def test_a_lost_reply_is_a_request_without_a_reply():
    found = ping(99.5, 300, made_up([2.0] * 10, lost=(4, 5)))
    assert (found["requests"].value, found["replies"].value) == (10, 8)


def test_a_request_belongs_to_the_window_it_was_sent_in():
    # Sent at 100 and at 101, answered half a second later: the window ends between sending and answer.
    found = ping(100.9, 101.2, made_up([500.0, 500.0]))
    assert (found["requests"].value, found["rtt_p50"].value) == (1, pytest.approx(0.5, rel=0.002))


def test_a_duplicate_answer_is_one_reply():
    text = made_up([2.0, 2.0])
    found = ping(99.5, 300, text + "\n" + text.splitlines()[0] + " (DUP!)")
    assert (found["requests"].value, found["replies"].value) == (2, 2)


def test_a_window_in_which_nobody_answered_is_empty_and_says_so():
    found = ping(5000, 5001)
    assert found["rtt_p50"].value is None
    assert "no request" in found["rtt_p50"].note
    assert found["request_rate"].value == 50


@given(st.lists(st.floats(0.001, 10_000).map(lambda ms: round(ms, 3)), min_size=1, max_size=50))
@settings(max_examples=40, deadline=None)
def test_percentiles_rise_and_stay_between_the_extremes(trips):
    found = ping(0, 1e9, made_up(trips))
    ladder = [found[name].value for name in ("rtt_min", "rtt_p50", "rtt_p90", "rtt_p99", "rtt_p999", "rtt_max")]
    assert all(low <= high * 1.002 for low, high in itertools.pairwise(ladder))


# --- UDP ---------------------------------------------------------------------------------------------------------


def test_pktgens_count_of_frames():
    assert frames_sent(PKTGEN) == 413902


@pytest.mark.parametrize("text", ["", "Params: count 0", "pkts-sofar: many"])
def test_what_is_not_pktgens_file_is_refused(text):
    with pytest.raises(ValueError, match="pkts-sofar"):
        frames_sent(text)


def flood(hops: str = HOPS, *windows: Window) -> list[Number]:
    return list(UdpFlood.numbers({"pktgen.txt": PKTGEN, "hops.json": hops}, windows))


def test_the_loss_of_each_hop_is_the_difference_of_two():
    found = values(flood())
    assert found["packets_sent"] - found["packets_into_switch"] == 0
    assert found["packets_into_switch"] - found["packets_out_of_switch"] == 662206 - 605788
    assert found["packets_out_of_switch"] - found["packets_received"] == 0
    assert {number.window for number in flood()} == {"flood"}


def test_saturation_asks_for_no_rate_and_equal_for_one():
    asked = {n.name: n for n in flood()}["offered_rate"]
    assert asked.value is None
    assert "saturation" in asked.note
    assert values(flood(HOPS.replace("null", "5000")))["offered_rate"] == 5000


def test_a_window_of_a_flood_has_rates_of_its_own():
    found = [n for n in flood(HOPS, window(10, 12, frames=100)) if n.window == "w1"]
    assert values(found) == {
        "window_seconds": 2, "packet_rate_sent": 50, "packet_rate_into_switch": 50, "packet_rate_out_of_switch": 50,
        "packet_rate_received": 50, "bit_rate_received": 100 * 60 * 8 / 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "3", '{"before": {}, "after": {}, "rate_pps": null}', '{"before": [], "after": [], "rate_pps": null}']
)
def test_damaged_hops_become_no_numbers(text):
    with pytest.raises(ValueError):  # noqa: PT011
        flood(text)


def test_a_window_in_which_no_time_passed_becomes_no_rate():
    with pytest.raises(ValueError):  # noqa: PT011
        list(rates(window(10, 10)))


class Flooded:
    """A topology of which each reading finds ten more frames at every hop; keeps what pktgen was told."""

    name, interface, address, mac = "guest1", "eth0", "10.77.0.1", "52:54:00:76:67:01"
    returns = False
    clock = REAL

    def __init__(self):
        self.read, self.told = 0, []
        self.plan, self.last = CpuPlan.of(4), 0
        self.sender = self.receiver = self.switch = self.host = self
        self.sender_port, self.receiver_port = SimpleNamespace(name="p1"), SimpleNamespace(name="p2")
        self.routes = [Route(self, self, self.sender_port, self.receiver_port)]

    @contextlib.contextmanager
    def polling_last(self, cpus):
        assert cpus == self.plan.own
        self.last += 1
        yield
        self.last -= 1

    def port_counters(self):
        assert self.last == 1, "who polls keeps the host from its answer"
        self.read += 10
        return "ports"

    def parse_port_counters(self, text):
        return {"p1": PortCounters(self.read, 0, 0, 0), "p2": PortCounters(0, 0, self.read, 0)}

    def counters(self):
        return Counters(0, self.read, 0, 0, 0)

    def run(self, command, timeout=60):
        self.told += [word for word in ("stop",) if f"echo {word} >" in command]
        self.told += re.findall(r"^echo '(.*)' >", command)
        return SimpleNamespace(stdout="") if command == "ports" else f"pkts-sofar: {self.read}"

    def flood(self, frames):
        return Pktgen(self, frames)

    def spawn(self, command, may_fail):
        self.told.append("start")
        return SimpleNamespace(finished=lambda: False, result=lambda seconds: "")


@pytest.fixture
def flooded(monkeypatch):
    monkeypatch.setattr(counted, "DRAIN_S", 0)
    topology = Flooded()
    traffic = UdpFlood(topology, udp_flood.FloodOptions(), 64, 1)
    traffic.start()
    return topology, traffic


def test_a_flood_is_counted_from_its_start_to_its_end(flooded):
    topology, traffic = flooded
    assert values(UdpFlood.numbers(traffic.stop(), []))["packets_into_switch"] == 10
    assert topology.told == ["start", "stop"]


def test_what_is_sent_in_own_windows_belongs_to_no_floods_losses(flooded):
    topology, traffic = flooded
    traffic.before_own_windows()
    assert topology.told == ["start", "stop", "start"]
    counted = topology.read
    assert values(UdpFlood.numbers(traffic.stop(), [])) == {
        "packets_sent": 10, "packets_into_switch": 10, "packets_out_of_switch": 10, "packets_received": 10, "offered_rate": None,
    }  # fmt: skip
    assert topology.read > counted
    assert topology.told[-1] == "stop"


def test_a_flood_along_two_routes_is_counted_at_both(flooded):
    topology, _ = flooded
    back = Flooded()
    back.name = "guest2"
    topology.routes = [*topology.routes, Route(back, back, topology.receiver_port, topology.sender_port)]
    topology.parse_port_counters = lambda text: {name: PortCounters(topology.read, 0, 2 * topology.read, 0) for name in ("p1", "p2")}
    traffic = UdpFlood(topology, udp_flood.FloodOptions(), 64, 1)
    traffic.start()
    assert back.told == ["start"]
    raw = traffic.stop()
    assert {"pktgen.txt", "pktgen-2.txt"} < raw.keys()
    # Each reading finds ten more at each port: two ports received ten each, and sent twenty each.
    found = values(UdpFlood.numbers(raw, []))
    assert (found["packets_into_switch"], found["packets_out_of_switch"]) == (20, 40)
    assert found["packets_sent"] == sum(int(raw[name].split()[-1]) for name in ("pktgen.txt", "pktgen-2.txt"))


def test_along_several_routes_no_rate_is_searched_and_other_traffic_is_not_sent(flooded):
    topology, flood = flooded
    topology.routes, topology.has_stack, topology.can_not_flood = topology.routes * 2, True, lambda paced, flows: None
    assert flood.unavailable() is None
    assert not flood.asks_endpoints()
    searched = UdpFlood(topology, udp_flood.FloodOptions(load="ndr"), 64, 1)
    assert "this case has 2 of each: use load saturation or equal" in searched.unavailable()
    assert "use `pairs: 1`" in TcpStream(topology, TcpStream.options(), 64, 1).unavailable()


def test_a_flood_of_another_generator_is_counted_by_its_interface(flooded):
    raw = flooded[1].stop()
    del raw["pktgen.txt"]
    hops = json.loads(raw["hops.json"])
    hops["after"]["sent"] = hops["before"]["sent"] + 12
    assert values(UdpFlood.numbers({"hops.json": json.dumps(hops)}, []))["packets_sent"] == 12


def test_traffic_of_programs_is_not_for_an_endpoint_without_a_stack(flooded):
    topology, flood = flooded
    topology.has_stack = False
    topology.can_not_flood = lambda paced, flows: "no pace" if paced else None
    ping = PingPaced(topology, PingPaced.options(), 64, 1)
    assert "no network stack" in ping.unavailable()
    assert flood.unavailable() is None
    paced = UdpFlood(topology, udp_flood.FloodOptions(load="equal", rate_pps=10), 64, 1)
    assert paced.unavailable() == "no pace"
    assert Idle(topology, Idle.options(), 64, 1).unavailable() is None


def test_in_modelled_time_is_all_that_lasts_no_longer(flooded):
    topology, flood = flooded
    topology.clock, topology.has_stack, topology.can_not_flood = MODELLED, True, lambda paced, flows: None
    assert flood.unavailable() is None
    for one in (PingPaced, Idle, TcpStream):
        assert one(topology, one.options(), 64, 1).unavailable() is None
    restarted = Reconnect(topology, Reconnect.options(), 64, 1)
    assert "reconnect takes longer than modelled time can last" in restarted.unavailable()


def test_a_flood_at_a_given_rate_owes_nothing_for_the_time_before_modelled_time(flooded):
    topology, _ = flooded
    for load, told in (("equal", ["delay 2147483647", "ratep 100000"]), ("saturation", [])):
        rate = 100_000 if load == "equal" else None
        traffic = UdpFlood(topology, udp_flood.FloodOptions(load=load, rate_pps=rate), 64, 1)
        traffic.start()
        topology.told.clear()
        traffic.hold()
        traffic.go_on()
        assert topology.told == told


# --- idle --------------------------------------------------------------------------------------------------------


def test_of_idle_a_window_has_its_length_and_whatever_passed_all_the_same():
    found = list(Idle.numbers({}, [window(10, 12, frames=4, name="w1"), window(12, 14, frames=0, name="uarch_model-1")]))
    assert {(n.window, n.name): n.value for n in found if n.name in ("window_seconds", "packet_rate_received")} == {
        ("w1", "window_seconds"): 2, ("w1", "packet_rate_received"): 2,
        ("uarch_model-1", "window_seconds"): 2, ("uarch_model-1", "packet_rate_received"): 0,
    }  # fmt: skip


def test_a_port_that_the_switch_does_not_count_has_no_rate_and_says_so():
    uncounted = dataclasses.replace(window(10, 12, frames=4), into_switch=(None, None))
    found = {number.name: number for number in rates(uncounted)}
    assert found["packet_rate_into_switch"].value is None
    assert "does not count this port" in found["packet_rate_into_switch"].note
    assert found["packet_rate_out_of_switch"].value == found["packet_rate_received"].value == 2


def test_idle_sends_nothing():
    traffic = Idle(None, Idle.options(), 64, 1)
    traffic.start()
    traffic.check()
    traffic.before_own_windows()
    assert traffic.stop() == {}
    assert traffic.settings.load == "none"


# --- tcp_stream: whether it connects ------------------------------------------------------------------------------


class Deaf:
    """Two endpoints that reach each other, but by TCP; ``finished``: iperf3 has given up."""

    chosen: ClassVar[dict[str, str]] = {}
    address = "10.77.0.2"

    def __init__(self, name="guest1", finished=False):
        self.name, self._finished = name, finished
        self.sender = self
        self.receiver = self if name == "guest2" else Deaf("guest2", finished)

    def spawn(self, command, may_fail):
        return SimpleNamespace(finished=lambda: self._finished)

    def counters(self):
        return Counters(0, 0, 0, 0, 0)

    def run(self, command, *, seconds=30, may_fail=False):
        listens = ":1451 [0-9A-F:]* 0A "
        return "the line of its socket" if listens in command else "unable to connect" if "iperf3.json" in command else ""


@pytest.mark.parametrize(
    ("finished", "words"), [(False, "no TCP connection to guest2 in 30 s(.|\n)*offloads: off"), (True, "unable to connect")]
)
def test_a_path_that_loses_tcp_alone_is_one_clear_error(finished, words):
    with pytest.raises(RunFailed, match=words):
        TcpStream(Deaf(finished=finished), TcpStream.options(), 64, 1).start()


# --- Whatever was recorded ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TRAFFIC)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_text_gives_numbers_or_a_value_error(kind, data):
    text = st.text(max_size=60) | st.sampled_from(
        [
            IPERF3,
            STREAM,
            STREAM[: len(STREAM) // 2],
            '{"event": 3}\n[]\n',
            PING,
            PKTGEN,
            HOPS,
            "1000",
            "null",
            "[1]",
            "[1e400.5] 6 bytes from x icmp_seq=1 time=1.2.3 ms",
        ]
    )
    json_like = st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda x: st.lists(x, max_size=2) | st.dictionaries(KEYS, x, max_size=3),
        max_leaves=6,
    )
    one = text | json_like.map(json.dumps)
    files = (
        "iperf3.json",
        "started.txt",
        "ping.txt",
        "rate_hz.txt",
        "pktgen.txt",
        "hops.json",
        "windows.jsonl",
        "stream.json",
        "outage.json",
        "search.json",
        "probe.json",
    )
    raw = {name: data.draw(one) for name in files}
    try:
        numbers = list(TRAFFIC[kind].numbers(raw, [window(1000, 1002)]))
    except ValueError:
        return
    assert all(isinstance(number, Number) for number in numbers)


KEYS = st.sampled_from(
    ["sent", "intervals", "sum", "start", "end", "bytes", "before", "after", "rate_pps", "into_switch", "out_of_switch", "received"]
)


def test_a_flood_whose_start_returned_early_may_still_flow(flooded):
    """pktgen's own word counts, not the end of the write that started it."""
    topology, traffic = flooded
    traffic._flood.floods[0]._job = SimpleNamespace(finished=lambda: True)
    topology.sender.run = lambda command: "Result: Starting"
    traffic.check()
    topology.sender.run = lambda command: "Result: OK: 100(c90+d10) usec, 10 (60byte,0frags)"
    with pytest.raises(RunFailed, match="ended early"):
        traffic.check()


# --- forward -----------------------------------------------------------------------------------------------------


def test_what_comes_back_is_counted_at_each_hop_by_its_own_clock():
    ends = [Sample(one, one) for one in (Counters(10.0, 100, 6000, 50, 3000), Counters(12.0, 2100, 126000, 1850, 111000))]
    ports = PortCounters(1000, 60000, 40, 2400), PortCounters(9000, 540000, 1640, 98400)
    found = {number.name: number.value for number in Forward.numbers({}, [Window("w1", (ends[0], ends[1]), 4.0, ports, ports)])}
    assert found == {
        "window_seconds": 4.0, "packet_rate_into_switch": 2000.0, "packet_rate_to_endpoint": 1000.0, "packet_rate_from_endpoint": 900.0,
        "packet_rate_received": 400.0, "bit_rate_received": 192000.0,
    }  # fmt: skip


def test_a_clock_that_stood_still_is_an_error():
    one = Sample(Counters(10.0, 1, 1, 1, 1), Counters(10.0, 1, 1, 1, 1))
    with pytest.raises(ValueError, match="stood still"):
        list(Forward.numbers({}, [Window("w1", (one, one), 1.0, (PortCounters(0, 0, 0, 0),) * 2, (PortCounters(0, 0, 0, 0),) * 2)]))


def test_forwarding_is_for_a_topology_that_returns_frames_and_a_flood_is_not(flooded):
    topology, flood = flooded
    assert "use topology pvp" in Forward(topology, Forward.options(), 64, 1).unavailable()
    topology.returns, topology.has_stack = True, False
    assert Forward(topology, Forward.options(), 64, 1).unavailable() is None
    assert "use traffic forward" in flood.unavailable()


@pytest.mark.parametrize("still", [True, False])
def test_what_takes_no_notice_of_a_pause_takes_turns_where_its_topology_stands_still(flooded, still):
    topology, _ = flooded
    topology.stands_still = lambda: still
    of = [
        (Forward, {}, still), (Idle, {}, still), (UdpFlood, {}, still),
        # At a rate of its own it would make up for the time; streams and pings have clocks.
        (UdpFlood, {"load": "equal", "rate_pps": 1000}, False), (TcpStream, {}, False), (PingPaced, {}, False),
    ]  # fmt: skip
    for kind, options, takes_turns in of:
        assert kind(topology, kind.options(**options), 64, 1).stands_still() is takes_turns, (kind, options)
