# SPDX-License-Identifier: GPL-2.0-or-later
"""The collector of vhost-switch, on what its telemetry really told around a window (natively, 64 B UDP at saturation, own rings).

The expected values were taken out of the files by hand: end minus begin.
"""

import json
from pathlib import Path

import pytest

from vsprof.collectors.base import Recorded
from vsprof.collectors.vhost_switch import STAGES, TIMED, VhostSwitch
from vsprof.terms.placement import Placement

CAPTURED = Path(__file__).with_name("captured")
SECONDS = 0.6


def recorded(name: str = "vhost_switch", change=lambda text: text) -> Recorded:
    begin, end = ((CAPTURED / f"{name}.{at}").read_text() for at in ("begin", "end"))
    return Recorded(begin, change(end), SECONDS, Placement())


def numbers(record: Recorded):
    found = {number.name: number for number in VhostSwitch.numbers(record)}
    assert len(found) == len(list(VhostSwitch.numbers(record))), "a number twice"
    return found


def values(record: Recorded) -> dict[str, float | None]:
    return {name: number.value for name, number in numbers(record).items()}


def told(text: str, question: str) -> dict:
    """An answer, looked up in the text without the collector."""
    return next(json.loads(line)[question] for line in text.splitlines() if f'"{question}": {{' in line)


def test_what_it_counted_in_a_window():
    found, record = values(recorded()), recorded()
    begin, end = (told(text, "/vhost_switch/lcore") for text in (record.begin, record.end))
    assert found["pmd_packets"] == end["rx_packets"] - begin["rx_packets"] > 1_000_000
    assert found["timed_packets"] == found["pmd_packets"]
    assert found["pmd_busy_cycles"] == sum(found[f"stage_{stage}_cycles"] for stage in STAGES)
    assert found["stage_enqueue_cycles"] == end["stage_enqueue_cycles"] - begin["stage_enqueue_cycles"]
    assert found["empty_polls"] == end["empty_polls"] - begin["empty_polls"]
    # All bursts were full, and no cheaper than the cheapest stage allows.
    assert [found[f"burst_size_{part}"] for part in ("p50", "p90", "p99")] == [32, 32, 32]
    mean = found["pmd_busy_cycles"] / found["timed_packets"]
    assert mean / 1.5 < found["cycles_per_packet_p50"] < mean * 1.5
    assert found["dropped_full"] >= 0
    assert found["pmd_sleep_seconds"] == 0


def test_the_cycles_of_all_bursts_are_shared_out_as_those_of_the_split_ones():
    record = recorded("vhost_switch-split")
    found = values(record)
    begin, end = (told(text, "/vhost_switch/lcore") for text in (record.begin, record.end))
    gained = {name: end[name] - begin[name] for name in end if name.endswith(("_cycles", "_bursts", "_packets"))}
    assert found["timed_packets"] == gained["rx_packets"] > 100_000
    assert found["pmd_busy_cycles"] == gained["busy_cycles"]
    assert sum(found[f"stage_{stage}_cycles"] for stage in STAGES) == pytest.approx(gained["busy_cycles"])
    by_packet = gained["stage_enqueue_cycles"] / gained["split_packets"]
    assert found["stage_enqueue_cycles"] / found["timed_packets"] == pytest.approx(by_packet, rel=0.2)


def test_frames_that_waited_are_a_stage_of_their_own_and_not_shared_out():
    end = told(recorded("vhost_switch-split").end, "/vhost_switch/lcore")
    waited = changed("/vhost_switch/lcore", stage_other_cycles=5_000_000, busy_cycles=end["busy_cycles"] + 5_000_000)
    before, after = values(recorded("vhost_switch-split")), values(recorded("vhost_switch-split", change=waited))
    assert (before["stage_other_cycles"], after["stage_other_cycles"]) == (0, 5_000_000)
    assert after["stage_enqueue_cycles"] == pytest.approx(before["stage_enqueue_cycles"])
    assert after["pmd_busy_cycles"] == before["pmd_busy_cycles"] + 5_000_000


