# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench-dataplane` makes of what it saw. That it sees it is tests/native/test_slices.py's."""

import contextlib
from types import SimpleNamespace

import pytest

from vsprof.bench import contenders, dataplane, dataplane_modelled
from vsprof.bench.dataplane_seen import Enough, Seen, Turn
from vsprof.bench.modelled_flood import Counted
from vsprof.bench.slices import Slice
from vsprof.terms.errors import RunFailed
from vsprof.terms.placement import CpuPlan


def counted(rate: float, cycles: float, empty: float) -> Counted:
    """A window of a second; the switch is on CPU 1."""
    task = {"id": 7, "name": "dpdk-worker1", "empty_polls": 3, "empty": {"cycles": empty}}
    switch = {"modes": {"host_user": {"cycles": cycles - 10, "instructions": 400 * rate}, "host_kernel": {"cycles": 10}}, "tasks": [task]}
    return Counted(rate, 1.0, [{"modes": {}, "tasks": []}, switch], 80.0)


def test_what_the_switchs_cpu_took_is_told_per_packet_and_how_much_of_it_was_idle():
    found = dataplane_modelled._absolute("wire", 64, [counted(1e6, 2e8, 1e7), counted(2e6, 4e8, 2e7)], 1)
    assert found["wire_mpps_64"][0].median == pytest.approx(1.5)
    assert found["wire_cycles_per_packet_64"][0].median == pytest.approx(200)
    assert found["wire_instructions_per_packet_64"][0].median == pytest.approx(400)
    assert found["wire_l1d_misses_per_packet_64"][0].median == 0
    assert found["wire_idle_64"][0].median == pytest.approx(0.05)


def test_only_what_is_there_is_compared():
    assert contenders.pairs(["vhost_switch", "librte"]) == {"own_rings_over_librte": ("vhost_switch", "librte")}
    assert {name for pair in contenders.RATIOS.values() for name in pair} <= contenders.CONTENDERS.keys()


def turn(place: str, *rates: float, ratio: str = "wire_over_librte", busy: float | None = None, behind: float | None = None) -> Turn:
    return Turn(ratio, rates[0], place, {"wire": [Slice(rate * 1e6, busy, behind) for rate in rates]})


def test_a_round_is_one_value_whatever_its_slices_were():
    seen = Seen(tsc_hertz=3e9)
    seen.take(64, [turn("near", 1.0, busy=90.0), turn("near", 1.0, busy=100.0), turn("near", 1e-3, busy=900.0)])
    seen.take(64, [turn("near", 3.0, busy=80.0)])
    found = seen.estimates()
    assert found["wire_over_librte_64_near"][0].median == pytest.approx(2)
    assert found["wire_mpps_64_near"][0].median == pytest.approx(2)
    assert found["wire_mpps_64_near"][0].n == 2
    assert found["wire_busy_cycles_per_packet_64_near"][0].median == pytest.approx(90)
    assert found["wire_cycles_per_packet_64_near"][0].median == pytest.approx(2000)
    assert not any(name.startswith("librte") for name in found)


def test_places_of_the_cpus_are_told_apart_and_what_moved_counts_for_nothing():
    seen = Seen()
    seen.take(64, [turn("far", 1.0), turn("near", 3.0, behind=0.25), turn("", 99.0), turn("far", 1.2)])
    found = seen.estimates()
    assert found["wire_mpps_64_near"][0].median == pytest.approx(3)
    assert found["wire_behind_64_near"][0].median == pytest.approx(0.25)
    assert found["wire_mpps_64_far"][0].median == pytest.approx(1.1)
    assert [name for name in found if "over" in name] == ["wire_over_librte_64_near", "wire_over_librte_64_far"]


def test_what_the_pmu_counted_of_some_rounds_alone_is_told_of_those():
    seen = Seen()
    for _ in range(2):
        seen.take(64, [turn("near", 1.0)])
    seen.misses["wire", 64] = [{}, {"llc_misses": 2.0}]
    found = seen.estimates()
    assert found["wire_llc_misses_per_packet_64"][0].n == 1
    assert "wire_busy_cycles_per_packet_64_near" not in found
    assert "wire_cycles_per_packet_64_near" not in found


