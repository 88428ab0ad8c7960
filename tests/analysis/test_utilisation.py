# SPDX-License-Identifier: GPL-2.0-or-later
"""How full CPUs are in modelled time: cycles by what the window had, polls that found nothing taken out."""

from types import SimpleNamespace

import pandas as pd
import pytest

from vsprof.analysis.explain import utilisation

HZ = 1_000_000


def result(rows: list[tuple], clock: dict | None) -> SimpleNamespace:
    """``rows``: run, CPU, name, cycles; each of one window of 0.5 s."""
    own = pd.DataFrame(rows, columns=["run_id", "cpu", "name", "value"]).assign(
        case_id="a", traffic="udp_flood", load="saturation", window="uarch_model-1", source="model", enabled_s=0.5
    )
    return SimpleNamespace(clock=lambda case: clock or {}, own_numbers=own)


ROWS = [
    ("r001", 1, "cycles", 300_000.0), ("r001", 1, "cycles", 200_000.0), ("r001", 1, "empty_polls_cycles", 400_000.0),
    ("r001", 2, "cycles", 250_000.0), ("r001", 2, "instructions", 9e9), ("r002", 1, "cycles", 500_000.0),
    ("r002", 1, "empty_polls_cycles", 300_000.0), ("r002", 2, "cycles", 250_000.0), ("r002", 2, "cycles", None),
]  # fmt: skip


def test_a_cpu_is_full_of_what_it_did_and_polling_for_nothing_is_none_of_it():
    found = utilisation(result(ROWS, {"frequency_hz": HZ}), "a", traffic="udp_flood", load="saturation")
    assert list(found) == [2, 1]
    assert [full.median for full in found.values()] == pytest.approx([0.5, 0.3])
    assert [full.n for full in found.values()] == [2, 2]


def test_where_time_was_not_modelled_nobody_knows():
    assert utilisation(result(ROWS, None), "a") == {}
    assert utilisation(result(ROWS, {"frequency_hz": HZ}), "b") == {}
    assert utilisation(result(ROWS, {"frequency_hz": HZ}), "a", load="equal") == {}
