# SPDX-License-Identifier: GPL-2.0-or-later
"""Every shipped file of the catalogue: names, codes, formulas, units, sources; and that no processor lacks a metric without a word."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from vsprof.collectors.events import catalogue, processor
from vsprof.collectors.events.entries import CODES, Event
from vsprof.collectors.uarch_model import profiles

FILES = sorted(catalogue.HERE.glob("*/*.json"))
MICROARCHITECTURES = [name for name in catalogue.names() if name != catalogue.GENERIC]
UNITS = {
    "bytes",
    "cycles",
    "events",
    "instructions",
    "slots",
    "fraction",
    "hertz",
    "cycles/instruction",
    "cycles/packet",
    "events/packet",
    "instructions/packet",
    "events/1,000 instructions",
}
# What the issue asks of every microarchitecture: CPI, each cache, each TLB and its walks, branches, stalls and pipeline slots.
REQUIRED = (
    *("cpi", "cycles", "instructions", "l1i_fetches", "l1i_misses", "l1d_accesses", "l1d_misses", "l2_accesses", "l2_misses"),
    *("llc_accesses", "llc_misses", "dtlb_misses", "dtlb_walks", "itlb_misses", "itlb_walks", "walk_cycles", "branches", "branch_misses"),
    *("stalled_cycles", "retiring", "frontend_bound", "bad_speculation", "backend_bound", "llc_misses_per_packet", "branch_miss_rate"),
)
# What each of them has indeed; a list, so that none is lost unseen.
MISSING = {
    "haswell-ep": set(),
    "skylake-sp": set(),
    "icelake-sp": set(),
    "cascadelake-sp": set(),
    "sapphire-rapids": {"l1i_fetches"},
    "emerald-rapids": {"l1i_fetches"},
    "granite-rapids": {"l1i_fetches"},
    "zen2": {"l1i_fetches", "walk_cycles", "stalled_cycles", "retiring", "frontend_bound", "bad_speculation", "backend_bound"},
    "zen3": {"walk_cycles", "stalled_cycles", "retiring", "frontend_bound", "bad_speculation", "backend_bound"},
    "zen4": {"walk_cycles"},
    "zen5": {"walk_cycles"},
    "neoverse-n2": {"walk_cycles"},
    "neoverse-n2-r0p2": {"walk_cycles"},
    "neoverse-v1": {"walk_cycles"},
    "neoverse-v2": {"walk_cycles"},
    "neoverse-n1": {"walk_cycles", "retiring", "frontend_bound", "bad_speculation", "backend_bound"},
}


def entries(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())


def test_there_are_files():
    assert set(MICROARCHITECTURES) == set(MISSING)
    assert len(FILES) >= 2 * len(MISSING)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_entry_is_complete(path):
    for keys in entries(path):
        if "EventName" in keys:
            assert keys["Source"].strip(), keys
            assert keys["BriefDescription"].strip(), keys
            assert len([key for key in CODES if key in keys]) == 1, keys
        else:
            assert keys.get("BriefDescription", "").strip() or keys.get("Missing", "").strip(), keys
            assert re.fullmatch(r"1(000)?[^0-9 ].*", keys["ScaleUnit"]), keys


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_codes_are_hexadecimal(path):
    for keys in entries(path):
        for key in ("EventCode", "UMask"):
            # Of a slice of cache, a unit mask has more bits.
            assert re.fullmatch(r"0x[0-9a-f]{2,8}" if "Unit" in keys else r"0x[0-9a-f]{2,4}", keys.get(key, "0x00")), keys


@pytest.mark.parametrize("name", catalogue.names())
def test_each_microarchitecture_loads(name):
    known = catalogue.load(name)
    assert {metric.unit for metric in known.metrics.values()} <= UNITS
    for metric in known.metrics:
        assert known.missing(metric) or known.needs(metric), metric
        counts = dict.fromkeys((*known.events, *catalogue.DATA), 7.0)
        value = known.evaluate(metric, counts)
        assert (value.value is None) == bool(value.note)
        assert value.value is not None or known.missing(metric) or "division by zero" in value.note


@pytest.mark.parametrize("name", MICROARCHITECTURES)
def test_required_metrics_are_there_or_say_why_not(name):
    known = catalogue.load(name)
    assert {metric for metric in REQUIRED if known.missing(metric)} == MISSING[name]


def test_generic_names_are_labelled():
    known = catalogue.load(catalogue.GENERIC)
    assert known.vendor_defined
    own = {keys.get("EventName") or keys["MetricName"] for path in catalogue.HERE.glob("generic/*.json") for keys in entries(path)}
    for name in own:
        entry = known.find(name)
        assert entry.description.startswith("Vendor-defined.") or entry.missing, name


@pytest.mark.parametrize("name", MICROARCHITECTURES)
def test_what_perf_is_told(name):
    pmu = "armv8_pmuv3_0" if name.startswith("neoverse-") else "cpu"
    terms = r"event=0x[0-9a-f]+(,(umask|cmask)=0x[0-9a-f]+)*(,(inv|edge|any)=1)*,name=[A-Za-z0-9_.]+"
    told = [event.perf("u", pmu) for event in catalogue.load(name).events.values() if event.hardware and not event.unit]
    assert all(re.fullmatch(rf"{pmu}/{terms}/u", text) for text in told)


def test_the_mapfile_and_the_folders_agree():
    mapped = {folder for _, folder in processor.mapping(catalogue.HERE)}
    assert mapped == set(catalogue.names())
    folders = {path.name for path in catalogue.HERE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == mapped | set(catalogue.SHARED)


# The encodings that the project's notes on PMUs have, found apart from the catalogue's: event and unit mask.
@pytest.mark.parametrize(
    ("name", "event", "code", "umask"),
    [
        ("haswell-ep", "MEM_LOAD_UOPS_RETIRED.L1_MISS", 0xD1, 0x08),
        ("haswell-ep", "ICACHE.MISSES", 0x80, 0x02),
        ("skylake-sp", "ICACHE_64B.IFTAG_MISS", 0x83, 0x02),
        ("skylake-sp", "HW_INTERRUPTS.RECEIVED", 0xCB, 0x01),
        ("icelake-sp", "L2_RQSTS.ALL_DEMAND_MISS", 0x24, 0x27),
        ("icelake-sp", "DTLB_STORE_MISSES.WALK_COMPLETED", 0x49, 0x0E),
        ("sapphire-rapids", "DTLB_LOAD_MISSES.WALK_COMPLETED", 0x12, 0x0E),
        ("sapphire-rapids", "LONGEST_LAT_CACHE.MISS", 0x2E, 0x41),
        ("zen2", "l2_cache_accesses_from_dc_misses", 0x60, 0xC8),
        ("zen3", "l2_cache_accesses_from_dc_misses", 0x60, 0xE8),
        ("zen4", "l2_request_g1.all_dc", 0x60, 0xE8),
        ("zen5", "l2_request_g1.all_dc", 0x60, 0xE0),
        ("zen4", "ic_tag_hit_miss.instruction_cache_miss", 0x18E, 0x18),
        ("zen4", "bp_l1_tlb_miss_l2_tlb_miss.all", 0x85, 0x0F),
        ("zen5", "de_no_dispatch_per_slot.backend_stalls", 0x1A0, 0x1E),
        ("zen5", "ls_l1_d_tlb_miss.all_l2_miss", 0x45, 0xF0),
        ("zen4", "ex_no_retire.not_complete", 0xD6, 0x02),
        ("zen4", "resyncs_or_nc_redirects", 0x96, 0),
        ("zen5", "bp_redirects.resync", 0x9F, 0x01),
        ("zen5", "ex_ret_ucode_ops", 0x1C2, 0),
        ("neoverse-n1", "DTLB_WALK", 0x34, 0),
        ("neoverse-n1", "LL_CACHE_MISS_RD", 0x37, 0),
    ],
)
def test_encodings(name, event, code, umask):
    found = catalogue.load(name).events[event]
    assert (found.code, found.umask) == (code, umask)


LISTS = sorted((Path(__file__).parent / "captured" / "lists").glob("*.json"))


NO_SECOND = "no second list"
"""What the source of an event says that could not be compared."""


def same_codes(lists: dict[str, Any], shipped: dict[str, dict[str, Any]]) -> None:
    """Each event is in each list, as the list has it; or its source says that only one has it."""
    alone = {event for event, keys in shipped.items() if NO_SECOND in keys["Source"]}
    assert len(lists) >= 2 or alone == set(shipped)
    for name, one in lists.items():
        assert set(shipped) - alone <= set(one["events"]) <= set(shipped), name
        for event, keys in one["events"].items():
            # What is counted: perf's words for both, which have code, masks and flags.
            theirs, ours = (Event.model_validate({"EventName": event, **found}).perf().casefold() for found in (keys, shipped[event]))
            assert theirs == ours, (name, event)
    for event in alone:
        assert sum(event in one["events"] for one in lists.values()) == 1, event


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_code_is_in_two_lists(path):
    """The lists' own entries, reduced to codes: no event is shipped that only one of them has, and none otherwise than both have it."""
    own = catalogue.HERE / path.stem / "events.json"
    same_codes(json.loads(path.read_text()), {keys["EventName"]: keys for keys in entries(own)})


