# SPDX-License-Identifier: GPL-2.0-or-later
"""The topology pvp_paced: who sends, what that is told, and what can be sent."""

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from vsprof.switches.base import Port
from vsprof.switches.ovs_dpdk import OvsDpdk
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import CpuPlan, Thread
from vsprof.testbeds.wire import Wire
from vsprof.workloads.endpoints import probe, wire_probe
from vsprof.workloads.endpoints.base import Burst, Frames
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.endpoints.wire_probe import WireFlood, WireProbe
from vsprof.workloads.topologies.pvp_paced import PvpPaced
from vsprof.workloads.traffic import counted
from vsprof.workloads.traffic.forward import Forward
from vsprof.workloads.traffic.paced_frames import PacedFrames
from vsprof.workloads.traffic.udp_flood import FloodOptions, UdpFlood

CARDS = Wire("0000:01:00.0", "0000:02:00.0")
PHY = Port("phy", "device", CARDS.switch)
TWO_PORTS = Report.model_validate_json((Path(__file__).parent / "frame-probe.jsonl").read_text().splitlines()[-1])
REPORT = TWO_PORTS.model_copy(update={"ports": TWO_PORTS.ports[:1]})


class Host:
    """A host with frame-probe. It answers what ``says`` has for a word of the command, and writes down what it is asked."""

    cpus, name, clock, cards_emulated = 4, "lab", "modelled", True

    def __init__(self, **says: str) -> None:
        self.asked, self.started, self.says = [], [], says

    def run(self, command, *, timeout=60, check=True):
        self.asked.append((command, timeout))
        said = next((answer for word, answer in self.says.items() if word in command), "ok\n")
        return SimpleNamespace(status=0, stdout=said, stderr="")

    def polling_last(self, cpus):
        return contextlib.nullcontext()

    def start(self, name, command, **how):
        self.started.append((name, command, how))
        return SimpleNamespace(pid=7, log=lambda: probe.READY, alive=lambda: True, stop=lambda: None)

    def patience(self, seconds):
        return SimpleNamespace(over=lambda: False)


@pytest.fixture
def made():
    host = Host(**{
        "' wait": f"ok\n{REPORT.model_dump_json()}\n", "wait": f"{REPORT.model_dump_json()}\n", "report": f"{REPORT.model_dump_json()}\n",
    })  # fmt: skip
    return SimpleNamespace(host=host, end=WireProbe(host, [CARDS.load], PHY, 3, 0))


def frames(rate_pps=None) -> Frames:
    return Frames(64, 1, rate_pps, "", "", "", "10.77.0.250")


def told(host: Host) -> list[str]:
    """What frame-probe was told, but for reports."""
    return [command for command, _ in host.asked if "start " in command or "stop" in command]


def test_the_probe_polls_its_card_alone_and_listens_on_the_housekeeping_cpu(made):
    [(name, command, how)] = made.host.started
    assert name == "generator"
    assert "-a 0000:02:00.0" in command
    assert "--no-pci" not in command
    assert "--lcores 0@0,1@3" in command
    assert how["cpus"] == [0, 3]
    bound, dropping = (next(i for i, (asked, _) in enumerate(made.host.asked) if word in asked) for word in ("uio_pci_generic", "RXDCTL"))
    assert bound < dropping


def test_nothing_of_it_is_counted(made, monkeypatch):
    threads = [Thread("generator:dpdk-worker1", 8, "guest", (3,)), Thread("generator:frame-probe", 7, "host-other", (0,))]
    monkeypatch.setattr(made.end._probe, "threads", lambda: threads)
    assert {thread.role for thread in made.end.threads()} == {"host-other"}


def test_one_port_is_both_ends(made):
    assert made.end.counters() == REPORT.counters()[0] == REPORT.counters()[1]
    assert TWO_PORTS.counters()[0] != TWO_PORTS.counters()[1]
    with pytest.raises(ValueError, match="ports"):
        Report.model_validate_json(REPORT.model_copy(update={"ports": ()}).model_dump_json())


def test_what_it_can_send(made):
    assert made.end.can_not_flood(True, 1) is None
    assert made.end.can_not_burst() is None
    assert made.end.can_not_pace(made.end) is None
    assert "use topology vm2vm" in made.end.can_not_pace(SimpleNamespace(name="other"))
    assert "topology pvp_wire with traffic forward" in made.end.can_not_flood(False, 1)
    assert "one flow and not 2" in made.end.can_not_flood(True, 2)
    with pytest.raises(RunFailed, match="it has no network stack: true"):
        made.end.run("true")


def test_a_flood_goes_in_bursts_and_a_single_frame_does_not(made):
    flood = made.end.flood(frames(400_000))
    flood.start()
    made.end.probe().begin(350e-6, 64)
    sent, single = told(made.host)
    assert "start period-us=2.5 frame-bytes=64 warmup=0 burst=32'" in sent
    assert "start period-us=350 frame-bytes=64'" in single


