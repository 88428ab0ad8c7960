# SPDX-License-Identifier: GPL-2.0-or-later
"""The search for no-drop and partial-drop rates, on paths that are made up: what MLRsearch is told, and what becomes of what it says."""

import contextlib
import json
import random
import time
from pathlib import Path as File
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.switches.base import PortCounters
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import CpuPlan
from vsprof.terms.schema import Number
from vsprof.workloads import mlrsearch, search
from vsprof.workloads.endpoints.base import Burst, Counters, Flood, Frames
from vsprof.workloads.endpoints.pktgen import Pktgen
from vsprof.workloads.endpoints.probe import ProbeFlood
from vsprof.workloads.endpoints.probe_report import Report
from vsprof.workloads.search import Found, Settings, Trial, Trials, numbers
from vsprof.workloads.topologies.base import Route
from vsprof.workloads.traffic import counted, trials
from vsprof.workloads.traffic.udp_flood import FloodOptions, UdpFlood

HERE = File(__file__).parent
PKTGEN = (HERE / "pktgen.txt").read_text()
REPORT = Report.model_validate_json((HERE / "frame-probe.jsonl").read_text().splitlines()[-1])


def frames(rate_pps: int) -> Frames:
    return Frames(64, 1, rate_pps, "52:54:00:76:67:01", "52:54:00:76:67:02", "10.77.0.1", "10.77.0.250")