OUTSIDE = sorted((Path(__file__).parent / "captured" / "lists" / "uncore").glob("*.json"))


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.stem)
def test_every_code_outside_the_cores_is_in_two_lists(path):
    own = catalogue.HERE / path.stem / "uncore.json"
    same_codes(json.loads(path.read_text()), {keys["EventName"]: keys for keys in entries(own) if "EventName" in keys})


def test_every_file_of_events_outside_the_cores_has_its_lists():
    assert {path.stem for path in OUTSIDE} == {path.parent.name for path in catalogue.HERE.glob("*/uncore.json")}


def test_what_perf_is_told_of_events_outside_the_cores():
    events = catalogue.load("granite-rapids").events
    assert events["UNC_M_CAS_COUNT_SCH1.WR"].perf() == "uncore_imc/event=0x06,umask=0xf0,name=UNC_M_CAS_COUNT_SCH1.WR/"
    name = "UNC_CHA_TOR_INSERTS.IO_HIT_ITOM"
    assert events[name].perf() == f"uncore_cha/event=0x35,umask=0xcc43fd04,name={name}/"


def test_every_processor_has_its_lists_but_amds():
    """Other lists of AMD's events have other names for them: these were compared by hand, and each ``Source`` names them."""
    assert {path.stem for path in LISTS} == {name for name in MICROARCHITECTURES if not name.startswith("zen")}


