# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts that can't be true: more cycles than a CPU's clock gives, because two counted other packets."""

from pathlib import Path

import pandas as pd
import pytest

from vsprof.analysis import describe, load, plausible, show

HZ = 2_000_000_000
RATE = 1_000_000.0
SECONDS = 0.05
ROLES = {0: "host-other", 1: "switch", 2: "guest", 3: "guest"}
REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"


class MadeUp:
    """One case whose switch's CPU works all of its time, and its guests' CPUs half of it, at a million packets a second."""

    path = Path("made-up")

    def __init__(
        self, *, packets: float = 1.0, frequency: float | None = HZ, around: float = SECONDS, seconds: float = SECONDS, pmd: float = 1.0
    ):
        """``packets``: of those that the traffic counted, the share that the model did; ``pmd``: that the poll-mode thread did."""
        self.frequency = frequency
        self.cases = pd.DataFrame({"label": ["the switch"], "access": ["vhost-user"]}, index=["a"])
        self.values = {"a": {}}
        model = {"collector": "uarch_model", "source": "model", "enabled_s": seconds}
        busy = {0: 0.1, 1: 1.0, 2: 0.5, 3: 0.5}
        cycles = [{**model, "role": ROLES[cpu], "cpu": cpu, "name": "cycles", "value": HZ * seconds * share} for cpu, share in busy.items()]
        data = {"role": "", "cpu": -1, **model}
        cycles += [{**data, "name": name, "value": RATE * seconds * packets} for name in ("model_packets", "model_frames")]
        cycles += [{**data, "name": "window_seconds", "value": seconds}]
        flood = {"collector": "udp_flood", "source": "software", "role": "", "cpu": -1}
        thread = {"collector": "ovs_pmd", "source": "software", "role": "switch", "cpu": 1, "enabled_s": SECONDS}
        counts = {"pmd_busy_cycles": HZ * SECONDS * 0.9, "pmd_idle_cycles": HZ * SECONDS * 0.1, "pmd_packets": RATE * SECONDS * pmd}
        numbers = [
            {**flood, "name": "packet_rate_received", "value": RATE}, {**flood, "name": "window_seconds", "value": around},
            *({**thread, "name": name, "value": value} for name, value in counts.items()),
        ]  # fmt: skip
        self.own_numbers = self._of("uarch_model-{}", cycles)
        self.numbers = self._of("w{}", numbers)

    @staticmethod
    def _of(window: str, rows: list[dict]) -> pd.DataFrame:
        where = [
            {"case_id": "a", "run_id": f"r{run}", "repetition": run, "traffic": "udp_flood", "load": "saturation"} for run in (1, 2, 3)
        ]
        every = [{**one, "window": window.format(number), **row} for one in where for number in (1, 2) for row in rows]
        return pd.DataFrame(every).assign(mode="", unit="")

    def clock(self, case: str) -> dict:
        return {"frequency_hz": self.frequency} if self.frequency else {}

    def cpu_roles(self, case: str) -> dict[int, str]:
        return ROLES


def test_what_is_right_is_passed_over():
    assert plausible.limits(MadeUp()) == []


def test_a_cost_that_is_twice_too_high_is_told_with_both_numbers_and_what_it_may_mean():
    [said] = plausible.limits(MadeUp(packets=0.5))
    assert said == (
        "the switch, UDP flood, saturation: 4,000 cycles per packet of the CPU of role switch (CPU 1), times 1,000,000 packets a second, are "
        "4.00 GHz, and there are 2.00 GHz. Cycles and rate count different packets: one of the two counts may have each packet twice, or "
        "only half of them. Do not use numbers per packet of this case."
    )


def test_what_a_poll_mode_thread_says_of_itself_is_looked_at_too():
    [said] = plausible.limits(MadeUp(pmd=0.5))
    assert "3,600 cycles per packet of the poll-mode threads" in said
    assert "are 3.60 GHz, and there are 2.00 GHz" in said


@pytest.mark.parametrize(("packets", "told"), [(0.96, 0), (0.94, 1), (1.9, 0)])
def test_five_in_a_hundred_are_allowed(packets, told):
    """A CPU has no less than nothing: a cost that is too low is not seen."""
    assert len(plausible.limits(MadeUp(packets=packets))) == told


@pytest.mark.parametrize(("packets", "who"), [(0.55, ["role switch"]), (0.4, ["role switch", "role guest (CPU 2, CPU 3)"])])
def test_cpus_that_have_time_left_hide_a_fault(packets, who):
    said = plausible.limits(MadeUp(packets=packets))
    assert len(said) == len(who)
    assert all(one in text for one, text in zip(who, said, strict=True))


def test_what_came_between_two_windows_ends_is_allowed():
    """The traffic's window is half as long again as the model's, and a burst in the rest of it may be all that differs."""
    assert plausible.limits(MadeUp(packets=0.7, around=1.5 * SECONDS)) == []
    assert len(plausible.limits(MadeUp(packets=0.7))) == 1


def test_where_time_was_not_modelled_there_is_no_clock_to_hold_against():
    assert plausible.limits(MadeUp(packets=0.5, frequency=None)) == []


def test_a_handful_of_packets_says_nothing():
    few = plausible.FEWEST / RATE / 2
    assert plausible.limits(MadeUp(packets=0.5, seconds=few, around=few)) == []


@pytest.fixture(scope="module")
def halved(sample):
    """A real result of which the model missed every second packet."""
    result = load.load(REFERENCE)
    frame = result.frame.copy()
    frame.loc[frame["name"].isin(["model_packets", "model_frames"]), "value"] /= 2
    return sample.with_frame(result, frame)


def test_a_real_result_passes_and_is_told_once_its_packets_are_halved(halved):
    assert plausible.limits(load.load(REFERENCE)) == []
    said = plausible.limits(halved)
    assert any("UDP flood, saturation: " in one and "of role vhost (CPU 1)" in one for one in said)
    assert any("UDP flood, saturation: " in one and "of role switch (CPU 1)" in one for one in said)
    assert set(said) <= set(describe.all_limits(halved)) & set(show.summary(halved)["limits"])
