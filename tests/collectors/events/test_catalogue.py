# SPDX-License-Identifier: GPL-2.0-or-later
"""Reading the catalogue: a user's own files over the shipped ones, and what is said of a file that is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsprof.collectors.events import catalogue, entries
from vsprof.collectors.events.processor import Processor
from vsprof.terms import places
from vsprof.terms.errors import BadInput
from vsprof.terms.expression import Value
from vsprof.terms.vocabulary import NumberWords

EVENT = {"EventName": "my.event", "EventCode": "0xAE", "UMask": "0x02"}
METRIC = {"MetricName": "my_metric", "MetricExpr": "my.event / packets", "ScaleUnit": "1events/packet"}


def written(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def wrong(tmp_path: Path, document: Any) -> str:
    """What is said of a file, without its path."""
    path = written(tmp_path / "mine.json", document)
    with pytest.raises(BadInput) as error:
        catalogue.load("zen4", [path])
    lines = str(error.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return "\n".join(line.removeprefix(f"{path}: ") for line in lines)


# --- What a good file gives ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", [list, lambda found: {"Header": {"Info": "…"}, "Events": found}, lambda found: {"Metrics": found}])
def test_a_file_given_by_name_is_merged(tmp_path, wrapper):
    known = catalogue.load("zen4", [written(tmp_path / "mine.json", wrapper([EVENT, METRIC]))])
    assert known.events["my.event"].perf("k") == "cpu/event=0xae,umask=0x02,name=my.event/k"
    assert known.evaluate("my_metric", {"my.event": 8, "packets": 2}) == Value(4.0)
    assert known.metrics["my_metric"].unit == "events/packet"
    assert known.needs("my_metric") == ("my.event",)
    assert known.needs_data("my_metric") == ("packets",)


def test_the_users_folder_is_merged(tmp_path, monkeypatch):
    monkeypatch.setenv(places.EVENTS_NAMED, str(tmp_path))
    written(tmp_path / "zen4" / "a.json", [EVENT])
    written(tmp_path / "common" / "b.json", [{**METRIC, "MetricExpr": "cycles / packets * 2"}])
    assert {"my.event", "cpi"} <= {*catalogue.load("zen4").events, *catalogue.load("zen4").metrics}
    assert "my.event" not in catalogue.load("zen5").events
    assert "my_metric" in catalogue.load("zen5").metrics


def test_where_the_users_folder_is(monkeypatch, tmp_path):
    monkeypatch.delenv(places.EVENTS_NAMED)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert places.own_events() == tmp_path / "vsprof" / "events"


def test_a_folder_given_by_name(tmp_path):
    written(tmp_path / "a.json", [EVENT])
    assert "my.event" in catalogue.load("zen4", [tmp_path]).events


def test_the_same_event_in_two_files_is_one(tmp_path):
    """So a vendor's whole file can lie beside the shipped one."""
    same = {"EventName": "EX_RET_INSTR", "EventCode": "0xC0", "BriefDescription": "As the vendor has it.", "Figure": "counts"}
    known = catalogue.load("zen4", [written(tmp_path / "vendor.json", [same, EVENT]), written(tmp_path / "mine.json", [EVENT])])
    assert known.says()["ex_ret_instr"] == NumberWords("Instructions retired.", figure="counts")
    with pytest.raises(BadInput, match=r"ex_ret_instr: the name ex_ret_instr is given in .*zen4/events\.json too"):
        catalogue.load("zen4", [written(tmp_path / "other.json", [{"EventName": "ex_ret_instr", "EventCode": "0xc1"}])])


def test_keys_of_vendors_are_honoured_and_others_passed_over(tmp_path):
    more = {
        **{"CounterMask": "4", "Invert": "1", "EdgeDetect": "1", "AnyThread": "1", "MSRIndex": "0x3F6", "MSRValue": "0x80"},
        **{"Counter": "0,1", "Errata": "null", "SampleAfterValue": "100003", "BriefDescript6ion": "misspelt", "PEBS": None},
    }
    event = catalogue.load("zen4", [written(tmp_path / "a.json", [{**EVENT, **more}])]).events["my.event"]
    assert event.perf() == "cpu/event=0xae,umask=0x02,cmask=0x04,inv=1,edge=1,any=1,ldlat=0x80,name=my.event/"
    assert event.counters == (0, 1)
    assert event.errata == event.description == ""


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"EventName": "INST_RETIRED.ANY", "EventCode": "0x00", "UMask": "0x01"}, "cpu/event=0xc0,name=INST_RETIRED.ANY/u"),
        ({"EventName": "a", "EventCode": "0xB7,0xBB", "UMask": 1}, "cpu/event=0xb7,umask=0x01,name=a/u"),
        ({"EventName": "a", "EventCode": "0x45", "ExtSel": "1"}, "cpu/event=0x145,name=a/u"),
        ({"EventName": "a", "ConfigCode": "0x1ff"}, "cpu/config=0x1ff,name=a/u"),
        ({"EventName": "a:b", "EventCode": "1"}, "cpu/event=0x01/u"),
        ({"EventName": "a", "EventCode": "0x04", "UMask": "0x01", "Unit": "L3PMC"}, "amd_l3/event=0x04,umask=0x01,name=a/"),
        ({"EventName": "a", "EventCode": "0x04", "Unit": "UPI"}, "uncore_upi/event=0x04,name=a/"),
        ({"EventName": "a", "PerfEvent": "LLC-load-misses"}, "LLC-load-misses:u"),
    ],
)
def test_what_perf_is_told(keys, told):
    assert entries.Event.model_validate(keys).perf("u") == told


