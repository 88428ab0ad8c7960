# SPDX-License-Identifier: GPL-2.0-or-later
"""The switches really forward in the lab under the model, and what a packet costs there is of a plausible size."""

from __future__ import annotations

import pytest

from bench import user_mode_linux
from bench import validate_switches as switches
from bench.model import PLUGIN
from collectors.uarch_model import profiles

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("lab_can_run")]


@pytest.mark.parametrize("switch", switches.SWITCHES, ids=lambda switch: switch.name)
def test_a_packet_costs_something(switch, monkeypatch):
    if not PLUGIN.exists():
        pytest.skip("the model is not built: run `make setup`")
    if switch.folders and not (user_mode_linux.FOLDER / "order").exists():
        pytest.skip("User-Mode Linux was not fetched: `make validate-model` does")
    monkeypatch.setattr(switches, "WINDOWS", 1)
    monkeypatch.setattr(switches, "LAB_SECONDS", 3)
    ((found,),) = switches.modelled([switch], {"uml": user_mode_linux.FOLDER}, profiles.load(profiles.DEFAULT), print).values()
    assert found["packets"] > 1000
    assert 500 < found["instructions"] < 5000
    assert 0.2 < found["cpi"] < 5
    # 256 packets go round and round: they fit into the caches.
    assert found["llc_misses"] < 0.5
    assert found["l1d_misses"] > 1