class Path:
    """Carries ``capacity`` packets/s. Of every ``unlucky``-th trial it loses one frame in a thousand, whatever the rate; the sender can
    send ``speed`` packets/s, and falls back by the share ``lateness`` in any case."""

    def __init__(self, capacity: float, *, unlucky: int = 0, speed: float = 1e9, lateness: float = 0, strays: int = 0) -> None:
        self.capacity, self.unlucky, self.speed, self.lateness, self.strays = capacity, unlucky, speed, lateness, strays
        self.asked: list[int] = []

    def __call__(self, rate_pps: int, seconds: float) -> Trial:
        self.asked.append(rate_pps)
        due = int(rate_pps * seconds)
        sent = min(int(due * (1 - self.lateness)), int(self.speed * seconds))
        out = min(sent, int(self.capacity * seconds))
        if self.unlucky and len(self.asked) % self.unlucky == 0:
            out -= max(1, sent // 1000)
        return Trial(rate_pps=rate_pps, due=due, sent=sent, into_switch=sent, out_of_switch=out, received=out + self.strays)


def find(load: str, wanted: Settings, attempt: search.Try) -> Found:
    return search.find([load], wanted, Trials(attempt, time.monotonic))[load]


def named(found: Found) -> dict[str, Number]:
    return {number.name: number for number in numbers(found)}


# --- What is found -------------------------------------------------------------------------------------------------------


@given(st.floats(1100, 5e6), st.sampled_from(sorted(search.LOSS_RATIOS)))
@settings(max_examples=50)
def test_an_ideal_path_lies_between_bounds_as_near_as_asked(capacity, load):
    found = find(load, Settings(), Path(capacity))
    most = capacity / (1 - search.LOSS_RATIOS[load])
    assert found.why == ""
    # Rates are whole packets a second.
    assert found.lower_pps <= most + 1
    assert found.upper_pps >= most - 1
    assert found.upper_pps * 0.95 - 1 <= found.lower_pps < found.upper_pps
    assert found.rate_pps == found.lower_pps
    assert found.bad(found.at(found.lower_pps)) == 0
    assert found.bad(found.at(found.upper_pps)) > 0
    assert found.throughput_pps == pytest.approx(min(found.lower_pps, capacity), rel=2e-3)


def test_few_trials_are_enough():
    path = Path(45_000)
    assert len(find("ndr", Settings(), path).trials) == len(path.asked) - 1 <= 15


def test_one_unlucky_trial_in_three_does_not_hide_the_rate():
    """A host that now and then does something else: so long as no more than half of the trials are bad, the rate counts as carried."""
    found = find("ndr", Settings(sum_seconds=9), Path(45_000, unlucky=3))
    assert found.why == ""
    assert 40_000 < found.lower_pps <= 45_000
    at_rate = found.at(found.lower_pps)
    assert 0 < found.bad(at_rate) <= len(at_rate) / 2
    assert named(found)["search_lower_bad"].value == found.bad(at_rate)
    # Without such patience there is no such rate.
    strict = find("ndr", Settings(sum_seconds=9, exceed_ratio=0), Path(45_000, unlucky=3))
    assert strict.rate_pps is None or strict.rate_pps < 40_000


def test_a_path_that_always_loses_has_no_rate_and_says_why():
    found = find("ndr", Settings(min_pps=2000), Path(45_000, unlucky=1))
    assert (found.rate_pps, found.lower_pps, found.upper_pps) == (None, None, 2000)
    assert "even at the lowest rate, 2000 packets/s," in found.why
    said = named(found)
    assert said["search_rate"].value is said["search_lower_bound"].value is said["search_throughput"].value is None
    assert said["search_rate"].note == found.why
    assert said["search_upper_bound"].value == 2000
    assert said["search_ended"].value == 0
    assert said["search_upper_lost_in_switch"].value == pytest.approx(0.001)


def test_what_loses_a_little_at_any_rate_has_a_partial_drop_rate_all_the_same():
    assert find("ndr", Settings(), Path(45_000, unlucky=1)).rate_pps is None
    assert 42_000 < find("pdr", Settings(), Path(45_000, unlucky=1)).rate_pps <= 45_300


def test_a_path_that_carries_whatever_is_offered_has_no_limit_and_says_so():
    found = find("ndr", Settings(max_pps=50_000), Path(1e9))
    assert found.rate_pps is None
    assert found.lower_pps in (49_999, 50_000)
    assert "the limit lies above" in found.why
    assert named(found)["search_upper_bound"].note
    assert named(found)["search_upper_unsent"].value is None


def test_a_search_that_takes_too_long_ends_with_its_bounds_and_no_rate(monkeypatch):
    path = Path(45_000)
    # Each trial takes two seconds.
    monkeypatch.setattr(time, "monotonic", lambda: 2.0 * len(path.asked))
    wanted = Settings(width=0.001, sum_seconds=20)
    whole = find("ndr", wanted, path)
    assert whole.why == ""
    path.asked.clear()
    found = find("ndr", wanted.model_copy(update={"limit_seconds": whole.seconds - 2}), path)
    assert f"did not end within {whole.seconds - 2:g} s" in found.why
    assert found.rate_pps is None
    assert len(found.trials) == len(whole.trials) - 1
    said = named(found)
    assert (said["search_ended"].value, said["search_rate"].value) == (0, None)
    assert said["search_rate"].note == said["search_ended"].note == found.why
    # What is known is kept: bounds on the right side of the truth, if further apart than asked.
    known = [(name, said[name].value) for name in ("search_lower_bound", "search_upper_bound") if said[name].value is not None]
    assert known
    assert all((rate <= 45_000) == (name == "search_lower_bound") for name, rate in known)


def test_what_mlrsearch_cannot_go_on_with_is_a_reason_and_no_time_limit(monkeypatch):
    def refuses(self, *_):
        raise RuntimeError("Higher load expected.")

    monkeypatch.setattr(mlrsearch.MultipleLossRatioSearch, "main_loop", refuses)
    found = find("ndr", Settings(), Path(45_000))
    assert "Higher load expected" in found.why
    assert found.rate_pps is None


def test_a_trial_that_fails_ends_the_search():
    def fails(rate_pps, seconds):
        raise RunFailed("the guest is gone")

    with pytest.raises(RunFailed, match="the guest is gone"):
        find("ndr", Settings(), fails)


@given(st.floats(1100, 5e6), st.floats(0, 0.02), st.integers(0, 3))
@settings(max_examples=50)
def test_searched_at_once_no_drop_is_never_above_partial_drop(capacity, lossy, unlucky):
    """Of a path that loses a little from some share of its capacity on, and now and then anyway."""

    def path() -> search.Try:
        carries = Path(capacity, unlucky=unlucky)

        def attempt(rate_pps: int, seconds: float) -> Trial:
            trial = carries(rate_pps, seconds)
            little = int(trial.sent * lossy) if rate_pps > 0.8 * capacity else 0
            return trial.model_copy(update={"received": max(0, trial.received - little)})

        return attempt

    both = search.find(["ndr", "pdr"], Settings(), Trials(path(), time.monotonic))
    if both["ndr"].rate_pps is not None and both["pdr"].rate_pps is not None:
        assert both["ndr"].rate_pps <= both["pdr"].rate_pps
    assert both["ndr"].trials == both["pdr"].trials


def test_searched_at_once_both_take_fewer_trials():
    both = search.find(["ndr", "pdr"], Settings(), Trials(Path(45_000), time.monotonic))
    assert len(both["ndr"].trials) < sum(len(find(load, Settings(), Path(45_000)).trials) for load in both)


def test_in_modelled_time_lengths_bounds_and_limit_are_of_it():
    path = Path(400_000)
    clock = {"now": 5.0}

    def attempt(rate_pps: int, seconds: float) -> Trial:
        assert seconds == 0.02
        clock["now"] += 0.1
        return path(rate_pps, seconds)

    means = Trials(attempt, lambda: clock["now"], modelled=True, highest_pps=760_000, warm=True)
    found = search.find(["ndr"], Settings(), means)["ndr"]
    assert found.why == ""
    assert path.asked[0] == 760_000  # no warm-up
    assert len(found.trials) == len(path.asked) <= 12
    assert found.seconds == pytest.approx(0.1 * len(path.asked))
    said = named(found)
    assert (said["search_trial_goal"].value, said["search_sum_goal"].value, said["search_highest_rate"].value) == (0.02, 0.06, 760_000)
    assert said["search_exceed_ratio"].value == 0  # there is no noise that a bad trial could be forgiven for
    late = search.find(["ndr"], Settings(limit_seconds=0.25), means)["ndr"]
    assert (len(late.trials), late.rate_pps) == (3, None)
    assert "within 0.25 s" in late.why


@pytest.mark.parametrize(("fastest", "highest"), [(50, 1054), (2000, 2000), (10**9, 10_000_000)])
def test_a_sender_bounds_the_rates_that_are_tried_but_leaves_some(fastest, highest):
    means = Trials(Path(1e9), modelled=True, highest_pps=fastest, warm=True)
    found = search.find(["ndr"], Settings(), means)["ndr"]
    assert found.highest_pps == highest
    assert f"{highest} packets/s, lost no more than is allowed" in found.why


def test_a_search_of_an_earlier_vsprof_is_still_read():
    old = json.loads(find("ndr", Settings(), Path(45_000)).model_dump_json())
    del (
        old["modelled"],
        old["highest_pps"],
        old["settings"]["modelled_trial_seconds"],
        old["settings"]["modelled_sum_seconds"],
        old["settings"]["modelled_exceed_ratio"],
    )
    said = named(Found.model_validate(old))
    assert said["search_highest_rate"].value == 10_000_000
    assert said["search_trial_goal"].value == 1


# --- What a trial counts -------------------------------------------------------------------------------------------------


def test_what_a_slow_sender_could_not_send_counts_as_lost():
    found = find("ndr", Settings(), Path(1e9, speed=20_000))
    assert 19_000 <= found.rate_pps <= 20_300
    said = named(found)
    assert said["search_upper_unsent"].value > 0.01
    assert all(said[f"search_upper_lost_{where}"].value == 0 for where in ("before_switch", "in_switch", "after_switch"))


def test_a_sender_that_is_a_little_late_kept_its_pace():
    found = find("ndr", Settings(), Path(45_000, lateness=0.005))
    assert 42_000 < found.rate_pps <= 45_300


def test_strange_frames_are_no_gain():
    assert find("ndr", Settings(), Path(45_000, strays=3)).rate_pps == find("ndr", Settings(), Path(45_003)).rate_pps


def test_what_pktgen_owes_is_told_by_its_own_clock():
    sender = SimpleNamespace(interface="eth0")
    flood = Pktgen(sender, frames(rate_pps=50_000))
    # Its file says 9912144 us.
    assert flood.due({"pktgen.txt": PKTGEN}) == 495_607
    with pytest.raises(ValueError, match="Result: OK"):
        flood.due({"pktgen.txt": PKTGEN.replace("Result: OK", "Result: Running")})


def probed(**changes) -> dict[str, str]:
    return {"probe.json": REPORT.model_copy(update=changes).model_dump_json()}


def test_what_frame_probe_skipped_while_it_had_no_cpu_was_never_due():
    flood = ProbeFlood(None, frames(rate_pps=10_000))
    stalled = REPORT.stalls.model_copy(update={"seconds": 0.5, "count": 3})
    assert flood.due(probed(offered=5000, skipped=5000, stalls=stalled)) == 5000
    # The same with its CPU all the time: it is too slow.
    awake = REPORT.stalls.model_copy(update={"seconds": 0.0, "count": 0})
    assert flood.due(probed(offered=5000, skipped=5000, stalls=awake)) == 10_000


def test_a_frame_that_found_frame_probes_ring_full_was_sent_and_is_lost():
    hops = {"sent": 90, "into_switch": 90, "out_of_switch": 90, "received": 90}
    raw = {"hops.json": json.dumps({"before": dict.fromkeys(hops, 0), "after": hops, "rate_pps": 100}), **probed(offered=100)}
    assert counted.packets(raw) == {**hops, "sent": 100}


# --- What is asked -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"trial_seconds": 2, "sum_seconds": 1}, "shorter than one trial"),
        ({"modelled_trial_seconds": 0.08}, "modelled_sum_seconds 0.06 is shorter than one trial, modelled_trial_seconds 0.08"),
        ({"min_pps": 980, "max_pps": 1000}, "not below max_pps 1000 by more than the width 0.05"),
        ({"exceed_ratio": 1}, "less than 1"),
        ({"width": 0}, "greater than or equal to 0.001"),
        ({"max_pps": 10_000_001}, "10000000"),
        ({"patience": 1}, "Extra inputs"),
    ],
)
def test_settings_that_make_no_search_are_refused(given_, said):
    with pytest.raises(ValueError, match=said):
        Settings(**given_)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"load": "ndr", "rate_pps": 5}, "no other load takes it"),
        ({"load": "saturation", "search": {}}, "only the loads ndr, pdr are searched"),
        ({"load": "mrr"}, "use one of saturation, equal, ndr, pdr"),
    ],
)
def test_options_that_do_not_fit_the_load_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        FloodOptions(**options)