@pytest.mark.parametrize(
    ("name", "hardware"),
    [
        ("task-clock", False),
        ("context-switches:u", False),
        ("irq:softirq_entry", False),
        ("cycles", True),
        ("cycles:u", True),
        ("r45f0", True),
    ],
)
def test_what_the_kernel_counts_by_itself(name, hardware):
    assert entries.Event.model_validate({"EventName": "a", "PerfEvent": name}).hardware == hardware


@pytest.mark.parametrize(
    ("scale", "factor", "unit"), [("100%", 100, "%"), ("1e3per_1k_instr", 1000, "per_1k_instr"), ("", 1, ""), ("1events", 1, "events")]
)
def test_scale(tmp_path, scale, factor, unit):
    known = catalogue.load("zen4", [written(tmp_path / "a.json", [{"MetricName": "m", "MetricExpr": "seconds", "ScaleUnit": scale}])])
    assert known.metrics["m"].unit == unit
    assert known.evaluate("m", {"seconds": 2}).value == pytest.approx(2 * factor)


# --- Values -------------------------------------------------------------------------------------------------------


def test_metrics_are_made_of_sums():
    known = catalogue.load("zen4")
    counts = {"ls_not_halted_cyc": 3000, "ex_ret_instr": 1000, "l2_request_g1.all_dc": 40, "packets": 10}
    assert known.evaluate("cpi", counts) == Value(3.0)
    assert known.evaluate("CPI", {name.upper(): value for name, value in counts.items() if name != "packets"}) == Value(3.0)
    assert known.evaluate("l1d_misses_per_packet", counts) == Value(4.0)
    assert known.evaluate("l1d_misses_per_kilo_instructions", counts) == Value(40.0)
    assert known.evaluate("ex_ret_instr", counts) == Value(1000)


def test_no_value_has_a_reason():
    known = catalogue.load("zen4")
    assert known.evaluate("cpi", {"ls_not_halted_cyc": 1, "ex_ret_instr": 0}).note == "division by zero: instructions is 0"
    assert known.evaluate("cpi", {"ls_not_halted_cyc": 1}).note == "ex_ret_instr was not counted"
    notes = {"ex_ret_instr": "a dead counter"}
    assert known.evaluate("cpi", {"ls_not_halted_cyc": 1, "ex_ret_instr": None}, notes) == Value(None, "a dead counter")
    assert known.evaluate("walk_cycle_share", {}).note == known.missing("walk_cycle_share")
    assert "zen4 has no walk_cycles: " in (known.missing("walk_cycle_share") or "")
    assert known.evaluate("llc_misses_per_packet", {}).note == "ls_dmnd_fills_from_sys.dram_io_near was not counted"


def test_an_unknown_metric():
    with pytest.raises(BadInput, match=r"no metric or event 'l1d_miss'; did you mean l1d_miss.*: `make events` lists them"):
        catalogue.load("zen4").evaluate("l1d_miss", {})
    with pytest.raises(BadInput):
        catalogue.load("zen4").find("packets")


def test_an_unknown_microarchitecture():
    with pytest.raises(BadInput, match=r"no events for a processor 'zen9': use one of cascadelake-sp, .*generic, .*zen5$"):
        catalogue.load("zen9")


