# SPDX-License-Identifier: GPL-2.0-or-later
"""VTune: its command lines, and what its reports say. captured/vtune.end was NOT captured: it was written by hand after the
documented format of VTune's reports, for VTune can't be installed here. Its names of functions and its numbers mean nothing.
"""

from pathlib import Path

import pytest

from vsprof.collectors import vtune
from vsprof.collectors.base import Recorded
from vsprof.collectors.vtune import Vtune, read_events, read_summary
from vsprof.terms.errors import BadInput
from vsprof.terms.placement import Placement

CAPTURED = Path(__file__).with_name("captured")
TEXT = (CAPTURED / "vtune.end").read_text()
PROGRAM = "/opt/intel/oneapi/vtune/latest/bin64/vtune"


def recorded(old: str = "", new: str = "") -> Recorded:
    assert old in TEXT
    return Recorded("", TEXT.replace(old, new) if old else TEXT, 0.0, Placement([]))


def values(old: str = "", new: str = "") -> dict[str, object]:
    found = list(Vtune.numbers(recorded(old, new)))
    assert len({n.name for n in found}) == len(found), "a number twice"
    return {n.name: n for n in found}


@pytest.mark.parametrize("analysis", vtune.ANALYSES)
def test_the_command_looks_at_the_whole_host(analysis):
    script = vtune.script(PROGRAM, analysis, 3.2, "1,3-5")
    (collect,) = [line for line in script.splitlines() if "-collect" in line]
    assert collect.startswith(f"{PROGRAM} -collect {analysis} ")
    assert "-duration 4 " in collect
    assert "-cpu-mask 1,3-5 " in collect
    assert " -- " not in collect
    assert ("sampling-and-waits=hw" in collect) == (analysis == "threading")
    assert "-cpu-mask" not in vtune.script(PROGRAM, analysis, 3)


@pytest.mark.parametrize(
    "given", [{"analysis": "hotspots"}, {"analysis": None}, {"cpus": "1;reboot"}, {"cpus": 1}, {"cpus": ""}, {"cpus": "-1"}]
)
def test_bad_options(given):
    with pytest.raises(BadInput):
        Vtune.check_options(given)


def test_good_options():
    Vtune.check_options({"analysis": "memory-access", "cpus": "0-3,7"})
    Vtune.check_options({})


def test_summary():
    found = values()
    shares = found["vtune_back_end_bound.memory_bound.l1_bound"]
    assert (shares.value, shares.unit) == (pytest.approx(0.123), "fraction")
    assert (found["vtune_elapsed_time"].value, found["vtune_elapsed_time"].unit) == (4.003137, "seconds")
    assert (found["vtune_cpi_rate"].value, found["vtune_cpi_rate"].unit) == (1.395973, "cycles/instruction")
    assert found["vtune_mux_reliability"].value == 0.962
    assert not [name for name in found if "platform_info" in name or "computer" in name]


def test_what_vtune_could_not_tell_is_missing_with_its_words():
    one = values()["vtune_back_end_bound.memory_bound.dram_bound"]
    assert one.value is None
    assert "N/A with HT on" in one.note


def test_tables_inside_of_a_summary():
    found = values()
    assert (found["vtune_dram.average"].value, found["vtune_dram.average"].unit) == (pytest.approx(8.352945e9), "bytes/second")
    share = found["vtune_dram_single_package.of_elapsed_time_with_high_bw_utilization"]
    assert (share.value, share.unit) == (0.0, "fraction")


def test_a_summary_with_two_columns_and_units_behind_the_numbers():
    found = {
        m.path: m for m in read_summary("vtune: a remark\nMetric Name,Metric Value\nElapsed Time,8.0s\nMemory Bound,N/A\nRetiring,25.5%\n")
    }
    assert (found["Elapsed Time",].value, found["Elapsed Time",].unit) == (8.0, "seconds")
    assert found["Memory Bound",].value is None
    assert (found["Retiring",].value, found["Retiring",].unit) == (0.255, "fraction")


def test_doubtful_numbers_say_so():
    assert not any("MUX Reliability" in n.note for n in values().values())
    assert all("MUX Reliability is 0.4" in n.note for n in values("0.962", "0.4").values())


def test_events_are_thousands_where_their_heading_says_so():
    found = values()
    assert (found["vtune_INST_RETIRED.ANY"].value, found["vtune_INST_RETIRED.ANY"].unit) == (7450000500, "events")
    assert "samples" in found["vtune_INST_RETIRED.ANY"].note
    by_function = {(f.name, f.function): f for f in Vtune.functions(recorded())}
    walk = "DTLB_LOAD_MISSES.WALK_DURATION:cmask=1"
    assert by_function[walk, "dp_netdev_process_rxq_port"].value == 300_000
    assert by_function["INST_RETIRED.ANY", "__napi_poll"].object == "vmlinux"
    assert by_function[walk, "std::pair<int, int> lookup<false>"].value == 12_000
    assert (walk, "__napi_poll") not in by_function


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "^"])
def test_delimiters_and_the_columns_of_self_and_total(delimiter):
    columns = ["Function", " Hardware Event Count:A.B:Self", "Hardware Event Count:A.B:Total (K)", " Module"]
    text = "\n".join(delimiter.join(line) for line in (columns, ["f", " 7", "9", " m"]))
    (one,) = read_events(text)
    assert (one.name, one.value, one.function, one.object) == ("A.B", 7, "f", "m")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--- summary\n", ""),
        ("Hierarchy Level,Metric Name,Metric Value", "Metric Name,Level"),
        ("3,L1 Bound(%)", "9,L1 Bound(%)"),
        ("3,L1 Bound(%)", "x,L1 Bound(%)"),
        ("1,Clockticks,10400000000", "1"),
        ("118.000000,47.900000", "47.900000"),
        ("4.003137", "9e999"),
        ("5120000,", "many,"),
        ("5120000,", "-1,"),
        ("5120000,", "nan,"),
        ("Hardware Event Count:", "Event:"),
        (",Module,", ",Place,"),
        ("__napi_poll,310000,420000,", "__napi_poll,310000,"),
    ],
)
def test_what_is_no_report_of_vtune_is_refused(old, new):
    with pytest.raises(ValueError):  # noqa: PT011
        list(Vtune.numbers(recorded(old, new)))
