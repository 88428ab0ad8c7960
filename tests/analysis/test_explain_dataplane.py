# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said of options: no claim without an interval that excludes 1, and the crossover where it lies."""

import pytest

from vsprof.analysis import comparison, explain_dataplane, looks, metrics
from vsprof.analysis.load import load
from vsprof.analysis.stats import Estimate
from vsprof.terms import schema


def scaled(path, factors: dict[tuple[int, str], float]):
    """Multiply the rates and the cycles of enqueue of each case of a SYNTHETIC result, by frame size and value of dequeue."""
    rows = schema.read(path / "measurements.parquet").to_pylist()
    for row in rows:
        factor = factors.get((row["frame_bytes"], row["dequeue"]), 1.0)
        if row["value"] is not None and row["name"] == "packet_rate_received":
            row["value"] *= factor
        if row["value"] is not None and row["name"] in ("stage_enqueue_cycles", "pmd_busy_cycles"):
            enqueue = row["value"] if row["name"] == "stage_enqueue_cycles" else row["value"] * 60 / 125
            row["value"] += enqueue * (1 / factor - 1)
    schema.write(path / "measurements.parquet", rows)
    return load(path)


@pytest.fixture
def make(sample, tmp_path, request):
    def made(factors, frames=(64, 512, 1518)):
        options = {"dequeue": ("copy", "zero-copy")}
        path = sample.write(
            tmp_path / "r", accesses=("vhost-user",), frames=frames, traffics=[("udp_flood", "saturation")], options=options
        )
        return scaled(request.getfixturevalue("vhost_sample").change(path), factors)

    return made


def crossover(result) -> str:
    return explain_dataplane.crossover(result, "dequeue", "copy", "zero-copy")


def test_the_crossover_lies_between_the_last_size_that_loses_and_the_first_that_wins(make):
    said = crossover(make({(64, "zero-copy"): 0.5, (512, "zero-copy"): 0.7, (1518, "zero-copy"): 1.5}))
    assert "In packets delivered, **the crossover lies between 512 B and 1518 B" in said
    assert "dequeue=zero-copy delivers fewer packets than dequeue=copy below, and more above" in said
    # What the faster one saves is cycles: the same crossover, turned round.
    assert "takes more TSC cycles of the switch's thread per packet than dequeue=copy below, and fewer above" in said
    assert said.index("- 64 B") < said.index("- 512 B") < said.index("- 1518 B")


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ({}, "In packets delivered, **no crossover can be found**"),
        (
            {(64, "zero-copy"): 0.5},
            "In packets delivered, **no crossover is seen: dequeue=zero-copy delivers fewer packets than dequeue=copy",
        ),
        (
            {(1518, "zero-copy"): 2.0},
            "In packets delivered, **no crossover is seen: dequeue=zero-copy delivers more packets than dequeue=copy",
        ),
        (
            {(64, "zero-copy"): 2.0, (512, "zero-copy"): 0.5, (1518, "zero-copy"): 2.0},
            "In packets delivered, **there is no one crossover**",
        ),
    ],
)
def test_where_there_is_none_it_says_so(make, factors, words):
    assert words in crossover(make(factors))


def test_without_the_two_there_is_nothing_to_tell(two_switches):
    assert "no pair of cases" in crossover(two_switches)


def test_the_modelled_processor_tells_the_misses_behind_it(sample, vhost_sample, tmp_path):
    options, frames = {"dequeue": ("copy", "zero-copy")}, (64, 1518)
    traffics = [("udp_flood", "saturation"), sample.IDLE]
    path = sample.write(tmp_path / "r", accesses=("vhost-user",), frames=frames, traffics=traffics, options=options, own="uarch_model")
    said = crossover(load(vhost_sample.change(path)))
    assert "In the switch's cycles, estimated (model: " in said
    rows = [line for line in said.splitlines() if "misses per packet: " in line]
    assert [row.split(":")[0] for row in rows] == ["- 64 B", "- 1518 B"]
    assert all("L1D" in row and "→" in row for row in rows)


def test_the_stage_that_makes_the_difference_is_named(make):
    said = explain_dataplane.markdown(make({(64, "zero-copy"): 0.5}, frames=(64,)))
    assert "A packet costs the switch's thread more cycles with dequeue=zero-copy than with dequeue=copy" in said
    assert "most of the difference lies in the stage enqueue" in said
    assert "enqueue 60.0 → 120" in said


def test_what_can_not_be_told_apart_is_not(make):
    said = explain_dataplane.markdown(make({}, frames=(64,)))
    assert "the difference between dequeue=zero-copy and dequeue=copy is not significant" in said
    assert "most of the difference" not in said


def test_misses_of_a_stage_are_told_where_a_pmu_counted_them(sample, vhost_sample, tmp_path):
    options, traffics = {"dequeue": ("copy", "zero-copy")}, [("udp_flood", "saturation")]
    path = sample.write(tmp_path / "r", accesses=("vhost-user",), traffics=traffics, options=options)
    result = load(vhost_sample.change(path, pmu=True))
    assert "enqueue cache-misses per packet (hardware) 2.00 → 2.00" in explain_dataplane.markdown(result)
    assert not [name for name in metrics.of(result)["metric"].unique() if "misses" in name]


def test_what_looking_at_frames_costs_is_told_of_the_switch(sample, vhost_sample, tmp_path):
    options, traffics = {"forward": ("wire", "switch")}, [("udp_flood", "saturation")]
    path = sample.write(tmp_path / "r", accesses=("vhost-user",), traffics=traffics, options=options)
    said = explain_dataplane.markdown(load(vhost_sample.change(path)))
    assert "costs the switch 25.0 cycles per packet, 20.0 % of all" in said
    assert "lookup: 15.0 (95 % interval 15.0 to 15.0, n=3) TSC cycles per packet" in said.replace("Parse", "parse")


@pytest.fixture
def reason(staged, monkeypatch):
    """What a row of looks.yaml gives as its reason where a metric has these values."""

    def given(metric: str, *values: float) -> str:
        [row] = [one for one in looks.ROWS["options"] if metric in str(one)]
        numbers = {f"{side}.{metric}": Estimate(one, one, one, 3) for side, one in zip(("base", "other"), values, strict=True)}
        monkeypatch.setattr(looks.Words, "number", lambda _, name: numbers[name])
        return " ".join(looks.Words(comparison.pairs(staged)[0], {}).sentences(row["reason"]))

    return given


def test_a_thread_that_had_time_left_is_not_called_the_limit(reason):
    assert "had cycles left" in reason("pmd_busy", 0.4, 0.5)
    assert "no time left" in reason("pmd_busy", 0.99, 0.97)
    assert reason("pmd_busy", 0.4, 0.99) == ""


def test_where_frames_never_end_a_full_ring_tells_the_limit_and_a_busy_thread_does_not(reason):
    assert "the endpoint is the limit" in reason("reached_endpoint", 0.3, 0.6)
    assert "the switch's thread is the limit" in reason("reached_endpoint", 0.99, 0.97)
    assert reason("reached_endpoint", 0.3, 0.99) == ""
