# SPDX-License-Identifier: GPL-2.0-or-later
"""What Linux tells of a host's idle states, and what is made of it."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.testbeds import idle_states
from vsprof.testbeds.base import EMULATED, MODELLED
from vsprof.testbeds.lab import Lab

# As Linux's intel_idle has it for Haswell servers (drivers/idle/intel_idle.c, hsw_cstates).
HASWELL = "".join(
    f"/sys/devices/system/cpu/cpu0/cpuidle/state{number}/{what}:{value}\n"
    for what, values in (("name", ["POLL", "C1", "C1E", "C3", "C6"]), ("latency", [0, 2, 10, 33, 133]))
    for number, value in enumerate(values)
)


def host(printed: str) -> SimpleNamespace:
    return SimpleNamespace(run=lambda command, check: SimpleNamespace(stdout=printed))


@pytest.mark.parametrize(("deepest", "latency"), [("C0", 0), ("C1", 2), ("C3", 33), ("C6", 133)])
def test_a_states_latency_is_asked_for(deepest, latency):
    assert idle_states.lacking(host(HASWELL), deepest) is None
    assert idle_states.latency_us(host(HASWELL), deepest) == latency


def test_older_and_acpi_names_are_the_same_states():
    assert idle_states.read("/state1/name:C6-HSW\n/state1/latency:133\n/state2/name:C3_ACPI\n/state2/latency:80\n") == {"C6": 133, "C3": 80}


def test_what_is_lacking_is_said():
    assert "no idle states" in idle_states.lacking(host(""), "C1")
    assert "no idle state C8, but POLL, C1, C1E, C3, C6" in idle_states.lacking(host(HASWELL), "C8")


@given(st.text())
def test_anything_else_is_no_state(text):
    assert all(isinstance(latency, int) for latency in idle_states.read(text).values())


def test_the_lab_has_them_in_modelled_time():
    modelled = Lab(clock=MODELLED)
    assert modelled.idle_state_lacking("C1") is None
    assert modelled.limit_idle_states("C1") is None
    assert modelled.deepest_idle == "C1"
    assert "modelled time" in Lab(clock=EMULATED).idle_state_lacking("C1")
