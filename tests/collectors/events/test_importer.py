# SPDX-License-Identifier: GPL-2.0-or-later
"""Vendors' lists become files of the user's own that load at once, and nothing that can't be counted is among them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vsprof.collectors.events import catalogue, importer, outside
from vsprof.collectors.events.importer import Imported
from vsprof.collectors.perf_stat import wanted
from vsprof.terms import places
from vsprof.terms.errors import BadInput

VENDORS = Path(__file__).parent / "captured" / "vendors"
PERF, PERFMON, ARM = VENDORS / "perf", VENDORS / "perfmon", VENDORS / "arm"
GNR_OUTSIDE = PERFMON / "GNR/events/graniterapids_uncore.json"
GNR = [PERFMON / "GNR/events/graniterapids_core.json", PERFMON / "GNR/metrics/graniterapids_metrics.json"]


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch) -> Path:
    """The user's own folder of events, empty."""
    monkeypatch.setenv(places.EVENTS_NAMED, str(tmp_path / "events"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "events"


def names(done: Imported) -> set[str]:
    return {entry.name for one in done.files for entry in one.entries}


def reasons(done: Imported) -> dict[str, str]:
    return {one.name: one.reason for one in done.left_out}


def written(path: Path) -> dict[str, dict[str, Any]]:
    return {keys.get("EventName") or keys["MetricName"]: keys for keys in json.loads(path.read_text())}


def copied(source: Path, to: Path) -> Path:
    """A vendor's file by itself: nothing lies above it."""
    to.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(source, to))


# --- Each form ----------------------------------------------------------------------------------------------------------


def test_perfs_list_of_intel(own):
    done = importer.bring_in([PERF / "x86/sapphirerapids/cache.json"])
    assert done.microarchitecture == "sapphire-rapids"
    known = catalogue.load("sapphire-rapids")
    told = {name: known.events[name].perf() for name in names(done)}
    assert told["L2_LINES_OUT.SILENT"] == "cpu/event=0x26,umask=0x01,name=L2_LINES_OUT.SILENT/"
    assert told["ARITH.DIV_ACTIVE"] == "cpu/event=0xb0,umask=0x09,cmask=0x01,name=ARITH.DIV_ACTIVE/"
    # A fixed counter's, which perf gives no code.
    assert told["CPU_CLK_UNHALTED.THREAD"] == "cpu/event=0x3c,name=CPU_CLK_UNHALTED.THREAD/"
    # Off-core responses and the front end's: a second register, for which perf has a word.
    assert ",offcore_rsp=0x10003c0001," in told["OCR.DEMAND_DATA_RD.L3_HIT.SNOOP_HITM"]
    assert ",frontend=0x13," in told["FRONTEND_RETIRED.L2_MISS"]
    why = reasons(done)
    assert "are in the catalogue already" in why["L1D.REPLACEMENT"]
    assert "are deprecated" in why["L1D_PEND_MISS.L2_STALL"]


def test_what_is_written_has_its_source_and_no_idle_key(own):
    importer.bring_in([PERF / "x86/sapphirerapids/cache.json"])
    keys = written(own / "sapphire-rapids/cache.json")["L2_LINES_OUT.SILENT"]
    assert keys == {"EventName": "L2_LINES_OUT.SILENT", "EventCode": "0x26", "UMask": "0x1", "Counter": "0,1,2,3", "Source": keys["Source"]}
    assert keys["Source"] == "perf sapphirerapids/cache.json"


def test_perfs_list_of_amd(own):
    done = importer.bring_in([PERF / "x86/amdzen4"])
    assert done.microarchitecture == "zen4"
    assert names(done) >= {"ls_mab_alloc.load_store_allocations", "branch_misprediction_ratio", "l1_itlb_misses"}
    why = reasons(done)
    assert "of events outside the cores" in why["umc_mem_read_bandwidth"]
    assert why["umc_mem_read_bandwidth"].endswith(": umc_cas_cmd.rd")  # and not duration_time, which is `seconds`
    assert "have a name that is taken" in why["frontend_bound"]
    assert "names an event by its PMU" in why["frontend_bound_latency"]
    known = catalogue.load("zen4")
    assert known.evaluate("branch_misprediction_ratio", {"ex_ret_brn_misp": 1, "ex_ret_brn": 4}).value == 25


def test_perfs_list_of_arm_by_the_standard_events_above_it(own):
    done = importer.bring_in([PERF / "arm64/arm/neoverse-v1"])
    assert done.microarchitecture == "neoverse-v1"
    known = catalogue.load("neoverse-v1", pmu="armv8_pmuv3_0")
    assert known.events["L1D_CACHE_WB"].perf("u", known.pmu) == "armv8_pmuv3_0/event=0x15,name=L1D_CACHE_WB/u"
    assert known.events["L1D_CACHE_REFILL_INNER"].code == 0x44  # of recommended.json
    assert known.evaluate("ipc", {"INST_RETIRED": 3, "CPU_CYCLES": 2}).value == 1.5
    assert "#slots is a literal" in reasons(done)["retiring"]  # of sbsa.json


def test_arms_list_without_the_standard_events_says_what_is_missing(tmp_path):
    alone = copied(PERF / "arm64/arm/neoverse-v1/l1d_cache.json", tmp_path / "neoverse-v1")
    with pytest.raises(BadInput, match=r"the file has no code for ArchStdEvent L1D_CACHE.*give perf's common-and-microarch\.json"):
        importer.bring_in([alone])
    done = importer.bring_in([alone, PERF / "arm64/common-and-microarch.json", PERF / "arm64/recommended.json"])
    assert names(done) == {"L1D_CACHE_WB", "L1D_CACHE_REFILL_INNER"}
    assert [one.path for one in done.files] == [alone]


def test_intels_own_events_and_metrics(own):
    done = importer.bring_in(GNR)
    assert done.microarchitecture == "granite-rapids"
    known = catalogue.load("granite-rapids")
    assert known.metrics["l1d_mpi"].text == "L1D.REPLACEMENT / INST_RETIRED.ANY"
    assert known.metrics["l1d_mpi"].unit == "per instruction"
    assert known.evaluate("l1d_mpi", {"L1D.REPLACEMENT": 1, "INST_RETIRED.ANY": 4}).value == 0.25
    assert ",ldlat=0x20," in known.events["MEM_TRANS_RETIRED.LOAD_LATENCY_GT_32"].perf()
    assert "V1.20" in known.events["L2_LINES_IN.ALL"].source
    why = reasons(done)
    assert why["cpu_operating_frequency"].endswith(": CPU_CLK_UNHALTED.REF_TSC, SYSTEM_TSC_FREQ")
    assert "UNC_M_CAS_COUNT" in why["memory_bandwidth_read"]
    assert "DURATION" not in why["memory_bandwidth_read"]


def test_arms_telemetry_specification(own):
    done = importer.bring_in([ARM / "telemetry/neoverse-n2-r0p3.json"])
    assert done.microarchitecture == "neoverse-n2"
    assert names(done) == {"SW_INCR", "L1D_CACHE_WB", "backend_stalled_cycles", "ipc", "branch_mpki"}
    known = catalogue.load("neoverse-n2")
    assert known.evaluate("backend_stalled_cycles", {"STALL_BACKEND": 1, "CPU_CYCLES": 4}).value == 25
    assert known.metrics["backend_stalled_cycles"].unit == "percent of cycles"
    assert "08 Aug" in known.events["SW_INCR"].source


def test_arms_data(own):
    done = importer.bring_in([ARM / "data/neoverse-v2.json"])
    assert (done.microarchitecture, names(done)) == ("neoverse-v2", {"SW_INCR", "L1D_CACHE_WB"})
    assert catalogue.load("neoverse-v2").events["L1D_CACHE_WB"].code == 0x15


# --- Outside the cores --------------------------------------------------------------------------------------------------


def told(done: Imported) -> dict[str, str]:
    """What perf is given for each event, without its name."""
    known = catalogue.load(done.microarchitecture)
    return {name: known.events[name].perf().replace(f",name={name}/", "/") for name in names(done) if name in known.events}


def test_perfs_lists_of_memory_controllers_and_devices(own):
    done = importer.bring_in([PERF / "x86/amdzen4/memory-controller.json"])
    assert told(done) == {"umc_mem_clk": "amd_umc/event=0x00/"}
    # The shipped ones are the same.
    assert reasons(done) == dict.fromkeys(("umc_cas_cmd.rd", "umc_cas_cmd.wr"), "are in the catalogue already, with the same code")
    assert catalogue.load("zen4").events["umc_cas_cmd.wr"].perf() == "amd_umc/event=0x0a,rdwrmask=0x2,name=umc_cas_cmd.wr/"
    devices = told(importer.bring_in([PERF / "x86/sapphirerapids/uncore-io.json"]))
    # perf's list repeats the two masks above a unit mask of 8 bits: the kernel would refuse that.
    assert devices["UNC_IIO_DATA_REQ_BY_CPU.MEM_READ.PART0"] == "uncore_iio/event=0xc0,umask=0x04,ch_mask=0x1,fc_mask=0x7/"
    assert devices["UNC_IIO_BANDWIDTH_IN.PART0_FREERUN"] == "uncore_iio_free_running/event=0xff,umask=0x20/"


def test_what_the_catalogue_has_is_recognized_in_both_lists():
    for path in (PERF / "x86/sapphirerapids/uncore-memory.json", GNR_OUTSIDE):
        try:
            why = reasons(importer.bring_in([path]))
        except BadInput as error:
            why = {"UNC_M_CAS_COUNT.RD": str(error)}
        assert any("are in the catalogue already, with the same code" in one for one in why.values()), path


def test_intels_lists_as_the_kernel_has_their_masks_and_filters():
    found = told(importer.bring_in([GNR_OUTSIDE]))
    assert found == {
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD": "uncore_cha/event=0x35,umask=0xc817fe01/",
        "UNC_IIO_DATA_REQ_OF_CPU.MEM_READ.PART0": "uncore_iio/event=0x83,umask=0x04,ch_mask=0x1,fc_mask=0x7/",
    }
    found = told(importer.bring_in([PERFMON / "CLX/events/cascadelakex_uncore.json"]))
    assert found == {
        # The second filter register is the upper half of the kernel's one.
        "UNC_CHA_TOR_INSERTS.IA_MISS_DRD": "uncore_cha/event=0x35,umask=0x21,config1=0x4043300000000/",
        "UNC_IIO_DATA_REQ_OF_CPU.MEM_READ.PART0": "uncore_iio/event=0x83,umask=0x04,ch_mask=0x1,fc_mask=0x7/",
    }
    found = told(importer.bring_in([PERFMON / "CLX/events/cascadelakex_uncore_experimental.json"]))
    assert found == {"UNC_M_CLOCKTICKS_F": "uncore_imc/event=0xff/"}


def test_what_perf_has_no_word_for_is_left_out():
    why = reasons(importer.bring_in([PERFMON / "ICX/events/icelakex_uncore_experimental.json"]))
    assert "count only what matches a filter" in why["UNC_I_TRANSACTIONS.ORDERINGQ"]
    assert "have a counter that nothing starts or stops" in why["UNC_IIO_BANDWIDTH_IN.PART0_FREERUN"]


def test_a_mesh_in_perfs_list_and_in_arms():
    of_perf = importer.bring_in([PERF / "arm64/arm/cmn/sys"], "neoverse-n2")
    assert told(of_perf)["hnf_mc_reqs"] == "arm_cmn/eventid=0x0d,type=0x5/"
    assert told(of_perf)["rnid_rxdat_flits"] == "arm_cmn/eventid=0x04,type=0xa/"
    assert reasons(of_perf)["slc_miss_rate"].endswith(": hnf_cache_miss, hnf_slc_sf_cache_access")
    of_arm = importer.bring_in([ARM / "telemetry/cmn_700_r0p0_pmu.json"], "neoverse-n2")
    assert told(of_arm)["PMU_HNF_MC_REQS"] == told(of_perf)["hnf_mc_reqs"]
    assert told(of_arm)["PMU_HNS_ATOMIC_FWD"] == "arm_cmn/eventid=0x20,type=0x200/"
    assert "has no EventCode" in reasons(of_arm)["SYS_CMN_CYCLES"]


def test_a_unit_that_is_the_core_is_none(tmp_path):
    done = importer.bring_in([given_list(tmp_path, {"EventName": "mine", "EventCode": "0x1", "Unit": "cpu"})], "zen4")
    assert told(done) == {"mine": "cpu/event=0x01/"}


@pytest.mark.parametrize("text", ["CHAFilter1[31:0]", "fc, chnl", "na", "", None, "config1=0x4033", "occ_sel=1,occ_edge=1"])
def test_filters_that_perf_takes_or_leaves(text):
    assert outside.filter_terms(text) == (text if text and "=" in text else "")


@pytest.mark.parametrize("text", ["config1=", "a=1/,cycles/", "x=1,y", "some register", 3, ["a=1"]])
def test_filters_that_are_none(tmp_path, text):
    with pytest.raises(BadInput, match="Filter: need perf's words, such as config1=0x4033"):
        importer.bring_in([given_list(tmp_path, {"EventName": "mine", "EventCode": "0x1", "Unit": "CHA", "Filter": text})], "zen4")


# --- What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("{}", "no key"),
        ('{"Platform": {}, "Data": {}}', "the keys Platform, Data"),
        ("[]", "a list of 0"),
        ('[{"a": 1}]', "a list of 1"),
        ("3", "int"),
        ("null", "NoneType"),
    ],
)
def test_no_known_form(tmp_path, text, seen):
    path = tmp_path / "strange.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=f"strange.json: found {seen}, which is none of the known forms"):
        importer.bring_in([path], "zen4")