# Arm's own formulas of the first level, in percent of the slots: width of the core, and what a wrong prediction takes off in cycles.
ARM = {
    "neoverse-n2": (5, 1, 3, 0),
    "neoverse-n2-r0p2": (5, 1, 3, 1),
    "neoverse-v1": (8, 4, 0, 0),
    "neoverse-v2": (8, 1, 3, 0),
}


@pytest.mark.parametrize("name", ARM)
def test_the_pipeline_of_arm(name):
    width, front, back, extra = ARM[name]
    counts = {"CPU_CYCLES": 1000, "OP_RETIRED": 1200, "OP_SPEC": 1500, "BR_MIS_PRED": 4}
    counts |= {"STALL_SLOT_FRONTEND": 600 + 1000 * extra, "STALL_SLOT_BACKEND": 1400, "STALL_SLOT": 2000 + 1000 * extra}
    share = {one: catalogue.load(name).evaluate(one, counts).value for one in LEVEL_1}
    slots, sent = 1000 * width, 1000 * width - 2000
    assert share["retiring"] == pytest.approx(sent / slots * 1200 / 1500)
    assert share["frontend_bound"] == pytest.approx(600 / slots - front * 4 / 1000)
    assert share["backend_bound"] == pytest.approx(1400 / slots - back * 4 / 1000)
    assert share["bad_speculation"] == pytest.approx(sent / slots * (1 - 1200 / 1500) + 4 * 4 / 1000)
    assert sum(share.values()) == pytest.approx(1)


def test_words_are_those_of_the_processor_model():
    """Where the model counts the same, the word is the same: results of both are read by the same names."""
    shared = {"l1i_misses", "l1d_misses", "l2_misses", "llc_misses", "dtlb_misses", "dtlb_walks", "itlb_misses", "itlb_walks"}
    shared |= {"instructions", "loads", "stores", "l1i_fetches", "l2_accesses", "walk_cycles", "branches", "branch_misses"}
    shared |= {"memory_local", "memory_remote", "interrupts"}
    assert shared <= set(profiles.counters())
    for name in MICROARCHITECTURES:
        assert shared <= set(catalogue.load(name).metrics)