def test_what_a_neighbour_on_the_core_slowed_is_told_apart():
    seen = Seen(tsc_hertz=3e9)
    for quick, slow in ((70.0, 90.0), (72.0, 99.0)):
        its = [Slice(1e6, quick, loop_s=0.41e-3), Slice(1e6, slow, loop_s=0.6e-3), Slice(1e6, slow, loop_s=0.46e-3)]
        seen.take(64, [Turn("wire_over_librte", 1.0, "near", {"wire": its})])
    seen.take(64, [Turn("wire_over_librte", 1.0, "near", {"wire": [Slice(1e6, 80.0, loop_s=0.8e-3), Slice(1e6, None, loop_s=0.4e-3)]})])
    found = seen.estimates()
    alone = found["wire_busy_cycles_per_packet_64_near_alone"][0]
    assert (alone.median, alone.n) == (pytest.approx(71), 2)
    assert found["wire_busy_cycles_per_packet_64_near"][0].n == 3
    assert found["slices_with_a_core_of_their_own"][0].median == pytest.approx(3 / 8)


def rounds(place: str, *values: float) -> Seen:
    seen = Seen()
    for value in values:
        seen.take(64, [turn(place, value), turn(place, 1.2, ratio="own_rings_over_librte")])
    return seen


WIRE, RINGS, PACKED = ("wire_over_librte", 64), ("own_rings_over_librte", 64), ("packed_over_librte", 64)