def test_no_json_and_no_file(tmp_path):
    (tmp_path / "x.json").write_text("[")
    (tmp_path / "y.json").write_bytes(b"\xff")
    for name, why in (("x.json", "is not JSON"), ("y.json", "is not JSON"), ("z.json", "no events in")):
        with pytest.raises(BadInput, match=why):
            importer.bring_in([tmp_path / name], "zen4")


def test_a_table_without_events_is_told():
    with pytest.raises(BadInput, match="nothing can be imported: there is no event and no metric"):
        importer.bring_in([PERF / "x86/sapphirerapids/metricgroups.json", PERF / "x86/sapphirerapids/counter.json"])
    with pytest.raises(BadInput, match="found the keys Platform, Data"):
        importer.bring_in([PERFMON / "GNR/metrics/graniterapids_retire_latency.json"])


def given_list(tmp_path: Path, *entries: dict[str, Any], name: str = "mine.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(entries))
    return path


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"PEBS": "2"}, "count only while the PMU samples precisely"),
        ({"MSRIndex": "0x3f8", "MSRValue": "0x1"}, "need register 0x3f8"),
        ({"Unit": "cpu_atom"}, "one kind of core"),
        ({"Deprecated": "1"}, "are deprecated"),
        ({"EventCode": None}, "has no EventCode"),
        ({"EventCode": "many"}, "EventCode: need a number such as 0x45"),
        ({"EventName": "a b"}, "EventName: need letters"),
        ({"EventName": "packets"}, "stands for the amount of traffic in a window"),
        ({"EventName": "ex_ret_instr", "EventCode": "0xc1"}, "have a name that is taken in the catalogue of zen4"),
        ({"EventName": "CPI"}, "have a name that is taken in the catalogue of zen4"),
    ],
)
def test_what_cannot_be_used_is_left_out_with_its_reason(tmp_path, keys, why):
    path = given_list(tmp_path, {"EventName": "good", "EventCode": "0x1"}, {"EventName": "bad", "EventCode": "0x2", **keys})
    done = importer.bring_in([path], "zen4")
    assert names(done) == {"good"}
    [reason] = reasons(done).values()
    assert why in reason
    assert "good" in catalogue.load("zen4").events


