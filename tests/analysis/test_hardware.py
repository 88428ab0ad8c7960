# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardware metrics out of SYNTHETIC counts: what was put in comes out, whatever windows it was counted in."""

import pandas as pd
import pytest

from vsprof.analysis import describe, hardware, metrics, show
from vsprof.analysis.load import load
from vsprof.analysis.source import select
from vsprof.analysis.sources import HARDWARE, SOFTWARE
from vsprof.terms import schema

FLOOD = {"traffic": "udp_flood", "load": "saturation"}
KERNEL, DPDK = "kernel-ovs+vhost-net+64", "ovs-dpdk+vhost-user+64"


def value(result, metric, case=KERNEL, **where):
    return HARDWARE.estimate(result, case_id=case, metric=metric, **{**FLOOD, **where}).median


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # The path is three CPUs (the housekeeping CPU is left out), in two modes.
        ("hardware_cycles_per_packet", 3 * 2 * 3000),
        ("hardware_cycles_per_packet_user", 3 * 3000),
        ("hardware_instructions_per_packet_kernel", 3 * 2000),
        ("hardware_cpi", 1.5),
        ("hardware_cpi_kernel", 1.5),
        ("hardware_l1d_misses_per_kilo_instructions", 20),
        ("hardware_l1d_misses_per_packet", 3 * 2 * 40),
        # Its two events are never in the same window.
        ("hardware_llc_misses_per_packet", 3 * 2 * 8),
        ("hardware_llc_misses_per_packet_user", 3 * 8),
    ],
)
def test_what_was_counted_comes_out(counted, metric, expected):
    assert value(counted, metric) == pytest.approx(expected)


def test_roles_and_totals(counted):
    assert value(counted, "hardware_cycles_per_packet", role="all") == pytest.approx(4 * 2 * 3000)
    assert value(counted, "hardware_cycles_per_packet", role="guest") == pytest.approx(2 * 2 * 3000)
    assert value(counted, "hardware_cycles_per_packet", role="vhost") == pytest.approx(2 * 3000)


def test_data_follow_the_traffic(counted):
    tcp = {"traffic": "tcp_stream", "load": "saturation"}
    found = HARDWARE.estimate(counted, case_id=KERNEL, metric="hardware_cycles_per_megabit", **tcp)
    assert found.median == pytest.approx(3 * 2 * 3000)
    assert select(hardware.of(counted), metric="hardware_cycles_per_megabit")["unit"].unique() == ["cycles/megabit"]
    assert not HARDWARE.estimate(counted, case_id=KERNEL, metric="hardware_cycles_per_packet", **tcp).n


def test_polls_that_found_nothing_are_taken_out(counted):
    whole = value(counted, "hardware_cycles_per_packet_user_with_polling", DPDK, role="switch")
    assert value(counted, "hardware_cycles_per_packet_user", DPDK, role="switch") == pytest.approx(3000)
    assert whole > 3000 * 1.05


def test_a_count_alone_is_no_metric(counted):
    assert not set(hardware.of(counted)["metric"]) & {"hardware_cycles", "hardware_llc_misses"}


def test_metrics_of_several_windows_are_named(counted):
    assert hardware.scaled(counted) == ["llc_misses", "llc_misses_per_packet"]
    assert any("`llc_misses_per_packet`" in text and "different windows" in text for text in describe.all_limits(counted))


def test_core_cycles_and_those_of_the_switch_agree(counted):
    """The switch's own cycles per packet, as core cycles: TSC cycles x (core cycles / TSC cycles of the same seconds)."""
    ratio = value(counted, "hardware_clock_ratio", DPDK, role="switch")
    tsc = SOFTWARE.estimate(counted, case_id=DPDK, metric="pmd_cycles_per_packet", **FLOOD).median
    assert value(counted, "hardware_pmd_cycles_per_packet", DPDK, role="switch") == pytest.approx(tsc * ratio, rel=0.05)


def test_an_empty_value_is_no_zero(counted, sample):
    empty = counted.frame["name"].eq("l1") & counted.frame["cpu"].eq(2)
    frame = counted.frame.assign(value=counted.frame["value"].where(~empty), note=counted.frame["note"].where(~empty, "it was stolen"))
    result = sample.with_frame(counted, frame)
    assert not HARDWARE.estimate(result, case_id=KERNEL, metric="hardware_l1d_misses_per_packet", **FLOOD).n
    assert HARDWARE.missing(result, ["l1d_misses"]) == ["`l1d_misses`: it was stolen"]
    assert HARDWARE.estimate(result, case_id=KERNEL, metric="hardware_cpi", **FLOOD).n == 3
    assert any("`l1`: it was stolen" in text for text in HARDWARE.limits(result))