def test_rounds_go_on_until_every_interval_is_narrow_enough():
    as_many = Enough(6, None, 60)
    assert [as_many.left(done, Seen(), [WIRE]) for done in (0, 5, 6)] == [{WIRE}, {WIRE}, set()]
    narrow = Enough(6, 0.03, 60)
    wide = rounds("near", 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
    # The other ratio is narrow already, and is not measured again.
    assert narrow.left(6, wide, [WIRE, RINGS]) == {WIRE}
    assert not narrow.left(60, wide, [WIRE, RINGS])
    assert not narrow.left(7, rounds("near", 1.0, 1.01, 1.02, 1.0, 1.01, 1.02, 1.01), [WIRE, RINGS])
    assert narrow.left(5, rounds("near", *[1.0] * 5), [WIRE, RINGS]) == {WIRE, RINGS}


def test_narrow_in_one_place_is_enough_but_with_every_ratio_there():
    narrow = Enough(6, 0.03, 60)
    both = rounds("far", *[1.0] * 6)
    both.take(64, [turn("near", 1.0), turn("near", 2.0)])
    assert not narrow.left(7, both, [WIRE, RINGS])
    assert narrow.left(7, both, [WIRE, RINGS, PACKED]) == {PACKED}
    both.take(64, [turn("near", 1.0, ratio="packed_over_librte")] * 6)
    # Six turns of one round are one round.
    assert narrow.left(8, both, [WIRE, RINGS, PACKED]) == {PACKED}


def test_a_round_floods_only_what_it_measures(monkeypatch):
    flooded, asked = [], []

    class Alive:
        def __init__(self, name: str) -> None:
            self.name = name
            self.topology = SimpleNamespace(switch=SimpleNamespace(plan=CpuPlan.of(2)))

        def flood(self, frame: int) -> None:
            flooded.append((self.name, frame))

        def rate(self) -> float:
            return 2e6 if self.name == "wire" else 1e6

        def taken(self) -> list[Slice]:
            return [Slice(self.rate(), middle=1.0)]

        def tsc_hertz(self) -> float:
            return 0.0

    def look(self) -> None:
        asked.append(None)
        self.loops[float(len(asked))] = 0.0004

    monkeypatch.setattr(dataplane, "Distance", lambda cpu, partners: Near())
    monkeypatch.setattr(dataplane.Disturbance, "look", look)
    seen, live = Seen(), {name: Alive(name) for name in ("wire", "testpmd_io", "zero_copy", "packed", "packed_librte")}
    left = [("wire_over_testpmd_io", 512), ("own_rings_over_librte_packed", 64)]
    dataplane._round(live, left, 3, {}, seen, 64, print)
    assert flooded == [("packed", 64), ("packed_librte", 64), ("wire", 512), ("testpmd_io", 512)]
    assert seen.ratios == {
        ("own_rings_over_librte_packed", 64, "near"): [pytest.approx(1)],
        ("wire_over_testpmd_io", 512, "near"): [pytest.approx(2)],
    }
    # Before each of four slices of three turns of two ratios, and after each turn.
    assert len(asked) == 30
    assert seen.estimates()["slices_with_a_core_of_their_own"][0].median == 1
    # One a round, of all sizes.
    assert seen.moved == [0]


def test_what_the_stage_counters_cost_is_of_the_smallest_frames_alone(monkeypatch):
    class Alive:
        topology = SimpleNamespace(switch=SimpleNamespace(plan=CpuPlan.of(2)))

        def __getattr__(self, name):
            return lambda *words: {"taken": [Slice(1e6, middle=1.0)], "tsc_hertz": 0.0}.get(name, 1e6)

    monkeypatch.setattr(dataplane, "Distance", lambda cpu, partners: Near())
    live = {name: Alive() for name in ("vhost_switch", "ovs_dpdk")}
    for left, found in ([64, 512], 1), ([512], 0):
        seen = Seen()
        dataplane._round(live, [("vhost_switch_over_ovs_dpdk", frame) for frame in left], 1, {}, seen, 64, print)
        assert len(seen.stages_cost) == found


def test_a_contender_without_a_partner_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(dataplane.Native, "needs", classmethod(lambda cls: None))
    with pytest.raises(SystemExit):
        dataplane.main(["--testbed", "native", "--contenders", "packed", "vhost_switch", "ovs_dpdk"])
    assert "found packed, of which there is no ratio with the others: name one of packed_librte, too" in capsys.readouterr().err


def test_in_the_lab_too_what_was_measured_is_told(monkeypatch):
    @contextlib.contextmanager
    def modelled(case, *words):
        begun.append(case)
        if len(begun) == fails:
            raise RunFailed("the lab ended")
        yield SimpleNamespace(topology=SimpleNamespace(switch=SimpleNamespace(plan=CpuPlan.of(4))))

    monkeypatch.setattr(dataplane_modelled, "modelled", modelled)
    monkeypatch.setattr(dataplane_modelled, "_windows", lambda *words: [SimpleNamespace(rate=2e6)] * 3)
    monkeypatch.setattr(dataplane_modelled, "_absolute", lambda name, *rest: {name: None})
    names, begun, fails = ["vhost_switch", "ovs_dpdk", "testpmd_io"], [], 3
    found, ended = dataplane_modelled.measure(3, [64], names, {}, "zen4", print)
    assert str(ended) == "the lab ended"
    assert [*found] == ["vhost_switch_over_ovs_dpdk_64", "vhost_switch", "ovs_dpdk"]
    begun, fails = [], 1
    with pytest.raises(RunFailed):
        dataplane_modelled.measure(3, [64], names, {}, "zen4", print)


class Near:
    """CPUs that stay where they are."""

    def __init__(self) -> None:
        self.seen = {"near": [25.0]}

    def __call__(self) -> str:
        return "near"


@pytest.mark.parametrize(
    "end", [KeyboardInterrupt(), RunFailed("the switch ended"), FileNotFoundError(2, "gone")], ids=["ctrl-c", "failed", "gone"]
)
def test_what_was_measured_is_told_when_a_round_is_not_done(monkeypatch, end):
    told = []

    def one_round(live, left, turns, events, seen, smallest, say):
        if sum(map(len, seen.ratios.values())) == fine:
            raise end
        seen.take(64, [turn("near", 1.5)])

    monkeypatch.setattr(dataplane, "alive", lambda *words: contextlib.nullcontext({}))
    monkeypatch.setattr(dataplane, "_round", one_round)
    fine = 3
    found, ended = dataplane.measure(Enough(6, None, 6), 1, [64], ["wire", "testpmd_io"], {}, told.append)
    assert ended is end
    assert found["wire_over_librte_64_near"][0].n == fine
    assert told[-1].startswith("in round 4: ")
    fine = 0
    with pytest.raises(type(end)):
        dataplane.measure(Enough(6, None, 6), 1, [64], ["wire", "testpmd_io"], {}, told.append)


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (RunFailed("the switch ended"), RunFailed.exit_status, "the switch ended"),
        (KeyboardInterrupt(), 130, "bench-dataplane: interrupted"),
    ],
    ids=["failed", "ctrl-c"],
)
def test_less_than_was_asked_for_is_shown_and_is_no_success(monkeypatch, capsys, end, status, said):
    found = rounds("near", *[1.5] * 6).estimates()
    monkeypatch.setattr(dataplane, "measure", lambda *words: (found, end))
    monkeypatch.setattr(dataplane.Native, "needs", classmethod(lambda cls: None))
    monkeypatch.setattr(dataplane.table, "write", lambda target, found: target)
    monkeypatch.setattr(dataplane.interruption, "heed", lambda: None)
    assert dataplane.main(["--testbed", "native"]) == status
    printed = capsys.readouterr()
    assert "wire_over_librte_64_near" in printed.out
    assert said in printed.err