def test_a_name_given_twice(tmp_path):
    one = given_list(tmp_path, {"EventName": "a", "EventCode": "0x1"}, {"EventName": "A", "EventCode": "0x2"})
    two = given_list(tmp_path, {"EventName": "a", "EventCode": "0x1"}, {"EventName": "b", "EventCode": "3"}, name="two.json")
    done = importer.bring_in([one, two], "zen4")
    assert [(left.path, left.name, left.why) for left in done.left_out] == [
        (one, "A", f"have a name that is taken in {one}"),
        (two, "a", "are in the catalogue already, with the same code"),
    ]
    assert set(catalogue.load("zen4").events) >= {"a", "b"}


def test_names_codes_and_formulas_that_look_empty(tmp_path):
    path = given_list(tmp_path, {"EventName": "na", "EventCode": "0"}, {"MetricName": "null", "MetricExpr": "0"})
    assert names(importer.bring_in([path], "zen4")) == {"na", "null"}
    assert catalogue.load("zen4").evaluate("null", {}).value == 0


def test_metrics_that_lead_back_to_themselves_are_left_out(tmp_path):
    metrics = [{"MetricName": name, "MetricExpr": formula} for name, formula in (("m", "2 * n"), ("n", "m / 2"), ("o", "cycles"))]
    done = importer.bring_in([given_list(tmp_path, *metrics)], "zen4")
    assert names(done) == {"o"}
    assert set(reasons(done)) == {"m", "n"}