# --- What is wrong with a file ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "is not JSON: "),
        ('[{"EventName": "a", "EventName": "b"}]', "is not JSON: the key 'EventName' is given twice"),
        ("[" * 100_000, "is not JSON: "),
        ({"a": 1}, "is no list of events: found keys and values, need [{…}, …]"),
        (7, "is no list of events: found int"),
        ([7], "entry 1: need keys and values, found int"),
        ([{"ArchStdEvent": "L1D_CACHE"}], "entry 1: has neither EventName nor MetricName (found ArchStdEvent)"),
        ([{}], "entry 1: has neither EventName nor MetricName (found no key)"),
        ([{"EventName": "a"}], "a: has no EventCode: give it, or ConfigCode, or as PerfEvent"),
        ([{**EVENT, "PerfEvent": "cycles"}], "my.event: gives EventCode and PerfEvent: give one of them"),
        ([{**EVENT, "EventCode": "45h"}], "my.event: EventCode: need a number such as 0x45 (found '45h')"),
        ([{**EVENT, "UMask": "-1"}], "my.event: UMask: need a number from 0 to 2^64 - 1 (found '-1')"),
        ([{**EVENT, "UMask": [1]}], "my.event: UMask: need a number such as 0x45 (found [1])"),
        ([{**EVENT, "EventName": "a b"}], "a b: EventName: need letters, digits and _ . : -, a letter first (found 'a b')"),
        ([{**EVENT, "EventName": 5}], "entry 1: EventName: need text (found 5)"),
        ([{"EventName": "a", "PerfEvent": "b,c"}], "a: PerfEvent: need one name that perf knows"),
        ([{**EVENT, "BriefDescription": 5}], "my.event: BriefDescription: need text (found 5)"),
        ([{"MetricName": "m"}], "m: MetricExpr: missing; give it, or under Missing the reason"),
        ([{**METRIC, "Missing": "x"}], "my_metric: gives MetricExpr and Missing: give one of them"),
        ([{"MetricName": "m", "Missing": " "}], "m: Missing: need the reason (found ' ')"),
        ([{**METRIC, "MetricExpr": 5}], "my_metric: MetricExpr: need text (found 5)"),
        ([{**METRIC, "MetricExpr": "a ** b"}], "my_metric: MetricExpr: 'a ** b' is no formula"),
        ([METRIC], "my_metric: MetricExpr: no event or metric my.event"),
        ([{**METRIC, "MetricExpr": "cycle / packets"}], "my_metric: MetricExpr: no event or metric cycle; did you mean cycles?"),
        ([EVENT, {**EVENT, "EventName": "MY.EVENT"}], "MY.EVENT: the name MY.EVENT is given in "),
        ([{**EVENT, "EventName": "ex_ret_instr"}], "ex_ret_instr: the name ex_ret_instr is given in "),
        ([{**METRIC, "MetricName": "cpi", "MetricExpr": "cycles"}], "cpi: the name cpi is given in "),
        ([{**EVENT, "EventName": "packets"}], "packets: the name packets stands for the amount of traffic in a window: choose another"),
        (
            [{"MetricName": "a", "MetricExpr": "b"}, {"MetricName": "b", "MetricExpr": "a + cycles"}],
            "a: MetricExpr: a -> b -> a leads back to itself",
        ),
        ([{"MetricName": "a", "MetricExpr": "2 * a"}], "a: MetricExpr: a -> a leads back to itself"),
    ],
)
def test_errors_name_file_entry_and_key(tmp_path, document, said):
    assert wrong(tmp_path, document).startswith(said)


def test_each_wrong_entry_has_a_line(tmp_path):
    text = wrong(tmp_path, [{"EventName": "a"}, {**EVENT, "UMask": "x", "CounterMask": "y"}, METRIC])
    assert len(text.splitlines()) == 3


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match=r"no events in .*gone\.json: give the path of a JSON file"):
        catalogue.load("zen4", [tmp_path / "gone.json"])
    with pytest.raises(BadInput, match="no events in "):
        catalogue.load("zen4", [tmp_path])


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(BadInput, match=r"a\.json: is not JSON"):
        catalogue.load("zen4", [path])


def test_a_new_microarchitecture_is_told_which_words_it_lacks(tmp_path):
    shared = sorted((catalogue.HERE / "common").glob("*.json"))
    new = written(tmp_path / "zen9" / "events.json", [{**EVENT, "EventName": "cycles"}])
    with pytest.raises(BadInput) as error:
        catalogue.read([new, *shared], Processor("AuthenticAMD-27-0-0"), "zen9")
    assert "zen9: has no event or metric instructions, which cpi needs: add it, or an entry with Missing" in str(error.value)


# --- Whatever stands in a file ------------------------------------------------------------------------------------

KEYS = ["EventName", "MetricName", "EventCode", "UMask", "MetricExpr", "Missing", "ScaleUnit", "PerfEvent", "ConfigCode", "Counter", "Unit"]
THINGS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["0x45", "a", "cycles", "a / b"])
NESTED = st.recursive(
    THINGS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_leaves=12
)


@settings(max_examples=150, deadline=None)
@given(document=NESTED | st.lists(st.dictionaries(st.sampled_from(KEYS), THINGS, max_size=6), max_size=4))
def test_any_json_is_read_or_refused(tmp_path_factory, document):
    path = written(tmp_path_factory.mktemp("any") / "a.json", document)
    try:
        known = catalogue.read([path], Processor("any"), "any")
    except BadInput:
        return
    for name in known.metrics:
        value = known.evaluate(name, dict.fromkeys((*known.events, *catalogue.DATA), 1.0))
        assert (value.value is None) == bool(value.note)
    assert all(event.perf() for event in known.events.values())
