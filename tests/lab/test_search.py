# SPDX-License-Identifier: GPL-2.0-or-later
"""No-drop and partial-drop rates in modelled time, for real: searched at once, in bursts whose every frame is counted, then measured."""

import json
from pathlib import Path

import pytest

from vsprof.collectors.uarch_model import UarchModel
from vsprof.runner import parse, run
from vsprof.runner.experiment import TRAFFIC, Case, TrafficItem, Windows
from vsprof.runner.run import Plan, Setting
from vsprof.testbeds.base import MODELLED
from vsprof.testbeds.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.usefixtures("lab_can_run")]

QUICK = {"modelled_trial_seconds": 0.005, "modelled_sum_seconds": 0.005, "width": 0.2}
SENDERS_MOST_PPS = 2_500_000
"""pktgen in a guest of the modelled Haswell sends 2.4 Mpps (packets into the switch at saturation, in results/reference)."""


def test_both_rates_of_a_path_are_found_by_one_search(tmp_path: Path) -> None:
    floods = [TRAFFIC["udp_flood"].options(load=load, search=QUICK) for load in ("pdr", "ndr")]
    plan = Plan("r001", Case("vm2vm", "ovs-dpdk", "vhost-user", 64, 1), 1, tuple(TrafficItem("udp_flood", one) for one in floods))
    windows = Windows(warmup_seconds=0.2, count=1, modelled_seconds=0.01, modelled_warmup_seconds=0.005)
    plugin = UarchModel.emulator_plugin
    assert plugin is not None
    said: list[str] = []
    host = Lab(clock=MODELLED, plugins=[plugin])
    run.execute(host, plan, Setting("no-drop", windows, ["uarch_model"], frozenset()), tmp_path, said.append)
    rows = {(row["load"], row["window"], row["name"]): row for row in parse.rows_of_run(tmp_path)}
    recorded = {load: json.loads((tmp_path / f"udp_flood-{load}" / "traffic" / "search.json").read_text()) for load in ("ndr", "pdr")}
    assert recorded["ndr"]["trials"] == recorded["pdr"]["trials"]
    assert sum("how fast the sender is" in text for text in said) == 1
    assert sum("trial at" in text for text in said) == len(recorded["ndr"]["trials"])
    status = json.loads((tmp_path / "udp_flood-ndr" / "uarch_model-1" / "uarch_model.end").read_text())["status"]
    # What QEMU leaves behind of an interrupt that it injects into a guest is taken away each time: see qemu_interrupt_mend.
    assert sum(cpu["mended"] for cpu in status["vcpus"]) == sum(cpu["injections"] for cpu in status["vcpus"]) > 0
    for trial in recorded["ndr"]["trials"]:
        assert trial["sent"] == round(trial["rate_pps"] * 0.005)
        assert trial["sent"] >= trial["into_switch"] >= trial["out_of_switch"] >= trial["received"] > 0
    for load, found in recorded.items():
        rate = rows[load, "search", "search_rate"]
        assert found["why"] == ""
        assert rate["source"] == "model"
        assert found["lower_pps"] == rate["value"] < found["upper_pps"] < SENDERS_MOST_PPS
        # The flood of the windows has that rate.
        assert rows[load, "w1", "packet_rate_into_switch"]["value"] == pytest.approx(rate["value"], rel=0.1)
    assert 100_000 < recorded["ndr"]["lower_pps"] <= recorded["pdr"]["lower_pps"]