# --- Which processor, which names, which files --------------------------------------------------------------------------


def test_a_file_that_names_no_processor(tmp_path):
    path = given_list(tmp_path, {"EventName": "a", "EventCode": "0x1"})
    with pytest.raises(BadInput, match=r"add --microarchitecture with one of cascadelake-sp, .*\(this host's: "):
        importer.bring_in([path])
    with pytest.raises(BadInput, match="no events for a processor 'zen9'"):
        importer.bring_in([path], "zen9")
    with pytest.raises(BadInput, match=r"of several processors \(zen4, sapphire-rapids\)"):
        importer.bring_in([PERF / "x86/amdzen4/cache.json", PERF / "x86/sapphirerapids/counter.json"])


def test_every_platform_is_a_folder_of_the_catalogue():
    assert set(importer.PLATFORMS.values()) <= set(catalogue.names())


def test_only_some_names(own):
    done = importer.bring_in(GNR, only=["l2_lines_out.*", "l1d_mpi"])
    # What a metric needs comes with it; L1D.REPLACEMENT is in the catalogue.
    assert names(done) == {"L2_LINES_OUT.SILENT", "l1d_mpi", "INST_RETIRED.ANY"}
    assert set(reasons(done)) == {"L1D.REPLACEMENT"}
    with pytest.raises(BadInput, match=r"--only L2_LINES_OT\.SILENT: no event or metric.*did you mean l2_lines_out\.silent"):
        importer.bring_in(GNR, only=["L2_LINES_OT.SILENT"], force=True)


