# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab by the modelled processor's clock: what it takes by that clock is what the model counted, and time goes on afterwards."""

import json
from collections.abc import Iterator

import pytest

from vsprof.collectors.uarch_model import MARK, UarchModel
from vsprof.testbeds.base import MODELLED
from vsprof.testbeds.emulator import snapshot
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]

SECONDS = 0.02
STAMPS = f"echo $EPOCHREALTIME; sleep {SECONDS}; echo $EPOCHREALTIME"
WINDOW = f"{MARK} begin; {STAMPS}; {MARK} end"
PATIENCE_S = 300
"""Twenty milliseconds take some seconds; a machine that is ten times as slow is no fault."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    plugin = UarchModel.emulator_plugin
    assert plugin is not None
    with Lab(clock=MODELLED, plugins=[plugin]) as host:
        yield host


@pytest.fixture(scope="module")
def model(lab: Lab) -> Iterator[UarchModel]:
    made = UarchModel(lab)
    made.setup()
    yield made
    made.teardown()


def elapsed(printed: str) -> float:
    begin, end = map(float, printed.split())
    return end - begin


def test_a_busy_cpus_cycles_are_the_time_that_passes(lab: Lab, model: UarchModel) -> None:
    busy = lab.start("busy", "bash -c 'while :; do :; done'", cpus=[1])
    with model.modelled_time():
        slept = elapsed(lab.run(WINDOW, timeout=PATIENCE_S).stdout)
        window = json.loads(model.read_window())["window"]
    busy.stop()
    seconds = window["seconds"]
    # Its ends are two programs before and behind the sleep.
    assert SECONDS <= slept <= seconds < 2 * SECONDS
    cycles = [sum(mode["cycles"] for mode in core["modes"].values()) for core in window["cores"]]
    # The marks are read on CPU 0, from which the other may be a quantum and a report apart.
    assert cycles[1] == pytest.approx(seconds * model.profile.frequency_hz, rel=0.02)
    # Nobody else had much to do.
    assert max(cycles[2:]) < 0.2 * cycles[1]


def test_interrupts_between_cpus_and_accesses_to_devices_are_seen(lab: Lab, model: UarchModel) -> None:
    # The shell moves to a CPU that is idle, so CPU 0 must wake it; and opens the serial console's device, which has ports.
    with model.modelled_time():
        lab.run(f"{MARK} begin; taskset -c 2 true; stty -F /dev/ttyS0 > /dev/null; {MARK} end", timeout=PATIENCE_S)
        cores = json.loads(model.read_window())["window"]["cores"]
    ipis, accesses = ([sum(mode.get(name, 0) for mode in core["modes"].values()) for core in cores] for name in ("ipis", "io_accesses"))
    assert ipis[0] >= 1
    assert sum(accesses) >= 1


def test_cpus_stay_together_and_the_cost_is_known(model: UarchModel) -> None:
    facts = model.clock_facts()
    assert facts["modelled_s"] > SECONDS
    assert facts["wall_s"] > facts["modelled_s"]
    assert facts["far_apart_share"] < 0.01
    assert (facts["cpu"], facts["quantum_s"]) == ("haswell-ep-e5-2695v3", 1e-6)


def test_idle_time_passes_no_faster_than_real_time(lab: Lab, model: UarchModel) -> None:
    before = model.clock_facts()
    with model.modelled_time():
        assert elapsed(lab.run("echo $EPOCHREALTIME; sleep 0.5; echo $EPOCHREALTIME", timeout=PATIENCE_S).stdout) == pytest.approx(
            0.5, rel=0.1
        )
    after = model.clock_facts()
    assert after["all_idle_s"] - before["all_idle_s"] > 0.3
    assert after["wall_s"] - before["wall_s"] >= after["modelled_s"] - before["modelled_s"]


def test_afterwards_time_goes_on_as_before_and_the_lab_is_sound(lab: Lab, model: UarchModel) -> None:
    first = float(lab.run("echo $EPOCHREALTIME").stdout)
    with model.modelled_time():
        second = float(lab.run("echo $EPOCHREALTIME", timeout=PATIENCE_S).stdout)
    third = float(lab.run("echo $EPOCHREALTIME").stdout)
    assert first < second < third
    assert elapsed(lab.run("echo $EPOCHREALTIME; sleep 0.3; echo $EPOCHREALTIME").stdout) == pytest.approx(0.3, abs=0.2)
    snapshot.check(lab.channel, lab.cpus)
