# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hypervisor did to the CPUs between windows is told where it came and went."""

from typing import ClassVar

import pandas as pd
import pytest

from vsprof.analysis import disturbed

NEAR, FAR, LOOP = 62e-9, 228e-9, 120e-9


class MadeUp:
    """Two cases, of whose windows these are the looks."""

    cases = pd.DataFrame({"label": ["OVS-DPDK", "vhost-switch"]}, index=["a", "b"])
    manifest: ClassVar[dict] = {"runs": [{"run_id": "ra", "server": "one"}, {"run_id": "rb", "server": "one"}]}

    def __init__(self, lines: dict[str, list[float]], loops: dict[str, list[float]] | None = None) -> None:
        named = {"line_transfer_seconds": lines, "calibration_loop_seconds": loops or {"a": [LOOP], "b": [LOOP]}}
        rows = [(case, f"r{case}", name, value) for name, of in named.items() for case, values in of.items() for value in values]
        own = {"collector": "disturbance", "traffic": "udp_flood", "load": "saturation"}
        self.numbers = pd.DataFrame(rows, columns=["case_id", "run_id", "name", "value"]).assign(**own)


def test_cpus_that_stayed_are_not_spoken_of():
    assert disturbed.limits(MadeUp({"a": [NEAR, 1.1 * NEAR], "b": [NEAR] * 3})) == []
    # Nor where they were far apart all the time.
    assert disturbed.limits(MadeUp({"a": [FAR] * 3, "b": [FAR] * 3})) == []


def test_cpus_that_were_moved_are_told_case_by_case():
    [said] = disturbed.limits(MadeUp({"a": [NEAR, FAR, NEAR], "b": [NEAR] * 3}))
    assert "62.0 ns" in said
    assert "228 ns in some windows: 1 of 3 windows of OVS-DPDK; 0 of 3 windows of vhost-switch" in said


def test_one_window_of_many_changes_no_median():
    assert disturbed.limits(MadeUp({"a": [NEAR] * 98 + [FAR], "b": []})) == []
    assert disturbed.limits(MadeUp({"a": [NEAR] * 97 + [FAR] * 3, "b": []})) != []
    # Of many windows of other cases, that is.
    assert disturbed.limits(MadeUp({"a": [NEAR, FAR, FAR], "b": [NEAR] * 197})) != []


def test_machines_that_differ_have_not_been_moved(monkeypatch):
    made_up = MadeUp({"a": [NEAR] * 3, "b": [FAR] * 3}, {"a": [LOOP] * 3, "b": [2 * LOOP] * 3})
    assert len(disturbed.limits(made_up)) == 2
    runs = [{"run_id": "ra", "server": "one"}, {"run_id": "rb", "server": "other"}]
    monkeypatch.setattr(MadeUp, "manifest", {"runs": runs})
    assert disturbed.limits(made_up) == []


@pytest.mark.parametrize(("factor", "told"), [(1.3, 0), (2.0, 1)])
def test_a_neighbour_is_told_where_it_takes_half_of_the_core(factor, told):
    said = disturbed.limits(MadeUp({"a": [NEAR], "b": [NEAR]}, {"a": [LOOP] * 3, "b": [LOOP, factor * LOOP, LOOP]}))
    assert len(said) == told
    assert all("1 of 3 windows of vhost-switch" in one for one in said)


def test_results_without_a_look_have_none():
    made_up = MadeUp({"a": [NEAR, FAR]})
    made_up.numbers = made_up.numbers.assign(collector="cpu_time")
    assert disturbed.limits(made_up) == []