def test_before_modelled_time_a_flood_stops_and_in_it_begins_anew(made):
    flood = made.end.flood(frames(400_000))
    for do in (flood.start, flood.hold, flood.go_on):
        do()
    assert ["stop" if "stop" in one else "start" for one in told(made.host)] == ["start", "stop", "start"]
    asked = [command for command, _ in made.host.asked]
    assert asked.index(next(one for one in asked if one.endswith(" wait"))) == asked.index(told(made.host)[1]) + 1


def test_a_burst_is_one_command_that_waits_for_the_last_frame(made):
    flood = made.end.flood(frames())
    assert flood.awaits_bursts
    assert flood.burst_sent() is None
    flood.burst(20_000, 400_000)
    [(command, timeout)] = [asked for asked in made.host.asked if "wait" in asked[0]]
    assert "'start period-us=2.5 frame-bytes=64 warmup=0 burst=32 count=20000' wait" in command
    assert timeout >= 600
    due = REPORT.offered + REPORT.skipped
    assert flood.burst_sent() == Burst(REPORT.offered, pytest.approx(due / 400_000))


def test_as_fast_as_it_goes_is_the_highest_rate_that_it_knows(made):
    flood = made.end.flood(frames())
    flood.burst(10_000, None)
    assert "period-us=0.01 " in told(made.host)[0]


def test_what_frame_probe_refuses_is_told_with_what_was_asked():
    host = Host(start="error: period-us: need 0.01 to 10000000 microseconds\n")
    flood = WireProbe(host, [CARDS.load], PHY, 3, 0).flood(frames(200_000_000))
    assert isinstance(flood, WireFlood)
    with pytest.raises(RunFailed, match=r"start period-us=0\.005 .*: error: period-us: need 0\.01"):
        flood.start()
    with pytest.raises(RunFailed, match=r"count=5: error: period-us"):
        flood.burst(5, 20_000_000)


def test_a_host_without_frame_probe_is_told_of(monkeypatch):
    monkeypatch.delenv(probe.VARIABLE, raising=False)
    host = Host()
    host.run = lambda command, **how: SimpleNamespace(status=int("test -x" in command), stdout="ok", stderr="")
    with pytest.raises(RunFailed, match=r"generator: this host has no /usr/local/bin/frame-probe"):
        WireProbe(host, [CARDS.load], PHY, 3, 0)


# --- The topology ----------------------------------------------------------------------------------------------------


@pytest.fixture
def path(monkeypatch):
    """The topology as it is started, without its machine."""
    host = Host(report=f"{REPORT.model_dump_json()}\n")
    topology = PvpPaced(host, OvsDpdk(host, CpuPlan.of(4)), CpuPlan.of(4), "vhost-user", {"endpoint": "testpmd"})
    done = topology.done = []
    topology._wire = CARDS

    def join():
        topology.sender_port = topology.receiver_port = PHY
        topology._forward = lambda on: done.append(on) or ""

    monkeypatch.setattr(topology, "_join", join)
    topology.start()
    return topology


def test_the_machine_sends_back_before_anything_is_sent_and_the_generator_is_both_ends(path):
    assert path.done == [True]
    assert path.sender is path.receiver
    assert path.sender.name == wire_probe.NAME
    assert path.sender.port is PHY
    assert path.cpu_roles() == {0: "host-other", 1: "switch", 2: "guest", 3: "host-other"}


def test_floods_at_a_rate_and_single_frames_can_be_sent_and_nothing_comes_by_itself(path):
    for load, more in (("ndr", {}), ("pdr", {}), ("equal", {"rate_pps": 1000})):
        assert UdpFlood(path, FloodOptions(load=load, **more), 64, 1).unavailable() is None
    assert "pvp_wire with traffic forward" in UdpFlood(path, FloodOptions(), 64, 1).unavailable()
    assert PacedFrames(path, PacedFrames.options(), 64, 1).unavailable() is None
    assert "use topology pvp or pvp_wire" in Forward(path, Forward.options(), 64, 1).unavailable()


def test_the_one_end_is_asked_once_for_what_it_sent_and_got(path, monkeypatch):
    asked = []
    monkeypatch.setattr(path.sender, "counters", lambda: asked.append(1) or REPORT.counters()[0])
    ports = {"phy": SimpleNamespace(received_packets=3, sent_packets=2)}
    monkeypatch.setattr(path.switch, "parse_port_counters", lambda text: ports)
    port = REPORT.ports[0]
    assert counted.hops(path) == {"sent": port.sent_packets, "into_switch": 3, "out_of_switch": 2, "received": port.received_packets}
    assert asked == [1]