def test_a_search_is_recorded_whole_and_read_again():
    found = find("pdr", Settings(), Path(45_000, unlucky=3))
    again = Found.model_validate_json(found.model_dump_json())
    assert again == found
    assert {number.window for number in numbers(again)} == {"search"}
    said = named(again)
    assert (said["search_loss_goal"].value, said["search_exceed_ratio"].value, said["search_sum_goal"].value) == (0.005, 0.5, 5)
    assert said["search_trials"].value == len(found.trials)
    assert said["search_lower_bound"].unit == "packets/s"


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_bounds_are_bounds_however_the_path_behaves(seed):
    """Of a path that loses by chance: what is called a lower bound has at most half of its trials bad, an upper bound more."""
    chance = random.Random(seed)

    def attempt(rate_pps, seconds):
        due = int(rate_pps * seconds)
        received = min(due, int(chance.gauss(40_000, 4000) * seconds)) - chance.choice([0, 0, 1, due // 50])
        return Trial(rate_pps=rate_pps, due=due, sent=due, into_switch=due, out_of_switch=received, received=received)

    found = find("ndr", Settings(), attempt)
    lower, upper = found.at(found.lower_pps), found.at(found.upper_pps)
    assert found.bad(lower) <= 0.5 * found.settings.sum_seconds
    assert found.bad(upper) > 0.5 * found.settings.sum_seconds or not upper
    assert (found.rate_pps is None) == bool(found.why)


# --- As a traffic --------------------------------------------------------------------------------------------------------


class Topology:
    """Two ends and a switch that carries ``capacity`` packets/s, and loses ``always`` frames of any flood."""

    interface, address, mac, name = "eth0", "10.77.0.1", "52:54:00:76:67:01", "guest1"
    returns = False

    def __init__(self, capacity: float, always: int = 0) -> None:
        self.capacity, self.always = capacity, always
        self.clock, self.plan = "emulated", CpuPlan.of(4)
        self.known: dict[str, Found] = {}
        self.sender = self.receiver = self.switch = self.host = self
        self.sender_port, self.receiver_port = SimpleNamespace(name="p1"), SimpleNamespace(name="p2")
        self.routes = [Route(self, self, self.sender_port, self.receiver_port)]
        self.sent = self.received = 0
        self.rates: list[int | None] = []

    def flood(self, frames):
        self.rates.append(frames.rate_pps)
        return Sent(self, frames.rate_pps)

    def run(self, command, timeout=60):
        return SimpleNamespace(stdout="")

    def polling_last(self, cpus):
        return contextlib.nullcontext()

    def port_counters(self):
        return "ports"

    def parse_port_counters(self, text):
        return {"p1": PortCounters(self.sent, 0, 0, 0), "p2": PortCounters(0, 0, self.received, 0)}

    def counters(self):
        return Counters(0, self.received, 0, self.sent, 0)


class Sent(Flood):
    """A second's worth of frames, all at once."""

    def __init__(self, topology: Topology, rate_pps: int) -> None:
        self.topology, self.rate_pps = topology, rate_pps

    def prepare(self):
        pass

    def start(self):
        self.topology.sent += self.rate_pps
        self.topology.received += min(self.rate_pps, int(self.topology.capacity)) - self.topology.always

    def ended(self):
        return None

    def stop(self):
        return {}

    def due(self, printed):
        return self.rate_pps


@pytest.fixture
def searched(monkeypatch):
    monkeypatch.setattr(counted, "DRAIN_S", 0)

    def searched(topology: Topology, load: str = "ndr") -> UdpFlood:
        traffic = UdpFlood(topology, FloodOptions(load=load, search=Settings(trial_seconds=0.1, sum_seconds=0.5)), 64, 1)
        monkeypatch.setattr(time, "sleep", lambda seconds: None)
        traffic.start()
        return traffic

    return searched


def test_a_flood_flows_at_the_rate_that_was_found(searched):
    topology = Topology(45_000)
    traffic = searched(topology)
    assert traffic.nothing_flows() is None
    traffic.check()
    raw = traffic.stop()
    assert raw.keys() == {"hops.json", "search.json"}
    found = {number.name: number.value for number in UdpFlood.numbers(raw, [])}
    assert 42_000 < found["search_rate"] <= 45_000
    assert found["offered_rate"] == found["packets_sent"] == found["packets_received"] == found["search_rate"] == topology.rates[-1]
    assert found["search_trials"] == len(topology.rates) - 2  # the warm-up, and the flood itself


def test_a_search_without_a_rate_is_a_result_in_which_nothing_flows(searched):
    topology = Topology(45_000, always=1)
    traffic = searched(topology)
    floods = len(topology.rates)
    assert "even at the lowest rate" in traffic.nothing_flows()
    raw = traffic.stop()
    assert raw.keys() == {"search.json"}
    assert len(topology.rates) == floods
    found = {number.name: number for number in UdpFlood.numbers(raw, [])}
    assert found["search_rate"].value is None
    assert found["search_ended"].value == 0
    assert not {name for name in found if not name.startswith("search_")}


def test_own_windows_follow_at_the_same_rate(searched):
    topology = Topology(45_000)
    traffic = searched(topology)
    before = topology.sent
    traffic.before_own_windows()
    assert topology.sent - before == topology.rates[-1]
    raw = traffic.stop()
    assert {n.name: n.value for n in UdpFlood.numbers(raw, [])}["packets_sent"] == topology.rates[-1]


def test_a_trial_that_sent_nothing_says_nothing_of_the_path(searched, monkeypatch):
    monkeypatch.setattr(Sent, "start", lambda self: None)
    with pytest.raises(RunFailed, match="sent nothing at all"):
        searched(Topology(45_000))


def test_progress_is_told_trial_by_trial(searched, monkeypatch):
    said = []
    topology = Topology(45_000)
    traffic = UdpFlood(topology, FloodOptions(load="ndr", search=Settings(trial_seconds=0.1, sum_seconds=0.5)), 64, 1)
    traffic.say = said.append
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    traffic.start()
    assert said[0] == "trial at 10.0 Mpps"
    assert len(said) == len(topology.rates) - 1


def test_the_first_of_two_floods_searches_for_both(searched):
    topology = Topology(45_000)
    both = tuple(FloodOptions(load=load, search=Settings(trial_seconds=0.1, sum_seconds=0.5)) for load in ("pdr", "ndr"))
    first, second = (UdpFlood(topology, one, 64, 1) for one in both)
    first.beside = second.beside = (*both, FloodOptions())
    first.start()
    floods = len(topology.rates)
    second.start()
    assert len(topology.rates) == floods + 1  # its own flood
    assert second._found.trials == first._found.trials
    assert second._found.rate_pps <= first._found.rate_pps
    # Of another search nothing is taken over.
    other = UdpFlood(topology, FloodOptions(load="ndr", search=Settings(trial_seconds=0.1, sum_seconds=0.6)), 64, 1)
    other.start()
    assert len(topology.rates) > floods + 2


# --- Trials in modelled time ---------------------------------------------------------------------------------------------


class Modelled(Topology):
    """The same in modelled time, and its clock. ``log``: what was done, in order. The sender reaches ``speed``, and has ended when it was
    looked at ``looks`` times."""

    def __init__(self, capacity: float, speed: float, looks: int = 1) -> None:
        super().__init__(capacity)
        self.speed, self.looks = speed, looks
        self.host = SimpleNamespace(clock="modelled", run=self.run, polling_last=self.polling_last)
        self.log: list[str] = []
        self.seconds = 0.0

    def flood(self, frames):
        return Bursts(self)

    def can_not_flood(self, paced, flows):
        return None

    def can_not_burst(self):
        return None

    @contextlib.contextmanager
    def modelled_time(self):
        self.log.append("begin")
        yield
        self.log.append("end")

    def now(self):
        return self.seconds

    def await_packets(self, rate_pps):
        self.log.append("packets")

    def await_quiet(self, rate_pps):
        self.log.append("quiet")

    def parse_port_counters(self, text):
        self.log.append("hops")
        return super().parse_port_counters(text)


class Bursts(Sent):
    def __init__(self, topology: Modelled) -> None:
        super().__init__(topology, 0)

    def burst(self, count, rate_pps):
        path = self.topology
        path.log.append(f"burst of {count} at {rate_pps}")
        pace = min(rate_pps or path.speed, path.speed)
        self.last, self.looked = Burst(count, count / pace), 0
        path.seconds += self.last.seconds
        path.sent += count
        path.received += min(count, int(path.capacity * self.last.seconds))

    def burst_sent(self):
        self.looked += 1
        return self.last if self.looked >= self.topology.looks else None


class Waiting(Bursts):
    awaits_bursts = True


def test_in_modelled_time_a_trial_is_a_burst_that_nobody_disturbs():
    path = Modelled(400_000, 690_000)
    with trials.modelled(path, frames, path, lambda text: None) as means:
        assert (means.modelled, means.warm, means.highest_pps) == (True, True, 759_000)
        assert means.attempt(100_000, 0.02) == Trial(
            rate_pps=100_000, due=2000, sent=2000, into_switch=2000, out_of_switch=2000, received=2000
        )
        assert means.attempt(500_000, 0.02).lost == 2000
        # Slower than asked, it owes what it would have sent in the time that it took.
        slow = means.attempt(759_000, 0.02)
        assert (slow.sent, slow.unsent) == (15_180, 1518)
    assert path.log == [
        "hops", "begin", "burst of 10000 at None", "packets", "quiet", "hops",
        "burst of 2000 at 100000", "packets", "quiet", "hops", "burst of 10000 at 500000", "packets", "quiet", "hops",
        "burst of 15180 at 759000", "packets", "quiet", "hops", "end",
    ]  # fmt: skip


def test_a_burst_that_paused_is_waited_for_and_one_that_does_not_end_is_an_error():
    path = Modelled(400_000, 690_000, looks=3)
    with trials.modelled(path, frames, path, lambda text: None):
        assert path.log[3:8] == ["packets", "packets", "packets", "quiet", "hops"]
    path.looks = trials.LOOKS + 1
    with pytest.raises(RunFailed, match="10000 packets did not end"), trials.modelled(path, frames, path, lambda text: None):
        pass


def test_who_waits_for_its_bursts_itself_is_not_waited_for():
    path = Modelled(400_000, 690_000)
    path.flood = lambda frames: Waiting(path)
    with trials.modelled(path, frames, path, lambda text: None) as means:
        assert means.attempt(500_000, 0.02).lost == 2000
    assert path.log == ["hops", "begin", "burst of 10000 at None", "hops", "burst of 10000 at 500000", "hops", "end"]


def test_in_modelled_time_a_flood_is_searched_in_one_stretch_of_it():
    path = Modelled(400_000, 690_000)
    traffic = UdpFlood(path, FloodOptions(load="ndr"), 64, 1)
    traffic.clock = path
    assert traffic.unavailable() is None
    path.rate_pps = 0
    found = traffic._search(traffic.settings)
    assert 380_000 < found.rate_pps <= 400_000
    assert found.modelled
    assert (path.log.count("begin"), path.log[-1]) == (1, "end")


def test_who_can_not_send_bursts_is_left_out_of_searches_in_modelled_time():
    path = Modelled(400_000, 690_000)
    path.can_not_burst = lambda: "no bursts from here"
    assert UdpFlood(path, FloodOptions(load="ndr"), 64, 1).unavailable() == "no bursts from here"
    assert UdpFlood(path, FloodOptions(), 64, 1).unavailable() is None


def test_pktgen_sends_a_burst_once_who_asked_for_it_has_gone():
    asked = []
    sender = SimpleNamespace(interface="eth0", run=lambda command, **_: asked.append(command) or PKTGEN)
    flood = Pktgen(sender, frames(None))
    flood.burst(2000, 100_000)
    flood.burst(500, None)
    assert (
        "echo 'ratep 100000' > /proc/net/pktgen/eth0 && echo 'count 2000' > /proc/net/pktgen/eth0 && { sleep 0.01; echo start" in asked[0]
    )
    assert asked[0].endswith("&")
    assert "delay 0" in asked[1]
    assert flood.burst_sent() == Burst(413902, 9.912144)
    sender.run = lambda command, **_: PKTGEN.replace("Result: OK", "Result: Running")
    assert flood.burst_sent() is None