def test_stages_of_which_no_burst_was_split_are_empty_and_say_so():
    kept = ("split_bursts", "split_packets", *(f"stage_{stage}_cycles" for stage in STAGES))
    begin = told(recorded("vhost_switch-split").begin, "/vhost_switch/lcore")
    counts = told(recorded("vhost_switch-split").begin, "/vhost_switch/cycles_histogram")
    same = changed("/vhost_switch/lcore", **{name: begin[name] for name in kept})
    record = recorded("vhost_switch-split", change=lambda text: changed("/vhost_switch/cycles_histogram", **counts)(same(text)))
    found = numbers(record)
    assert found["pmd_busy_cycles"].value > 0
    assert {found[name].value for name in ("stage_dequeue_cycles", "stage_lookup_cycles", "cycles_per_packet_p50")} == {None}
    assert "told apart" in found["stage_dequeue_cycles"].note
    assert "told apart" in found["cycles_per_packet_p50"].note


def test_each_number_has_its_unit_its_role_and_its_cpu():
    found = numbers(recorded())
    units = {name: number.unit for name, number in found.items()}
    assert {units[name] for name in ("pmd_busy_cycles", "stage_lookup_cycles", "cycles_per_packet_p99")} == {"TSC cycles"}
    assert (units["pmd_packets"], units["empty_polls"], units["pmd_sleep_seconds"]) == ("packets", "events", "seconds")
    assert {number.role for number in found.values()} == {"switch"}
    assert {found[name].cpu for name in TIMED.values()} == {1}


def test_what_is_not_timed_is_empty_and_says_so():
    found = numbers(recorded("vhost_switch-off"))
    assert found["pmd_packets"].value > 0
    assert {found[name].value for name in TIMED.values()} == {None}
    assert {found[name].note for name in TIMED.values()} == {"stages is off"}


def test_nothing_in_a_window_has_no_quantile():
    text = recorded().begin
    found = numbers(Recorded(text, text, SECONDS, Placement()))
    assert found["timed_packets"].value == 0
    assert (found["burst_size_p50"].value, found["burst_size_p50"].note) == (None, "no burst in this window")


def changed(question: str, **more):
    """Change an answer of the end."""

    def change(text: str) -> str:
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            if isinstance(line.get(question), dict):
                line[question].update(more)
        return "\n".join(map(json.dumps, lines))

    return change


def test_pmu_events_of_a_stage_are_hardwares():
    more = {"pmu_packets": 3200, "pmu_bursts": 100, "pmu_read_cycles": 30, "pmu_enqueue_cache_misses": 400, "pmu_dequeue_cache_misses": 0}
    found = numbers(recorded(change=changed("/vhost_switch/lcore", **more)))
    assert (found["pmu_enqueue_cache_misses"].value, found["pmu_enqueue_cache_misses"].source) == (400, "hardware")
    assert found["pmu_dequeue_cache_misses"].value == 0
    assert (found["pmu_packets"].value, found["pmu_packets"].source) == (3200, None)
    assert "pmu_read_cycles" not in found


@pytest.mark.parametrize(
    "change",
    [
        changed("/vhost_switch/lcore", rx_packets=0),
        changed("/vhost_switch/lcore", rx_packets="many"),
        changed("/vhost_switch/cycles_histogram", counts=[1]),
        lambda text: text.replace("timed_packets", "times"),
        lambda text: text.replace('"of": 1', '"of": 2'),
        lambda text: "",
    ],
)
def test_what_does_not_fit_together_is_an_error(change):
    with pytest.raises(ValueError):  # noqa: PT011
        values(recorded(change=change))


def test_what_a_flood_was_dropped_for_is_counted_where_the_switch_counts_it():
    """The capture is of a switch that did not; a later one tells two counters more."""

    def later(text: str) -> str:
        return text.replace('"flooded": "packets"', '"flooded": "packets", "flood_dropped": "packets"').replace(
            '"flooded": 0', '"flooded": 300, "flood_dropped": 44'
        )

    assert "flood_dropped" not in values(recorded())
    found = numbers(recorded(change=later))
    assert (found["flood_dropped"].value, found["flood_dropped"].unit) == (44, "packets")
