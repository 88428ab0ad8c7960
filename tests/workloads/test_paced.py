# SPDX-License-Identifier: GPL-2.0-or-later
"""Single frames and restarts, computed from what frame-probe really reported (frame-probe.jsonl), and from reports made up around it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsprof.switches.base import PortCounters
from vsprof.terms.schema import Number
from vsprof.testbeds.base import MODELLED
from vsprof.workloads.endpoints.base import Counters
from vsprof.workloads.endpoints.probe_report import Latency, Report
from vsprof.workloads.traffic.base import Sample, Window
from vsprof.workloads.traffic.paced_frames import PacedFrames, PacedOptions
from vsprof.workloads.traffic.reconnect import Outage, Reconnect, ReconnectOptions

REPORTS = [Report.model_validate_json(line) for line in (Path(__file__).parent / "frame-probe.jsonl").read_text().splitlines()]
FIRST, LAST = REPORTS[0], REPORTS[-1]


def sample(report: Report) -> Sample:
    ends = (
        Counters(report.clock_s, port.received_packets, port.received_bytes, port.sent_packets, port.sent_bytes) for port in report.ports
    )
    return Sample(*ends)


def window(before: Report, after: Report) -> Window:
    ports = (PortCounters(0, 0, 0, 0), PortCounters(10, 600, 10, 600))
    return Window("w1", (sample(before), sample(after)), after.clock_s - before.clock_s, ports, ports)


def raw(*reports: Report) -> dict[str, str]:
    return {"windows.jsonl": "".join(f"{one.model_dump_json()}\n" for one in reports), "stream.json": reports[-1].model_dump_json()}


def by_name(numbers, where: str = "w1") -> dict[str, Number]:
    """Numbers of a window carry no name of their own but its, or none."""
    return {number.name: number for number in numbers if (number.window or "w1") == where}


def changed(report: Report, **values) -> Report:
    return report.model_copy(update=values)


# --- frame-probe's reports -----------------------------------------------------------------------------------------------


def test_a_real_report_adds_up():
    for report in REPORTS:
        assert sum(count for _, _, count in report.latency.buckets) == report.latency.count
        assert report.latency.count + report.disturbed.count == report.received
        assert report.received <= report.offered
        low, high = ([bucket[at] * bucket[2] for bucket in report.latency.buckets] for at in (0, 1))
        assert sum(low) <= report.latency.sum_s <= sum(high) + 1e-9 * report.latency.count


def test_what_came_between_two_reports():
    gained = LAST.latency.since(FIRST.latency)
    assert gained.count == LAST.latency.count - FIRST.latency.count > 0
    assert gained.sum_s == LAST.latency.sum_s - FIRST.latency.sum_s
    assert LAST.latency.since(LAST.latency).count == 0
    with pytest.raises(ValueError, match="went back"):
        FIRST.latency.since(LAST.latency)


def test_percentiles_are_of_the_nearest_rank():
    latency = Latency(count=100, sum_s=1, buckets=[(1, 1.5, 50), (2, 2.5, 49), (9, 9.5, 1)])
    assert [latency.percentile(percent) for percent in (0, 50, 51, 99, 99.9, 100)] == [1.5, 1.5, 2.5, 2.5, 9.5, 9.5]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40), st.floats(0.1, 100))
def test_percentiles_never_leave_what_was_counted(values, percent):
    buckets = [(value / 1e6, value / 1e6, values.count(value)) for value in sorted(set(values))]
    found = Latency(count=len(values), sum_s=sum(values) / 1e6, buckets=buckets).percentile(percent)
    below = sum(value / 1e6 <= found for value in values)
    assert below >= percent / 100 * len(values) - 1e-9
    assert found in {value / 1e6 for value in values}


@pytest.mark.parametrize("text", ["", "error: unknown command", "{}", "[]", "null", LAST.model_dump_json()[:-20]])
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        Report.model_validate_json(text)


# --- paced_frames --------------------------------------------------------------------------------------------------------


def test_a_window_counts_and_times_what_came_in_it():
    found = by_name(PacedFrames.numbers(raw(*REPORTS), [window(FIRST, LAST)]))
    assert found["packets_received"].value == LAST.received - FIRST.received
    assert found["packets_offered"].value - found["packets_received"].value == found["packets_lost"].value
    assert found["packets_timed"].value + found["packets_disturbed"].value == found["packets_received"].value
    order = [found[f"latency_{name}"].value for name in ("min", "p50", "p90", "p99", "p999", "max")]
    assert order == sorted(order)
    assert found["latency_min"].value < found["latency_mean"].value < found["latency_max"].value
    assert found["latency_p50"].unit == "seconds"


def test_the_whole_stream_is_counted_beside_the_windows():
    found = by_name(PacedFrames.numbers(raw(*REPORTS), []), "stream")
    assert found["packets_lost"].value == LAST.offered - LAST.received
    assert found["longest_gap"].value == LAST.gap.longest_s


def test_in_modelled_time_the_stream_is_what_the_windows_saw():
    files = {**raw(*REPORTS), "clock.txt": MODELLED}
    found = by_name(PacedFrames.numbers(files, [window(FIRST, LAST)]), "stream")
    assert found["packets_offered"].value == LAST.offered - FIRST.offered
    lost = (LAST.offered - FIRST.offered) - (LAST.received - FIRST.received)
    assert found["packets_lost"].value == max(0, lost - 1)
    late = changed(LAST, received=LAST.received - 3)
    found = by_name(PacedFrames.numbers({**raw(FIRST, late), "clock.txt": MODELLED}, [window(FIRST, late)]), "stream")
    assert found["packets_lost"].value == lost + 2
    assert found["longest_gap"].value is None
    assert "outside modelled time" in found["longest_gap"].note


def test_a_window_in_which_nothing_could_be_timed_says_so():
    silent = changed(FIRST, clock_s=FIRST.clock_s + 1)
    found = by_name(PacedFrames.numbers(raw(FIRST, silent), [window(FIRST, silent)]))
    assert found["latency_p50"].value is None
    assert "arrived undisturbed" in found["latency_p50"].note
    assert "latency_mean" not in found


def test_a_window_without_its_reports_is_refused():
    with pytest.raises(ValueError, match="no report"):
        list(PacedFrames.numbers(raw(LAST), [window(FIRST, LAST)]))


@pytest.mark.parametrize("options", [{"load": "saturation"}, {"period_us": 0}, {"period_us": 2e6}, {"rate": 1}])
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError):  # noqa: PT011
        PacedOptions(**options)
    assert ReconnectOptions().period_us == 100


# --- reconnect -----------------------------------------------------------------------------------------------------------


def outage(report: Report, **more) -> dict[str, Number]:
    recorded = {"killed_s": 1000.0, "running_s": 1001.5, "patience_s": 10, "came_back": True, "report": report, **more}
    files = {**raw(*REPORTS), "outage.json": Outage(**recorded).model_dump_json()}
    return by_name(Reconnect.numbers(files, [window(FIRST, LAST)]), "outage")


def with_gap(began_s: float, longest_s: float, **more) -> Report:
    return changed(LAST, gap=LAST.gap.model_copy(update={"began_s": began_s, "longest_s": longest_s}), **more)


def test_an_outage_lasts_from_the_last_frame_before_the_kill_to_the_first_after_it():
    found = outage(with_gap(999.999, 2.25, offered=30_000, received=9_000))
    assert found["outage"].value == 2.25
    assert found["outage_packets_lost"].value == 21_000
    assert (found["came_back"].value, found["switch_away"].value) == (1, 1.5)


def test_what_did_not_come_back_has_no_outage_and_says_so():
    found = outage(with_gap(999.999, 12), came_back=False)
    assert found["came_back"].value == 0
    assert found["outage"].value is None
    assert found["outage_packets_lost"].value is None
    assert "did not come back: no frame arrived within 10 s" in found["outage"].note


def test_a_gap_that_is_not_the_kills_is_not_called_its_outage():
    found = outage(with_gap(998.0, 2.25))
    assert found["outage"].value is None
    assert "-2.000 s after the switch was killed" in found["outage"].note
    assert found["outage_packets_lost"].value is not None


def test_the_loss_that_a_starved_probe_saw_is_not_believed():
    found = outage(with_gap(999.999, 6, offered=2_790, received=1_647, skipped=117_396))
    assert (found["came_back"].value, found["outage"].value) == (1, 6)
    assert found["outage_packets_lost"].value is None
    assert "117396 of 120186 frames" in found["outage_packets_lost"].note
    assert found["outage_packets_skipped"].value == 117_396


def test_an_outage_during_which_the_probe_was_away_itself_is_not_believed():
    stalls = LAST.stalls.model_copy(update={"longest_s": 0.5})
    found = outage(with_gap(999.999, 2.25, stalls=stalls))
    assert found["outage"].value is None
    assert "was away for 0.500 s of 2.250 s" in found["outage"].note
    assert found["outage_packets_lost"].value is not None


def test_an_outage_file_that_is_none_is_refused():
    with pytest.raises(ValueError):  # noqa: PT011
        list(Reconnect.numbers({**raw(*REPORTS), "outage.json": json.dumps({"killed_s": 1})}, []))