def test_a_users_file_is_replaced_only_when_asked(own):
    path = own / "granite-rapids/graniterapids_core.json"
    path.parent.mkdir(parents=True)
    path.write_text('[{"EventName": "mine", "EventCode": "0x1"}]')
    with pytest.raises(BadInput, match=rf"{path} is there already: add --force to replace it, or --to"):
        importer.bring_in(GNR)
    assert list(written(path)) == ["mine"]
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    first = importer.bring_in(GNR, force=True)
    assert "mine" not in written(path)
    # A file that is replaced does not stand in its own way.
    assert importer.bring_in(GNR, force=True) == first


def test_names_of_the_users_other_files_are_taken(own):
    importer.bring_in(GNR[:1])
    again = importer.bring_in(GNR[1:])
    assert names(again) == {"l1d_mpi", "numa_percent_all_reads_to_local_cluster_memory"}


def test_another_folder_is_found_as_plugins_are(tmp_path, own):
    done = importer.bring_in(GNR, to=tmp_path / "vsprof.d" / "events")
    assert {one.to.parent for one in done.files} == {tmp_path / "vsprof.d/events/granite-rapids"}
    assert not own.exists()
    assert "L2_LINES_OUT.SILENT" in catalogue.load("granite-rapids").events


def test_files_of_one_name_and_folders_that_take_none(tmp_path, own):
    there = copied(PERF / "x86/amdzen4/cache.json", tmp_path / "amdzen4")
    with pytest.raises(BadInput, match=r"would both become cache\.json"):
        importer.bring_in([there, PERF / "x86/amdzen4/cache.json"])
    own.write_text("no folder")
    with pytest.raises(BadInput, match="can't be written"):
        importer.bring_in([there])


def test_imported_names_can_be_asked_for_at_once():
    wanted_here = {"events": ["L2_LINES_OUT.SILENT", "l1d_mpi"]}
    with pytest.raises(BadInput, match=r"no metric or event 'L2_LINES_OUT\.SILENT'"):
        wanted.check(wanted_here)
    importer.bring_in(GNR)
    wanted.check(wanted_here)
    assert wanted.choose(catalogue.load("granite-rapids"), wanted_here["events"]).names == ("L2_LINES_OUT.SILENT", "l1d_mpi")


# --- Fuzz ---------------------------------------------------------------------------------------------------------------

CAPTURED = sorted(VENDORS.rglob("*.json"))
TEXTS = st.text(max_size=12) | st.sampled_from(
    ["0x1", "0", "-1", "null", "cycles", "packets", "a / b", "L1D.REPLACEMENT", "#x", "cpi", "2"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


def places_of(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a document something else can be put."""
    children = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    return [path, *(place for key, child in children for place in places_of(child, (*path, key)))]


def replaced(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    changed = dict(document) if isinstance(document, dict) else list(document)
    changed[place[0]] = replaced(document[place[0]], place[1:], value)
    return changed


@st.composite
def almost_vendors(draw: st.DrawFn) -> Any:
    """A captured file in which a few places hold something else."""
    document = json.loads(draw(st.sampled_from(CAPTURED)).read_text())
    for _ in range(draw(st.integers(0, 4))):
        document = replaced(document, draw(st.sampled_from(places_of(document))), draw(VALUES))
    return document


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=almost_vendors() | VALUES, only=st.lists(TEXTS, max_size=1))
def test_any_file_is_imported_so_that_it_loads_or_told(tmp_path, own, document, only):
    shutil.rmtree(own, ignore_errors=True)
    path = tmp_path / "any.json"
    path.write_text(json.dumps(document))
    try:
        done = importer.bring_in([path], "granite-rapids", only)
    except BadInput as error:
        str(error).encode()
        assert not list(own.rglob("*.json*"))
        return
    known = catalogue.load("granite-rapids")
    assert names(done) <= {*known.events, *known.metrics}
    json.dumps(done.to_json()).encode()
    "\n".join(importer.summed_up(done.left_out)).encode()