def test_events_name_the_counters_that_can_count_them():
    events = catalogue.load("haswell-ep").events
    assert events["CYCLE_ACTIVITY.STALLS_LDM_PENDING"].cmask == 6
    assert events["INST_RETIRED.ANY_P"].counters == (0, 1, 2, 3)
    assert "HSD29" in events["MEM_UOPS_RETIRED.ALL_LOADS"].errata
    assert all(isinstance(event, Event) for event in events.values())


LEVEL_1 = ("retiring", "frontend_bound", "bad_speculation", "backend_bound")
# AMD's pipeline utilisation: each share of the first level, and the two that it is the sum of.
PARTS = {
    "retiring": ("retiring_fastpath", "retiring_microcode"),
    "frontend_bound": ("frontend_bound_latency", "frontend_bound_bandwidth"),
    "bad_speculation": ("bad_speculation_mispredicts", "bad_speculation_restarts"),
    "backend_bound": ("backend_bound_memory", "backend_bound_cpu"),
}
# What a core of each width could count in 1,000 cycles: 10 % of the slots go to the other thread, 40 % retire.
ZEN = {
    "ls_not_halted_cyc": 1000, "de_no_dispatch_per_slot.no_ops_from_frontend": 0.2, "de_no_dispatch_per_slot.backend_stalls": 0.25,
    "de_no_dispatch_per_slot.smt_contention": 0.1, "de_src_op_disp.all": 0.45, "ex_ret_ops": 0.4, "ex_ret_ucode_ops": 0.02,
    "ex_no_retire.load_not_complete": 30, "ex_no_retire.not_complete": 40, "ex_ret_brn_misp": 3, "resyncs_or_nc_redirects": 1, "bp_redirects.resync": 1,
    "de_no_dispatch_per_slot.no_ops_from_frontend_whole_cycle": 150,
}  # fmt: skip


@pytest.mark.parametrize(("name", "width"), [("zen4", 6), ("zen5", 8)])
def test_the_pipeline_of_zen(name, width):
    known = catalogue.load(name)
    counts = {event: count * 1000 * width if count < 1 else count for event, count in ZEN.items() if event in known.events}
    share = {
        one: known.evaluate(one, counts).value for one in (*LEVEL_1, "smt_contention", *(part for both in PARTS.values() for part in both))
    }
    expected = {"retiring": 0.4, "frontend_bound": 0.2, "bad_speculation": 0.05, "backend_bound": 0.25, "smt_contention": 0.1}
    assert {one: share[one] for one in expected} == pytest.approx(expected)
    assert sum(expected.values()) == pytest.approx(1)
    for whole, parts in PARTS.items():
        assert sum(share[part] for part in parts) == pytest.approx(share[whole])
    assert share["backend_bound_memory"] == pytest.approx(0.25 * 30 / 40)
    assert share["bad_speculation_mispredicts"] == pytest.approx(0.05 * 3 / 4)
    assert share["frontend_bound_latency"] == pytest.approx(0.15)
    assert share["retiring_microcode"] == pytest.approx(0.02)


@pytest.mark.parametrize("name", ["zen2", "zen3"])
def test_the_pipeline_of_earlier_zen_says_why_not(name):
    known = catalogue.load(name)
    for one in (*LEVEL_1, "smt_contention", *(part for both in PARTS.values() for part in both)):
        assert "Zen 4" in known.missing(one)


@pytest.mark.parametrize("name", ["zen4", "zen5"])
def test_a_pipeline_metric_fits_into_one_group_of_a_core_with_six_counters(name):
    known = catalogue.load(name)
    assert all(len(known.needs(one)) <= 6 for one in (*LEVEL_1, *(part for both in PARTS.values() for part in both)))


def test_the_first_level_has_the_same_words_on_every_processor():
    for name in MICROARCHITECTURES:
        assert set(LEVEL_1) <= set(catalogue.load(name).metrics)
