# SPDX-License-Identifier: GPL-2.0-or-later
"""From a stand-in for a PMU to a metric with its interval: what the collector writes is what analysis reads."""

import json

import pytest

from vsprof.analysis.load import load
from vsprof.analysis.sources import HARDWARE
from vsprof.terms import schema
from vsprof.terms.schema import Number

CASE = "vm2vm_kernel-ovs_vhost-net_64B_1f"
WHERE = {"experiment": "e", "case_id": CASE, "testbed": "local", "switch": "kernel-ovs", "access": "vhost-net", "topology": "vm2vm",
         "frame_bytes": 64, "flows": 1, "traffic": "udp_flood", "load": "saturation"}  # fmt: skip
RATE = 1000.0


def test_what_the_collector_writes_analysis_computes(with_pmu, measured, tmp_path):
    collector = with_pmu({"counters": 3})
    collector.setup()
    count = 2 * len(collector.facts()["groups"])
    windows = [measured(collector, number, count) for number in range(1, count + 1)]
    rows = []
    for repetition in (1, 2):
        for number, counted in enumerate(windows, 1):
            here = {**WHERE, "run_id": f"r{repetition}", "repetition": repetition, "window": f"w{number}"}
            carried = [Number("window_seconds", 1.0, "seconds"), Number("packet_rate_received", RATE, "packets/s")]
            rows += [schema.row(here, "udp_flood", "software", one) for one in carried]
            rows += [schema.row(here, "perf_stat", "hardware", one) for one in counted]
    schema.write(tmp_path / "measurements.parquet", rows)
    facts = json.loads(json.dumps({"collectors": {"perf_stat": collector.facts()}}))
    (tmp_path / "manifest.json").write_text(json.dumps({"schema_version": schema.VERSION, "testbed": "local", "runs": [], "facts": facts}))
    result = load(tmp_path)

    def value(metric: str) -> float:
        found = HARDWARE.estimate(result, case_id=CASE, traffic="udp_flood", load="saturation", metric=metric)
        assert found.n == 2
        return found.median

    # The stand-in counts 1,000,000 of everything in user mode and 100,000 in the kernel, in a window of one second; CPU 1 is the path.
    assert value("hardware_cycles_per_packet_user") == pytest.approx(1e6 / RATE)
    assert value("hardware_cycles_per_packet") == pytest.approx(1.1e6 / RATE)
    assert value("hardware_llc_misses_per_packet_kernel") == pytest.approx(2 * 1e5 / RATE)  # of the own and of another node
    assert value("hardware_l1d_misses_per_kilo_instructions") == pytest.approx(1000)
    assert value("hardware_cpi") == pytest.approx(1)
    assert value("hardware_cycles_per_second") == pytest.approx(1.1e6)
    assert HARDWARE.missing(result, ["walk_cycles"])[0].startswith("zen4 has no walk_cycles")
