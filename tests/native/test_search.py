# SPDX-License-Identifier: GPL-2.0-or-later
"""A no-drop rate of this host, for real: searched through OVS-DPDK, measured at the rate that was found, and read from the files."""

import json

import pytest

from vsprof.runner import parse, run
from vsprof.runner.experiment import TRAFFIC, Case, TrafficItem, Windows
from vsprof.runner.run import Plan, Setting
from vsprof.testbeds.native import Native
from vsprof.workloads.endpoints import probe

pytestmark = [pytest.mark.native, pytest.mark.usefixtures("native_can_run")]
QUICK = {"trial_seconds": 0.3, "sum_seconds": 0.9, "width": 0.2, "limit_seconds": 60}


@pytest.fixture(scope="module")
def host() -> Native:
    with Native() as host:
        if why := probe.unavailable(host) or host.hugepages_lacking():
            pytest.skip(why)
    return Native()


@pytest.mark.long
def test_the_limit_of_ovs_dpdk_is_found_and_measured(host, tmp_path):
    """A quiet host finds a rate; on a busy one the search may end without. Both are results, and neither may contradict itself."""
    flood = TRAFFIC["udp_flood"].options(load="pdr", search=QUICK)
    equal = TRAFFIC["udp_flood"].options(load="equal", rate_pps=20_000)
    case = Case("vm2vm", "ovs-dpdk", "virtio-user", 64, 1)
    plan = Plan("r001", case, 1, (TrafficItem("udp_flood", flood), TrafficItem("udp_flood", equal)))
    setting = Setting("no-drop", Windows(warmup_seconds=0.2, count=1, seconds=0.5), ["cpu_time"], frozenset())
    said = []
    outcome = run.execute(host, plan, setting, tmp_path, said.append)
    rows = parse.rows_of_run(tmp_path)
    found = {(row["load"], row["name"]): row["value"] for row in rows if row["window"] in ("search", "flood", "w1")}
    recorded = json.loads((tmp_path / "udp_flood-pdr" / "traffic" / "search.json").read_text())
    print({name: value for (load, name), value in found.items() if load == "pdr"})
    # What frame-probe misses because the host has other work for its CPU is skipped, so it sends no faster than asked.
    assert 5_000 < found["equal", "packet_rate_sent"] < 20_400
    assert found["equal", "packets_received"] > 0.9 * found["equal", "packets_sent"]
    assert sum("trial at" in text for text in said) == len(recorded["trials"]) + 1 >= 4
    assert found["pdr", "search_ended"] == (not recorded["why"])
    if recorded["why"]:
        assert outcome.left_out["windows of udp_flood-pdr"] == recorded["why"]
        assert found["pdr", "search_rate"] is None
        return
    # How high they are is this host's: 39 kpps were found beside other work on the same two CPUs.
    bounds = [found["pdr", f"search_{end}_bound"] for end in ("lower", "upper")]
    assert 5_000 < bounds[0] < bounds[1]
    assert set(bounds) <= {trial["rate_pps"] for trial in recorded["trials"]}, "both were tried"
    assert found["pdr", "offered_rate"] == found["pdr", "search_rate"]
    assert 0.3 < found["pdr", "packet_rate_sent"] / found["pdr", "search_rate"] < 1.02