def test_a_mode_that_was_never_counted_makes_no_sum(counted, sample):
    kept = ~(counted.frame["name"].eq("l1") & counted.frame["mode"].eq("kernel"))
    result = sample.with_frame(counted, counted.frame[kept])
    assert not HARDWARE.estimate(result, case_id=KERNEL, metric="hardware_l1d_misses_per_packet", **FLOOD).n
    assert value(result, "hardware_l1d_misses_per_packet_user") == pytest.approx(120)


def test_modes_that_were_not_told_apart(counted, sample):
    frame = counted.frame
    hardware_rows = frame["source"] == "hardware"
    whole = frame[~(hardware_rows & frame["mode"].eq("kernel"))]
    result = sample.with_frame(counted, whole.assign(mode=whole["mode"].where(whole["source"] != "hardware", "all")))
    assert value(result, "hardware_cycles_per_packet") == pytest.approx(3 * 3000)
    assert not any(metric.endswith(("_user", "_kernel")) for metric in hardware.of(result)["metric"])


def test_a_window_without_data_scales_nothing(counted, sample):
    """Of a run in which one window does not say what it carried, nothing is made that mixes packets with seconds."""
    frame = counted.frame
    gone = frame["name"].eq("packet_rate_received") & frame["window"].eq("w3") & frame["load"].eq("saturation")
    result = sample.with_frame(counted, frame.assign(value=frame["value"].where(~gone)))
    assert not HARDWARE.estimate(result, case_id=KERNEL, metric="hardware_llc_misses_per_packet", **FLOOD).n
    assert value(result, "hardware_cpi") == pytest.approx(1.5, rel=0.02)
    assert value(result, "hardware_cpi_user") == pytest.approx(1.5)


def test_why_a_metric_is_not_there(counted, two_switches):
    assert HARDWARE.missing(counted, ["walk_cycles"]) == ["made-up has no walk_cycles: nobody made it up"]
    assert "were not asked for" in HARDWARE.missing(counted, ["branch_misses"])[0]
    assert "no PMU counted" in HARDWARE.missing(two_switches, ["cycles"])[0]


def test_without_a_pmu_nothing_is_said(two_switches):
    assert hardware.of(two_switches).empty
    assert HARDWARE.limits(two_switches) == []
    assert describe.hardware_heading(two_switches) == describe.headlines(two_switches, HARDWARE) == ""


def test_hardware_is_shown_apart(counted):
    numbers = counted.numbers
    assert "hardware" not in set(numbers["source"])
    assert not set(hardware.of(counted)["metric"]) & set(metrics.of(counted)["metric"])
    assert "this is a virtual machine" in describe.hardware_heading(counted)
    assert isinstance(describe.headlines(counted, HARDWARE).frame, pd.DataFrame)
    summary = show.summary(counted)
    assert summary["hardware"] == "hardware counters (Made-up 2)"
    assert any(one["metric"] == "hardware_cpi" for one in summary["cases"][0]["hardware_metrics"])
    assert "hardware counters (Made-up 2)" in show.text(counted)


def test_generic_names_are_labelled(sample, pmu_sample, tmp_path):
    result = load(pmu_sample.add(sample.write(tmp_path / "r", repetitions=1), {"vendor_defined": True}))
    assert any("vendor-defined" in text for text in HARDWARE.limits(result))


def test_what_was_counted_outside_the_cores_is_the_whole_hosts(sample, pmu_sample, tmp_path):
    path = sample.write(tmp_path / "vm2vm")
    table = schema.read(path / "measurements.parquet").to_pandas()
    rows = list(table.astype(object).where(table.notna(), None).to_dict("records"))
    for _, part in table.groupby(["run_id", "traffic", "load", "window"]):
        where = {key: part.iloc[0][key] for key in (*schema.KEYS.names, "load")}
        if where["window"].startswith("w"):
            moved = 100.0 * pmu_sample.data(part) / pmu_sample.SPAN * part.loc[part["name"] == "window_seconds", "value"].iloc[0]
            rows.append(schema.row(where, "uncore", "hardware", schema.Number("memory_read_bytes", float(moved), "bytes")))
            rows.append(schema.row(where, "uncore", "hardware", schema.Number("io_read_llc_hits", None, "events", note="not here")))
    schema.write(path / "measurements.parquet", rows)
    result = load(path)
    found = HARDWARE.estimate(result, case_id=KERNEL, metric="hardware_memory_read_bytes_per_packet", role="all", **FLOOD)
    assert found.median == pytest.approx(100)
    units = hardware.of(result).set_index("metric")["unit"]
    assert set(units["hardware_memory_read_bytes_per_second"]) == {"bytes/s"}
    assert set(units["hardware_memory_read_bytes_per_packet"]) == {"bytes/packet"}
    assert not any("io_read" in metric for metric in units.index)
    # No role, so nothing of the software's numbers, and no sign that perf_stat counted.
    assert "memory_read_bytes_per_second" not in set(metrics.of(result)["metric"])
    assert not hardware.present(result)
